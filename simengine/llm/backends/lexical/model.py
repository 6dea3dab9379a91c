"""The embedded default backend: decides and writes by word overlap alone, deterministic, no model, no network.

It is rule-based text, not a language model, but it stands where one would: it sees the slots that are in the rendered
prompt and nothing else, and answers in the same formats (in JSON where a schema is given), through the same parsers.

How it decides: by the overlap of the memory's liked and disliked phrases with the options' words
(:mod:`~simengine.llm.backends.lexical.score`). In a choice the first option gets ``POSITION_PULL`` on top, which
decides where nothing is known; in a ranking the position only breaks ties. What is taken around a user counts beside
it (:mod:`~simengine.llm.backends.lexical.groups`).

How it learns: a user likes the phrases of the item preferred, what it has gathered from others included, loves what he
liked before already, and dislikes what is the rejected item's own. An item preferred gathers its adopter's love and
newest likes that are not its own. New phrases stand first, and what does not fit into the word limit falls off the
end: so a preference travels from user to item to user, and is forgotten unless it comes up again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simengine.errors import CallFailed
from simengine.llm.backends.lexical import (
    advertising,
    baselines,
    cold_start,
    converse,
    demonstrate,
    groups,
    opinions,
    probe,
    seeker,
)
from simengine.llm.backends.lexical import text as lt
from simengine.llm.backends.lexical.groups import trend, trending
from simengine.llm.backends.lexical.score import scores
from simengine.llm.backends.lexical.shown import Shown
from simengine.llm.replies import choice, descriptions, ranking, reflection, selfintro
from simengine.llm.request import Completion, Request

POSITION_PULL = 0.1
"""Added to the first option's score in a choice: less than what one liked word adds, more than nothing."""
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
        shown = Shown(request)
        if not shown.options and request.task not in WITHOUT_OPTIONS:
            raise CallFailed(
                f"the lexical backend finds no options in the prompt of {request.task!r}",
                reason="unsupported",
                remedy="Let the template show every text of the slot `options`, or use a language model.",
                call=request.call or None,
            )
        return Completion(text=answer(shown), model="lexical")


def _choose(shown: Shown) -> str:
    found = _weighed(shown, shown.taste)
    pulled = [score + POSITION_PULL * (at == 0) for at, score in enumerate(found)]
    best = max(range(len(pulled)), key=lambda at: pulled[at])
    return choice.write(shown.noun, shown.titles, best, _reasons(shown, best), json=shown.json)


def _weighed(shown: Shown, taste: lt.Taste) -> list[float]:
    """The options by the taste, and by what is taken around the user."""
    return [mine + theirs for mine, theirs in zip(scores(shown.options, taste), trend(shown), strict=True)]


def _judge(shown: Shown) -> str:
    """As between items, by what the advertisements say; what they are called says nothing."""
    shown.options = advertising.claims(shown)
    return _choose(shown)


def _reasons(shown: Shown, best: int) -> str:
    option, taste = shown.options[best], shown.taste
    liked = _overlapping(option.own, (*taste.loves, *taste.likes))
    others = _overlapping(option.gathered, (*taste.loves, *taste.likes))
    rest = [phrase for at, other in enumerate(shown.options) if at != best for phrase in other.own]
    disliked = _overlapping(rest, taste.dislikes)
    said = [f"It meets what I like: {'; '.join(liked)}."] if liked else []
    said += [f"Those who took it share what I like: {'; '.join(others)}."] if others else []
    said += [f"The other has what I dislike: {'; '.join(disliked)}."] if disliked else []
    around = _overlapping(option.own, tuple(trending(shown)))
    said += [f"People like me go for it now: {'; '.join(around)}."] if around else []
    return " ".join(said) or "Nothing that I know of my taste tells them apart, so I take what stands first."


def _overlapping(phrases: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Those phrases that have a word in common with one of ``others``."""
    words = {word for other in others for word in lt.terms(other)}
    return lt.distinct(phrase for phrase in phrases if not words.isdisjoint(lt.terms(phrase)))


def _rank(shown: Shown) -> str:
    found = _weighed(shown, _remembered(shown))
    order = sorted(range(len(found)), key=lambda at: -found[at])  # stable: position breaks ties
    return ranking.write([shown.titles[at] for at in order], json=shown.json)


def _remembered(shown: Shown) -> lt.Taste:
    """The taste, with what a former memory adds to it, and what the user has had so far, the newest first."""
    taste, former = shown.taste, lt.read_taste(shown.text("retrieved"), shown.noun)
    past = [phrase for had in reversed(shown.texts("history")) for phrase in shown.option(had, lt.name(had)).own]
    more = lt.distinct((*former.loves, *former.likes, *past), without=(*taste.loves, *taste.likes))
    less = lt.distinct(former.dislikes, without=(*taste.dislikes, *taste.loves, *taste.likes, *more))
    return lt.Taste(taste.loves, (*taste.likes, *more), (*taste.dislikes, *less))


def _learnt(shown: Shown) -> lt.Taste:
    """The taste after a step: of what is new, that which the rejected item lacks stands first."""
    taste, outcome = shown.taste, shown.outcome()
    if outcome is None:
        return taste
    preferred, rejected = (shown.options[at] for at in outcome)
    known = (*taste.loves, *taste.likes)
    # A title that is liked already tells that this very item was learnt, in the round before for instance.
    again = () if _held([shown.titles[outcome[0]]], known) else _held(preferred.own, known)
    loves = lt.distinct((*again, *taste.loves))
    news = (*lt.distinct((*preferred.own, *preferred.gathered), without=rejected.own), *preferred.own)
    likes = lt.distinct((*news, *taste.likes), without=loves)
    dislikes = lt.distinct((*rejected.own, *taste.dislikes), without=(*loves, *likes))
    return lt.Taste(loves, likes, dislikes)


def _held(phrases: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Those phrases that are among the known ones."""
    held = {lt.terms(phrase) for phrase in known}
    return tuple(phrase for phrase in phrases if lt.terms(phrase) in held)


def _reflect_user(shown: Shown) -> str:
    text = lt.write_taste(_learnt(shown), shown.limit(USER_LIMIT), LIKES_SHARE)
    return selfintro.write(text, json=shown.json)


def _reflect_item(shown: Shown) -> str:
    """The preferred item gathers what its adopter loves most and likes newest; the rejected one stays as it is."""
    texts, outcome = list(shown.descriptions), shown.outcome()
    if outcome is not None:
        at, _ = outcome
        own, gathered = shown.options[at]
        new = lt.distinct((*shown.taste.loves[:1], *shown.taste.likes), without=own)[:ADOPTER_PHRASES]
        texts[at] = lt.write_description(
            lt.identity(texts[at]), lt.distinct((*new, *gathered)), shown.limit(ITEM_LIMIT)
        )
    return descriptions.write(shown.noun, *texts, json=shown.json)


def _analyse(shown: Shown) -> str:
    """What the next update will make of a step, in words: for a user's side and for an item's alike."""
    before, after = shown.taste, _learnt(shown)
    known = (*before.loves, *before.likes)
    parts = {
        "This choice confirms": lt.distinct(after.loves, without=before.loves),
        "What is newly liked": lt.distinct(after.likes, without=known),
        "What is newly disliked": lt.distinct(after.dislikes, without=before.dislikes),
        "What no longer holds": lt.distinct(before.dislikes, without=after.dislikes),
    }
    said = [f"{what}: {'; '.join(phrases)}." for what, phrases in parts.items() if phrases]
    return reflection.write(" ".join(said) or "This choice tells nothing new.", json=shown.json)


WITHOUT_OPTIONS: frozenset[str] = frozenset(
    (
        *advertising.ANSWERS,
        *baselines.ANSWERS,
        *converse.ANSWERS,
        *demonstrate.ANSWERS,
        *seeker.ANSWERS,
        *groups.ANSWERS,
        *probe.ANSWERS,
    )
)
"""The tasks in which a prompt may show no options."""
_ANSWERS: dict[str, Callable[[Shown], str]] = {
    "choose": _choose,
    "rank": _rank,
    "reflect.user": _reflect_user,
    "reflect.item": _reflect_item,
    "analyse.user": _analyse,
    "analyse.item": _analyse,
    "advertising.judge": _judge,
    **cold_start.ANSWERS,
    **advertising.ANSWERS,
    **baselines.ANSWERS,
    **converse.ANSWERS,
    **demonstrate.ANSWERS,
    **seeker.ANSWERS,
    **groups.ANSWERS,
    **opinions.ANSWERS,
    **probe.ANSWERS,
}
