"""How the lexical backend reviews an item, talks about one, and decides whether to buy it.

It buys what appeals to it by at least ``ENOUGH`` (:func:`~simengine.llm.backends.lexical.score.appeal`). What others
say of the item is read as a taste like any other text: whoever has the item's own phrases among his likes speaks for
it, among his dislikes against it. He is believed a little whoever he is (``HEARSAY``), and the more, the more of what
he loves the reader loves too (``TRUST``). Several voices count by their mean.

A review names the item and those of its features that meet the writer's likes, or his dislikes, and what else he loves.
In a talk the buyer says what he likes, the owner what the buyer will not like in the item and what he has written about
it, and the buyer says goodbye.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from simengine.llm.backends.lexical import text as lt
from simengine.llm.backends.lexical.score import appeal
from simengine.llm.backends.lexical.shown import Shown
from simengine.llm.replies import decision, talk
from simengine.llm.replies.headed import REVIEW_TEXT

ENOUGH = 0.5
"""How much an item must appeal to be bought: half as much as if each of its words were a like of one's own."""
HEARSAY = 0.1
"""What one voice adds to an item's appeal, or takes from it, whatever its taste."""
TRUST = 1.0
"""What it adds or takes beside that if all that it loves is loved by the reader."""
REVIEW_LIMIT, TURN_LIMIT = 50, 80
"""Word limits where the prompt states none."""
OWNER = "Owner:"
"""How a line of a talk begins that the owner has said."""


def _review(shown: Shown) -> str:
    taste, own, limit = shown.taste, shown.options[0].own, shown.limit(REVIEW_LIMIT)
    liked, dislikes = _common(own, (*taste.loves, *taste.likes)), shown.text("verdict") == "dislike"
    if dislikes:
        verdict = lt.Taste(dislikes=_named(shown, _common(own, taste.dislikes) or lt.distinct(own, without=liked)))
    else:
        verdict = lt.Taste(likes=_named(shown, liked))
    # a title may be longer than the whole review
    said = lt.write_taste(verdict, limit, 1.0) or ("I dislike it." if dislikes else "I like it.")
    beside = lt.Taste(loves=lt.distinct(taste.loves, without=own))
    loves = lt.write_taste(beside, limit - len(said.split()), 1.0)
    return REVIEW_TEXT.write(" ".join(filter(None, (said, loves))), json=shown.json)


def _decide(shown: Shown) -> str:
    taste, option = shown.taste, shown.options[0]
    voices = [lt.read_taste(text, shown.noun) for text in _voices(shown)]
    moved = [_moved(voice, taste, option.own) for voice in voices]
    liking = appeal(option, taste) + (fmean(moved) if moved else 0.0)
    said = {
        "It has what I like": _common(option.own, (*taste.loves, *taste.likes)),
        "It has what I dislike": _common(option.own, taste.dislikes),
    }
    why = [f"{what}: {'; '.join(phrases)}." for what, phrases in said.items() if phrases]
    why += [*_told("for", voices, moved, taste), *_told("against", voices, [-by for by in moved], taste)]
    return decision.write(liking >= ENOUGH, " ".join(why) or "I know nothing that speaks for it.", json=shown.json)


def _voices(shown: Shown) -> list[str]:
    """What others say: each review by itself, and what the owner has said in a talk."""
    said = [line.removeprefix(OWNER) for line in shown.texts("dialogue") if line.startswith(OWNER)]
    return [*shown.texts("reviews"), *([" ".join(said)] if said else [])]


def _moved(voice: lt.Taste, taste: lt.Taste, own: Sequence[str]) -> float:
    """What a voice adds to the item's appeal: nothing where it does not say whether it likes what the item has."""
    praised, blamed = len(_same(own, (*voice.loves, *voice.likes))), len(_same(own, voice.dislikes))
    loves = lt.distinct(voice.loves, without=own)
    kinship = len(_same(loves, taste.loves)) / len(loves) if loves else 0.0
    return ((praised > blamed) - (praised < blamed)) * (HEARSAY + TRUST * kinship)


def _told(way: str, voices: Sequence[lt.Taste], moved: Sequence[float], taste: lt.Taste) -> Iterator[str]:
    """That others speak for the item, or against it, and what they love and the reader loves too."""
    found = [voice for voice, by in zip(voices, moved, strict=True) if by > 0]
    shared = lt.distinct(_same([phrase for voice in found for phrase in voice.loves], taste.loves))
    if found:
        yield (
            f"Others speak {way} it, who love what I love: {'; '.join(shared)}."
            if shared
            else f"Others speak {way} it."
        )


def _talk(shown: Shown) -> str:
    limit = shown.limit(TURN_LIMIT)
    if not shown.texts("dialogue"):
        opening = "Do you think that this is for me?"
        about = lt.write_taste(shown.taste, limit - len(opening.split()), 0.75).replace("\n", " ")
        return talk.write(f"{opening} {about}", False, json=shown.json)
    if shown.text("review"):
        return talk.write(_advice(shown, limit), False, json=shown.json)
    return talk.write("Thank you, that helps me. Goodbye!", True, json=shown.json)


def _advice(shown: Shown, limit: int) -> str:
    """What the owner says: what the buyer will not like about the item, and then his own review of it."""
    buyer = lt.read_taste(" ".join(line for line in shown.texts("dialogue") if not line.startswith(OWNER)), shown.noun)
    against = _common(shown.options[0].own, buyer.dislikes)
    warning = f"You may not like {', '.join(against)}. " if against else ""
    words = f"{warning}{shown.text('review')}".split()
    return " ".join(words[:limit])


def _named(shown: Shown, features: Sequence[str]) -> tuple[str, ...]:
    """Features with the title before them; all that the item has where there are none."""
    return lt.distinct((shown.titles[0], *(features or shown.options[0].own)))


def _common(phrases: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """Those phrases that have a word in common with one of ``others``."""
    words = {word for other in others for word in lt.terms(other)}
    return tuple(phrase for phrase in phrases if not words.isdisjoint(lt.terms(phrase)))


def _same(phrases: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """Those phrases that are among the others."""
    held = {lt.terms(other) for other in others}
    return tuple(phrase for phrase in phrases if lt.terms(phrase) in held)


ANSWERS: Mapping[str, Callable[[Shown], str]] = {"review": _review, "decide": _decide, "talk": _talk}
"""The tasks of reviews and discussions."""
