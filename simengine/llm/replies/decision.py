"""The decision format: ``Choice: Yes`` or ``Choice: No``, then ``Explanation: ...`` on a new line; or both in JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lapses import explain, refuse_lapse
from simengine.llm.replies.lines import one_line, unwrap
from simengine.llm.replies.objects import JsonForm, text_of
from simengine.llm.replies.unreadable import Unreadable

_HEADING = re.compile(
    r"^\W*(?:my\s+)?(?:final\s+|new\s+|updated\s+)?(?:choice|decision|answer)(?:\s+is)?\s*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_EXPLANATION = re.compile(r"(?:^\W*|\s)(?:my\s+)?(?:explanation|reason(?:ing|s)?|rationale)\s*[:：]", re.IGNORECASE)
# The word alone, or before what can only go on from it: "No doubt", "No. 1" and "No-brainer" are no refusal to buy.
_VERDICT = re.compile(
    r"\A[^\w¿¡]*(yes|no)\b(?:\s*\Z|[ \t]*\n|\s*[,;:!?()\[\]\"'”’*]|\s*\.(?!\s*\d)|\s*[–—]|\s+-\s"
    r"|\s+(?=(?:i|it|its|it's|this|that|because|as|since|for|but|thanks?|please)\b))",
    re.IGNORECASE,
)
_EITHER = re.compile(
    r"\A\W*(?:yes\s*(?:[/|]|,?\s*(?:or|and)\b)\s*no|no\s*(?:[/|]|,?\s*(?:or|and)\b)\s*yes)\b", re.IGNORECASE
)

JSON = JsonForm({"choice": "<Yes or No>", "explanation": "<your reasons>"})


@dataclass(frozen=True)
class Decision:
    """Whether the item is wanted, and why (may be empty)."""

    yes: bool
    explanation: str


def word(yes: bool) -> str:
    """How a decision is written, in replies and in prompts that show a former one."""
    return "Yes" if yes else "No"


def write(yes: bool, explanation: str, *, json: bool = False) -> str:
    """The reply in the format asked for."""
    why = one_line(explanation)
    return JSON.write(word(yes), why) if json else f"Choice: {word(yes)}\nExplanation: {why}"


def read(text: str, shown: str) -> Decision:
    """The decision; the word stands after the heading or, without one, at the very beginning.

    A heading that comes again may only say the same. ``shown`` is what the model was given, by whose words and writing
    systems the language is judged. Raises :class:`Unreadable`: ``both`` where the reply says yes and no, ``unmatched``
    where it says neither (the words of other languages are neither), or a lapse. Nothing but the word itself is ever
    taken for a no.
    """
    answer = clean(text)
    headings = list(_HEADING.finditer(answer))
    starts = [heading.end() for heading in headings] or [0]
    ends = [heading.start() for heading in headings[1:]] + [len(answer)]
    (said, why), *others = (_parted(answer[start:end]) for start, end in zip(starts, ends, strict=True))
    yes, rest = _verdict(said, why, shown)
    again = [found for other, _ in others if (found := _VERDICT.match(unwrap(other)))]
    if any((found[1].lower() == "yes") != yes for found in again):
        raise Unreadable("both", f"the reply decides more than once, and differently: {first_words(answer)}")
    return _decided(yes, why or rest, shown)


def read_json(text: str, shown: str) -> Decision:
    """The same from a reply in JSON; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    if fields is None:
        return read(text, shown)
    said, why = text_of(fields, "choice"), str(fields.get("explanation", ""))
    return _decided(_verdict(said, why, shown)[0], why, shown)


def _parted(text: str) -> tuple[str, str]:
    """What stands before the explanation, and the explanation."""
    explained = _EXPLANATION.search(text)
    return (text[: explained.start()], text[explained.end() :]) if explained else (text, "")


def _verdict(text: str, why: str, shown: str) -> tuple[bool, str]:
    """Yes or no, and what is said behind it."""
    said = unwrap(text)
    if _EITHER.match(said):
        raise Unreadable("both", f"the reply says yes and no: {first_words(said)}")
    found = _VERDICT.match(said)
    if found is None:
        detail = f"neither Yes nor No stands first in {first_words(said)}"
        raise explain(f"{said}\n{why}", shown, "unmatched", detail)
    return found[1].lower() == "yes", said[found.end() :]


def _decided(yes: bool, why: str, shown: str) -> Decision:
    reasons = unwrap(why)
    try:
        refuse_lapse(reasons, shown)
    except Unreadable as lapse:
        # Regret ("I'm sorry, but it is too loud") is a reason, and a word that can be read counts in any language.
        if lapse.reason == "off_role":
            raise
    return Decision(yes, reasons)
