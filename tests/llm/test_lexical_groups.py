"""The rules that stand in for a model where tastes cross domains, interests get names, groups show what they took."""

from __future__ import annotations

import asyncio

import pytest

from simengine.llm.backends.lexical import Lexical
from simengine.llm.replies import choice, ranking, selfintro, tags
from simengine.llm.replies.headed import GROUP_NAME, PREFERENCES
from simengine.llm.request import Request

TITLES = ("Umbra", "Tabor")
OPTIONS = ('"Umbra" is a thing filed under: rain gear; cloth.', '"Tabor" is a thing filed under: camping kit; canvas.')
RAIN, CAMP = (
    f'In the group "walk":\n- "{one}" is a thing filed under: {kind}; new.\n- "{other}" is a thing filed under: {kind}.'
    for one, other, kind in (("Cape", "Coat", "rain gear"), ("Stove", "Mat", "camping kit"))
)


def answer(task: str, **slots: str | tuple[str, ...]) -> str:
    request = Request(task=task, model="lexical", messages=(), slots={"noun": "thing", **slots})
    return asyncio.run(Lexical().complete(request)).text


def _extracted(*others: str, **slots: str) -> str:
    return PREFERENCES.read(answer("fuse.extract", others=others, domain="film", **slots), "")


def test_loves_of_other_domains_are_carried_over_then_likes_by_turns() -> None:
    found = _extracted("book: I love: quays.\nI like: tides; fog.\nI dislike: sand.", "album: I like: brass; bells.")
    assert found == "I love: quays.\nI like: tides; brass; fog; bells."


def test_what_is_carried_over_keeps_to_the_limit() -> None:
    many = "; ".join(f"w{at}" for at in range(30))
    assert len(_extracted(f"book: I like: {many}.", limit="6").split()) <= 6
    assert _extracted(f"book: I like: {many}.").count(";") == 7  # eight of one domain


def test_nothing_is_carried_over_from_dislikes() -> None:
    assert _extracted("book: I dislike: sand.") == "I have no other likes."


def _merged(**slots: str) -> str:
    return selfintro.read(answer("fuse.merge", **slots), "")


def test_a_fused_memory_has_both_by_turns_then_what_was_known() -> None:
    found = _merged(
        memory="I love: old.\nI like: older.\nI dislike: salt.",
        separate="I love: noir.\nI like: rain; night.\nI dislike: songs.",
        extracted="I love: quays.\nI like: tides.",
    )
    assert found == "I love: noir; quays.\nI like: rain; tides; night; old; older.\nI dislike: songs; salt."


def test_what_is_liked_here_is_not_disliked_from_before() -> None:
    assert _merged(memory="I dislike: rain.", separate="I like: rain.") == "I like: rain."


def test_nothing_extracted_adds_nothing() -> None:
    assert _merged(separate="I like: rain.", extracted="I have no other likes.") == "I like: rain."


def test_tags_are_loves_then_likes_as_many_as_are_asked_for() -> None:
    text = "I love: noir.\nI like: rain; night walks.\nI dislike: songs."
    assert tags.read(answer("group.tags", memory=text), "") == ("noir", "rain", "night walks")
    assert tags.read(answer("group.tags", memory=text, limit="2"), "") == ("noir", "rain")


def test_a_long_name_is_a_tag_by_its_first_words() -> None:
    """A shop's titles run to whole sentences. A tag has eight words at most, and its last one says something."""
    long = "Slim Steel Trash Can with a Lid, for"
    found = tags.read(
        answer("group.tags", memory=f"I like: {long} the Kitchen, in Blue; personal care; {long} Dogs of all ages."), ""
    )
    assert found == ("slim steel trash can with a lid", "personal care")


def test_a_group_is_called_by_its_most_frequent_tag() -> None:
    assert GROUP_NAME.read(answer("group.name", tags=("slow jazz", "jazz")), "") == "slow jazz"


@pytest.mark.parametrize(("views", "taken"), [((), 0), ((RAIN,), 0), ((CAMP,), 1)])
def test_a_choice_goes_along_with_what_is_taken_around(views: tuple[str, ...], taken: int) -> None:
    slots = {"views": views} if views else {}
    found = choice.read(answer("choose", options=OPTIONS, titles=TITLES, **slots), TITLES)
    assert found.index == taken
    assert ("People like me" in found.explanation) == bool(views)


def test_a_ranking_goes_along_with_it_too_and_the_order_shown_does_not_matter() -> None:
    for views, first in (((RAIN,), "Umbra"), ((CAMP,), "Tabor")):
        for turn in (1, -1):
            titles = TITLES[::turn]
            found = ranking.read(answer("rank", options=OPTIONS[::turn], titles=titles, views=views), titles)
            assert titles[found.order[0]] == first


def test_a_taste_of_ones_own_goes_before_a_fashion() -> None:
    love = {"memory": "I love: camping kit; canvas.", "views": (RAIN,)}
    assert choice.read(answer("choose", options=OPTIONS, titles=TITLES, **love), TITLES).index == 1


def test_both_layers_of_memory_count() -> None:
    for name in ("memory", "fused"):
        found = answer("choose", options=OPTIONS, titles=TITLES, **{name: "I like: canvas."})
        assert choice.read(found, TITLES).index == 1


def test_the_domain_of_all_that_is_shown_is_no_feature() -> None:
    options = tuple(text.replace("under: ", "under: film; ") for text in OPTIONS)
    text = answer("reflect.user", options=options, titles=TITLES, preferred="Tabor", rejected="Umbra", domain="film")
    assert "film" not in selfintro.read(text, "")
