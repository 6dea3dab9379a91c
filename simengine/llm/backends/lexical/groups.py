"""How the lexical backend carries tastes between domains, names interests, and goes along with what its groups take.

From other domains it takes what it loves, then what it likes newest; in a fused memory these come by turns with what
it likes in the domain itself. Its tags are its loves, then its newest likes, the first words of what is long. What
several things have in common that a group's members took lately (:func:`trending`) is weighed as if it were liked, at
``TREND`` of a taste of one's own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest

from simengine.llm.backends.lexical import text as lt
from simengine.llm.backends.lexical.score import by_words, words_of
from simengine.llm.backends.lexical.shown import Shown
from simengine.llm.replies import selfintro, tags
from simengine.llm.replies.headed import GROUP_NAME, PREFERENCES

TREND = 0.5
"""What is taken around one, against what one likes oneself."""
CARRIED = 8
"""How many likes of one domain are carried over to another."""
LIKES_SHARE = 0.75
"""The part of a memory's word limit that likes may fill."""
MEMORY_LIMIT, TAGS = 180, 8
"""The word limit of a memory, and the number of tags, where the prompt states none."""
_ENTRY = "- "


def trend(shown: Shown) -> list[float]:
    """What each option gains by what is taken around the user; independent of the options' order."""
    return [TREND * score for score in by_words(shown.options, trending(shown))]


def trending(shown: Shown) -> Mapping[str, float]:
    """The words that several things in one group's view have in common: how many after the first, on the mean of views.

    What one thing alone has may be its taker's whim; what several have is what people turn to.
    """
    views = shown.texts("views")
    wanted: defaultdict[str, float] = defaultdict(float)
    for view in views:
        entries = (line.removeprefix(_ENTRY) for line in view.splitlines() if line.startswith(_ENTRY))
        options = (shown.option(entry, lt.name(entry)) for entry in entries)
        counts = Counter(word for option in options for word in words_of(option.own))
        for word in sorted(counts):
            if counts[word] > 1:
                wanted[word] += (counts[word] - 1) / len(views)
    return wanted


def _extract(shown: Shown) -> str:
    """What is loved in other domains, and liked newest, by turns."""
    # before the colon stands the name of the domain
    tastes = [lt.read_taste(text.partition(": ")[2], shown.noun) for text in shown.texts("others")]
    loves = [taste.loves[:CARRIED] for taste in tastes]
    likes = [taste.likes[: CARRIED - len(loved)] for taste, loved in zip(tastes, loves, strict=True)]
    carried = lt.Taste(lt.distinct(_by_turns(*loves)), lt.distinct(_by_turns(*likes), without=chain(*loves)))
    text = lt.write_taste(carried, shown.limit(MEMORY_LIMIT), 1.0)
    return PREFERENCES.write(text or "I have no other likes.", json=shown.json)


def _merge(shown: Shown) -> str:
    """Likes of the domain and of others by turns, then former ones; dislikes of the domain alone."""
    own, others = (lt.read_taste(shown.text(name), shown.noun) for name in ("separate", "extracted"))
    former = shown.taste
    loves = lt.distinct(_by_turns(own.loves, others.loves))
    likes = lt.distinct((*_by_turns(own.likes, others.likes), *former.loves, *former.likes), without=loves)
    dislikes = lt.distinct((*own.dislikes, *former.dislikes), without=(*loves, *likes))
    text = lt.write_taste(lt.Taste(loves, likes, dislikes), shown.limit(MEMORY_LIMIT), LIKES_SHARE)
    return selfintro.write(text, json=shown.json)


def _tags(shown: Shown) -> str:
    """Loves, then likes. Of a name that is too long for a tag its beginning is one, which says best what it is."""
    short = lt.distinct(map(_short, (*shown.taste.loves, *shown.taste.likes)))
    return tags.write(short[: shown.limit(TAGS)], json=shown.json)


def _short(phrase: str) -> str:
    words = phrase.split()
    return phrase if len(words) <= tags.LONGEST else lt.trim(" ".join(words[: tags.LONGEST]))


def _name(shown: Shown) -> str:
    """The most frequent tag stands for them all."""
    return GROUP_NAME.write(shown.texts("tags")[0], json=shown.json)


def _by_turns(*lists: Sequence[str]) -> Iterator[str]:
    """The first of each list, then the second of each, and so on."""
    turns: Iterable[tuple[str | None, ...]] = zip_longest(*lists)
    return (phrase for turn in turns for phrase in turn if phrase is not None)


ANSWERS: Mapping[str, Callable[[Shown], str]] = {
    "fuse.extract": _extract,
    "fuse.merge": _merge,
    "group.tags": _tags,
    "group.name": _name,
}
"""The tasks of layers and groups, in which no options are shown."""
