"""How the lexical backend plays the recommenders that an agent with tools is compared with.

As a bare model it knows no catalogue, and can but name what stands in quotation marks in the user's own words; most of
the time that is nothing. A list of the user's it puts in order by its words. As a model that is shown candidates it
picks those that meet most of the conditions that the user has told, in the order shown where they meet as many; what he
has had, or has been recommended before and gone on from, it leaves out. It is never told which candidate is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from simengine.llm.backends.lexical import one_turn
from simengine.llm.backends.lexical.converse import TAKEN, TITLES_HAD, YEAR
from simengine.llm.backends.lexical.shown import Shown
from simengine.llm.replies import recommendation

_USER, _OTHER = "User: ", "Recommender: "
_QUOTED = re.compile(r'["“]([^"“”\n]+)["”]')
_RECOMMENDED = re.compile(r"\bI recommend: (.+)\.\Z")
_VISITS = re.compile(r"\Ataken (\d+) times")
_ASK = "Nothing that I know of is like that. Tell me more of what you are looking for."


def _bare(shown: Shown) -> str:
    if titles := one_turn.listed(shown.text("request")):
        return _written(shown, one_turn.in_order(titles, _had(shown)))
    named = dict.fromkeys(title for line in _told(shown) for title in _QUOTED.findall(line))
    return _written(shown, [title for title in named if title not in _out(shown)])


def _chat_rec(shown: Shown) -> str:
    out, wanted = _out(shown), _Wanted(_told(shown))
    left = [at for at, title in enumerate(shown.titles) if title not in out]
    met = {at: sum(map(wanted.met_by, shown.descriptions[at].split("; "))) for at in left}
    order = sorted(left, key=lambda at: -met[at])  # stable: what is nearer comes first
    return _written(shown, [shown.titles[at] for at in order])


class _Wanted:
    """What a user has told that he looks for: the words, titles of what he has had aside, years, and ranges."""

    def __init__(self, said: Sequence[str]) -> None:
        words = "\n".join(TITLES_HAD.sub("", line) for line in said)
        self._words = words.casefold()
        self._years = frozenset(YEAR.findall(words))
        self._ranges = [(int(low), int(high)) for low, high in TAKEN.findall(words)]

    def met_by(self, attribute: str) -> bool:
        """Whether this attribute is one that was told."""
        if visits := _VISITS.match(attribute):
            return any(low <= int(visits[1]) <= high for low, high in self._ranges)
        if year := YEAR.match(attribute):
            return year[1] in self._years
        whole = rf"(?<!\w){re.escape(attribute.casefold())}(?!\w|\.\d)"
        return re.search(whole, self._words) is not None


def _out(shown: Shown) -> frozenset[str]:
    """What the user has had, and what was recommended before."""
    return frozenset((*_had(shown), *_recommended(shown)))


def _had(shown: Shown) -> list[str]:
    return [title for line in _told(shown) for found in TITLES_HAD.finditer(line) for title in found[1].split("; ")]


def _told(shown: Shown) -> list[str]:
    """All that the user has said in the talk."""
    own = (line.removeprefix(_USER) for line in shown.texts("dialogue") if line.startswith(_USER))
    return [*own, shown.text("request")]


def _recommended(shown: Shown) -> Iterator[str]:
    for line in shown.texts("dialogue"):
        if line.startswith(_OTHER) and (found := _RECOMMENDED.search(line)):
            yield from found[1].split("; ")


def _written(shown: Shown, titles: list[str]) -> str:
    most = int(shown.text("count") or 0)
    said = "What about these?" if titles else _ASK
    return recommendation.write(said, titles[:most], json=shown.json)


ANSWERS: Mapping[str, Callable[[Shown], str]] = {"converse.bare": _bare, "converse.chat_rec": _chat_rec}
"""The tasks of these recommenders."""
