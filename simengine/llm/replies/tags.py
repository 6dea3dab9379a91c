"""The tags format: ``Tags:``, then one short tag on each line behind a dash; or a JSON list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lapses import explain
from simengine.llm.replies.lines import one_line, unwrap
from simengine.llm.replies.objects import JsonForm

LONGEST = 8
"""A tag of more words than this is a sentence, and no tag."""

_HEADING = re.compile(
    r"^\W*(?:here\s+are\s+)?(?:(?:my|the|your)\s+)?(?:interest\s+)?tags?(?:\s+are)?\s*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_BULLET = re.compile(r"\A\s*(?:[-*•–]|\(?\d{1,3}[.)])\s+")

JSON = JsonForm({"tags": ["<tag>", "<tag>"]}, rule="The list goes on to the last tag.")


def write(tags: Sequence[str], *, json: bool = False) -> str:
    """The reply in the format asked for."""
    named = list(map(one_line, tags))
    return JSON.write(named) if json else "\n".join(["Tags:", *(f"- {tag}" for tag in named)])


def read(text: str, shown: str) -> tuple[str, ...]:
    """The tags of a reply, in lower case and each once, in their order.

    They stand on lines of their own behind the heading, or all on one line with commas or semicolons between them. The
    heading may be missing before lines that begin with dashes or numbers. What is too long for a tag is left out.
    ``shown`` is what the model was given, by whose writing systems the language is judged. Raises ``Unreadable``:
    ``no_heading``, ``empty`` where no tag is left, or a lapse.
    """
    answer = clean(text)
    heading = _HEADING.search(answer)
    lines = [line for line in answer[heading.end() if heading else 0 :].splitlines() if line.strip()]
    listed = [line[bullet.end() :] for line in lines if (bullet := _BULLET.match(line))]
    if heading is None and not listed:
        raise explain(answer, shown, "no_heading", f"the heading is missing; the reply begins {first_words(answer)}")
    if not listed and len(lines) == 1:
        listed = _one_line(lines[0].strip())
    return _tags(listed or lines, answer, shown)


def read_json(text: str, shown: str) -> tuple[str, ...]:
    """The same from a reply in JSON; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    if fields is None:
        return read(text, shown)
    named = fields.get("tags", ())
    return _tags((named,) if isinstance(named, str) else named, text, shown)


def _one_line(line: str) -> list[str]:
    """The tags of a single line, which may be a JSON list without a name."""
    if line.startswith("["):
        try:
            return list(map(str, json.loads(line)))
        except ValueError:
            line = line.strip("[]")
    return re.split(r"[;,]", line)


def _tags(named: Iterable[str], answer: str, shown: str) -> tuple[str, ...]:
    plain = (one_line(unwrap(tag)).rstrip(".;,").casefold() for tag in named)
    kept = tuple(dict.fromkeys(tag for tag in plain if re.search(r"\w", tag) and len(tag.split()) <= LONGEST))
    if not kept:
        raise explain(answer, shown, "empty", f"no short tag was found in {first_words(answer)}")
    return kept
