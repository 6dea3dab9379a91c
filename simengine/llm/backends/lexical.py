"""The embedded default backend: decides and writes by word overlap alone, deterministic, no model, no network.

It is rule-based text, not a language model, but it stands where one would: it sees the slots that are in the rendered
prompt and nothing else, and answers in the same formats, through the same parsers.

How it decides: the memory is split into liked and disliked phrases. A word of an option weighs
``log(options / options with it)``, so that a word in all options says nothing, times ``log2(1 + n)`` for ``n`` phrases
that like it, less ``DISLIKE_WEIGHT`` times the same for phrases that dislike it. An option's score is the sum over its
words, divided by the square root of their number, so that a long description does not win by its length. In a choice
the first option gets ``POSITION_PULL`` on top, which decides where nothing is known; in a ranking the position only
breaks ties.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from simengine.errors import CallFailed
from simengine.llm.backends import lexical_text as lt
from simengine.llm.replies import choice, descriptions, ranking, selfintro
from simengine.llm.request import Completion, Request

POSITION_PULL = 0.1
"""Added to the first option's score in a choice: about half of what one liked word adds to ten words of description."""
DISLIKE_WEIGHT = 0.5
"""A disliked word against a liked one: what a user leaves is weaker evidence than what a user takes."""
LIKES_SHARE = 0.75
"""The part of a self-introduction's word limit that likes may fill."""
ADOPTER_PHRASES = 4
"""How many phrases of one adopter enter an item's description at once, so that it keeps room for earlier ones."""
USER_LIMIT, ITEM_LIMIT = 180, 50
"""Word limits where the prompt states none."""


class Lexical:
    """A :class:`~simengine.llm.request.LanguageModel` made of rules. Its usage is unknown: it counts no tokens."""

    async def complete(self, request: Request) -> Completion:
        """The answer to one of the tasks it knows; :class:`CallFailed` (``unsupported``) for any other."""
        answer = _ANSWERS.get(request.task)
        if answer is None:
            raise CallFailed(
                f"the lexical backend does not know the task {request.task!r}",
                reason="unsupported",
                remedy=f"It knows {', '.join(_ANSWERS)}; use a language model for others.",
                call=request.call or None,
            )
        return Completion(text=answer(_Shown(request)), model="lexical")


class _Shown:
    """The slots of a request, as far as they were shown; what was withheld reads as empty."""

    def __init__(self, request: Request) -> None:
        self._slots = request.slots
        self.noun = self.text("noun") or "item"
        self.options = self.texts("options")
        titles = self.texts("titles")
        # Where the prompt lists no titles, what an item says of itself names it as well.
        self.titles = titles if len(titles) == len(self.options) else tuple(map(lt.identity, self.options))
        self.taste = lt.read_taste(self.text("memory"), self.noun)

    def text(self, name: str) -> str:
        return " ".join(self.texts(name))

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._slots.get(name, ())
        return (value,) if isinstance(value, str) else value

    def limit(self, otherwise: int) -> int:
        text = self.text("limit").strip()
        return int(text) if text.isdecimal() else otherwise

    def phrases(self, index: int) -> tuple[str, ...]:
        """All phrases of an option: its own, then those of its adopters."""
        option = self.options[index]
        own = lt.own_phrases(option, self.titles[index])
        return lt.distinct((*own, *lt.gathered_phrases(option)), without=(self.noun,))

    def outcome(self) -> tuple[int, int] | None:
        """The positions of the preferred and the rejected option; ``None`` where the titles do not tell."""
        ends = [self._position(self.text("preferred")), self._position(self.text("rejected"))]
        first, second = ends
        return None if first is None or second is None or first == second else (first, second)

    def _position(self, title: str) -> int | None:
        found = [at for at, known in enumerate(self.titles) if known and known == title]
        return found[0] if len(found) == 1 else None


def scores(options: Sequence[Sequence[str]], taste: lt.Taste) -> list[float]:
    """The score of each option, given as its phrases; independent of the options' order to the last bit."""
    words = [{word for phrase in phrases for word in lt.terms(phrase)} for phrases in options]
    liked = Counter(word for phrase in taste.likes for word in sorted(set(lt.terms(phrase))))
    disliked = Counter(word for phrase in taste.dislikes for word in sorted(set(lt.terms(phrase))))
    spread = Counter(word for found in words for word in found)

    def weight(word: str) -> float:
        wanted = math.log2(1 + liked[word]) - DISLIKE_WEIGHT * math.log2(1 + disliked[word])
        return math.log(len(options) / spread[word]) * wanted

    return [math.fsum(map(weight, found)) / math.sqrt(len(found) or 1) for found in words]  # fsum: any order, same sum


def _choose(shown: _Shown) -> str:
    found = scores([shown.phrases(at) for at in range(len(shown.options))], shown.taste)
    pulled = [score + POSITION_PULL * (at == 0) for at, score in enumerate(found)]
    best = max(range(len(pulled)), key=lambda at: pulled[at])
    return choice.write(shown.noun, shown.titles, best, _reasons(shown, best))


def _reasons(shown: _Shown, best: int) -> str:
    liked = [phrase for phrase in shown.phrases(best) if _overlaps(phrase, shown.taste.likes)]
    others = [phrase for at in range(len(shown.options)) if at != best for phrase in shown.phrases(at)]
    disliked = [phrase for phrase in lt.distinct(others) if _overlaps(phrase, shown.taste.dislikes)]
    said = [f"It meets what I like: {'; '.join(liked)}."] if liked else []
    said += [f"The other has what I dislike: {'; '.join(disliked)}."] if disliked else []
    return " ".join(said) or "Nothing that I know of my taste tells them apart, so I take what stands first."


def _overlaps(phrase: str, others: Sequence[str]) -> bool:
    return any(set(lt.terms(phrase)) & set(lt.terms(other)) for other in others)


def _rank(shown: _Shown) -> str:
    found = scores([shown.phrases(at) for at in range(len(shown.options))], shown.taste)
    order = sorted(range(len(found)), key=lambda at: -found[at])  # stable: position breaks ties
    return ranking.write([shown.titles[at] for at in order])


def _reflect_user(shown: _Shown) -> str:
    """The preferred item's phrases first, those that the rejected one lacks foremost, then what was liked before."""
    taste, outcome = shown.taste, shown.outcome()
    if outcome is not None:
        preferred, rejected = (shown.phrases(at) for at in outcome)
        likes = lt.distinct((*lt.distinct(preferred, without=rejected), *preferred, *taste.likes))
        taste = lt.Taste(likes, lt.distinct((*rejected, *taste.dislikes), without=likes))
    return selfintro.write(lt.write_taste(taste, shown.limit(USER_LIMIT), LIKES_SHARE))


def _reflect_item(shown: _Shown) -> str:
    """The preferred item gathers the adopter's newest likes; the rejected one stays as it is."""
    texts, outcome = list(shown.options), shown.outcome()
    if outcome is not None:
        at, _ = outcome
        about, own = lt.identity(texts[at]), lt.own_phrases(texts[at], shown.titles[at])
        new = lt.distinct(shown.taste.likes, without=own)[:ADOPTER_PHRASES]
        gathered = lt.distinct((*new, *lt.gathered_phrases(texts[at])))
        texts[at] = lt.write_description(about, gathered, shown.limit(ITEM_LIMIT))
    return descriptions.write(shown.noun, *texts)


_ANSWERS: dict[str, Callable[[_Shown], str]] = {
    "choose": _choose,
    "rank": _rank,
    "reflect.user": _reflect_user,
    "reflect.item": _reflect_item,
}
