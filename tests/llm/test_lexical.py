"""The lexical backend: what it learns, what it forgets, and that it is moved by nothing that it should not see."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.errors import CallFailed
from simengine.llm import task
from simengine.llm.backends.lexical import text as lt
from simengine.llm.backends.lexical.model import ITEM_LIMIT, POSITION_PULL, USER_LIMIT, Lexical
from simengine.llm.backends.lexical.score import Option, scores
from simengine.llm.prompts import PromptBook, Slot
from simengine.llm.request import Message, Request, Usage
from simengine.llm.task import (
    ANALYSE_ITEM,
    ANALYSE_USER,
    CHOOSE,
    RANK,
    REFLECT_ITEM_WRONG,
    REFLECT_USER_RIGHT,
    REFLECT_USER_WRONG,
    Task,
)

PACKAGED = files("simengine") / "methods" / "prompts" / "agentcf"
BOOK = PromptBook([PACKAGED])
GENRES = ("Pop", "Classic Rock", "Album-Oriented Rock (AOR)", "Jazz", "Vocal Jazz", "Blues", "Folk", "R&B", "Disco")
NAMES = ("Alpha", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot", "Golf", "Hotel", "India", "Juliett")
CATEGORY = st.lists(st.sampled_from(GENRES), max_size=3, unique=True).map("; ".join)
LISTED = st.lists(st.sampled_from(GENRES), min_size=1, unique=True).map("; ".join)
MEMORY = st.tuples(LISTED, LISTED, LISTED).map("I love: {0[0]}.\nI like: {0[1]}.\nI dislike: {0[2]}.".format)


def item(title: str, category: str) -> str:
    return BOOK.text("item", {"title": title, "category": category}, "CD")


def option(title: str, category: str) -> Option:
    """What the backend sees in an item that has gathered nothing: title and category, not that it is a CD."""
    return Option(lt.distinct(lt.own_phrases(item(title, category), title), without=("CD",)))


def reply(what: Task[object], slots: dict[str, Slot], book: PromptBook = BOOK) -> str:
    rendered = book.render(what.template, slots, "CD")
    request = Request(what.name, "lexical", rendered.messages, slots=rendered.slots)
    return asyncio.run(Lexical().complete(request)).text


def ask(what: Task[task.T], slots: dict[str, Slot], book: PromptBook = BOOK) -> task.T:
    return what.read(reply(what, slots, book), slots)


def shown(memory: str, *items: tuple[str, str]) -> dict[str, Slot]:
    titles = tuple(title for title, _ in items)
    options = tuple(item(*one) for one in items)
    return {"memory": memory, "retrieved": "", "history": (), "options": options, "titles": titles}


def tried(memory: str, rejected: tuple[str, str], preferred: tuple[str, str], limit: int) -> dict[str, Slot]:
    slots = shown(memory, rejected, preferred)
    told = {"chosen": rejected[0], "preferred": preferred[0], "rejected": rejected[0]}
    return {**slots, **told, "explanation": "It stands first.", "limit": str(limit), "reflection": ""}


def test_it_takes_what_is_liked_and_leaves_what_is_disliked() -> None:
    slots = shown("I like: Jazz.\nI dislike: Pop.", ("Alpha", "Pop"), ("Bravo", "Jazz"))
    choice = ask(CHOOSE, slots)
    assert choice.index == 1
    assert choice.explanation == "It meets what I like: Jazz. The other has what I dislike: Pop."


def test_memories_written_by_others_are_read() -> None:
    memory = "I enjoy slow jazz with soulful vocals. I don't really care for pop."
    assert lt.read_taste(memory, "CD") == lt.Taste(likes=("slow jazz with soulful vocals",), dislikes=("pop",))
    assert lt.read_taste("I love jazz, but pop bores me.", "CD").likes == ("jazz",)
    assert lt.read_taste("I tend to dislike comedy and opera.", "CD").dislikes == ("comedy", "opera")
    assert ask(CHOOSE, shown(memory, ("Alpha", "Pop"), ("Bravo", "Vocal Jazz"))).index == 1


def test_an_uninformed_user_takes_the_first() -> None:
    new = BOOK.text("user", {}, "CD")
    for items in ((("Alpha", "Pop"), ("Bravo", "Jazz")), (("Bravo", "Jazz"), ("Alpha", "Pop"))):
        choice = ask(CHOOSE, shown(new, *items))
        assert (choice.index, "tells them apart" in choice.explanation) == (0, True)


def best(options: list[Option], taste: lt.Taste) -> int:
    """The option that scores best, and clearly so."""
    found = scores(options, taste)
    first, second = sorted(found)[:-3:-1]
    assert first > second + 1e-9
    return found.index(first)


def test_a_word_that_all_options_have_says_nothing() -> None:
    one, other = scores([Option(("Rock",)), Option(("Rock", "Jazz"))], lt.Taste(likes=("Rock", "Jazz")))
    assert one == 0.0 < other


WEIGHED = {
    "a like that came up again goes before one that did not": (
        lt.Taste(loves=("Jazz",), likes=("Folk",)),
        [Option(("Folk",)), Option(("Jazz",)), Option(("Pop",))],
    ),
    "a new like goes before an old one": (
        lt.Taste(likes=("Jazz", "Blues", "Disco", "Folk")),
        [Option(("Folk",)), Option(("Jazz",)), Option(("Pop",))],
    ),
    "a word that few options have tells more": (
        lt.Taste(likes=("Folk Jazz",)),
        [Option(("Folk",)), Option(("Jazz",)), Option(("Folk",)), Option(("Pop",))],
    ),
    "a long description does not win by its length": (
        lt.Taste(likes=("Jazz", "Folk")),
        [Option(("Folk", "Opera", "Swing", "Ska")), Option(("Jazz",)), Option(("Pop",))],
    ),
    "what is disliked goes behind what is unknown": (
        lt.Taste(dislikes=("Folk",)),
        [Option(("Folk",)), Option(("Jazz",), ("Pop",))],
    ),
    "an item gains by adopters of a like taste": (
        lt.Taste(likes=("Blues",)),
        [Option(("Folk",)), Option(("Jazz",), ("Blues",)), Option(("Pop",))],
    ),
    "but less than by its own words": (
        lt.Taste(likes=("Blues",)),
        [Option(("Folk",), ("Blues",)), Option(("Blues",)), Option(("Pop",))],
    ),
}


@pytest.mark.parametrize("case", WEIGHED)
def test_what_makes_an_option_better(case: str) -> None:
    taste, options = WEIGHED[case]
    if case.startswith("what is disliked"):
        assert scores(options, taste)[0] < 0.0 == scores(options, taste)[1]
    else:
        assert best(options, taste) == 1


@given(memory=MEMORY, first=CATEGORY, second=CATEGORY)
def test_swapping_two_options_moves_the_choice_only_within_the_pull(memory: str, first: str, second: str) -> None:
    items = (("Alpha", first), ("Bravo", second))
    chosen = [ask(CHOOSE, shown(memory, *order)).index for order in (items, items[::-1])]
    one, other = scores([option(*each) for each in items], lt.read_taste(memory, "CD"))
    if abs(one - other) > POSITION_PULL:
        taken = 0 if one > other else 1
        assert chosen == [taken, 1 - taken]
    else:
        assert chosen == [0, 0]


@given(memory=MEMORY, categories=st.lists(CATEGORY, min_size=10, max_size=10), order=st.permutations(range(10)))
def test_positions_only_break_ties_of_a_ranking(memory: str, categories: list[str], order: list[int]) -> None:
    items = list(zip(NAMES, categories, strict=True))
    known = scores([option(*one) for one in items], lt.read_taste(memory, "CD"))
    ranked = ask(RANK, shown(memory, *(items[at] for at in order)))
    assert ranked.missing == ()
    expected = sorted(range(10), key=lambda place: (-known[order[place]], place))
    assert list(ranked.order) == expected


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> PromptBook:
    """A book whose choice prompt shows the options, but no memory."""
    path: Path = tmp_path_factory.mktemp("prompts") / "blind.j2"
    path.write_text(
        "{% block user %}{% for option in options %}{{ option }}\n{% endfor %}{{ titles | join(' / ') }}{% endblock %}",
        encoding="utf-8",
    )
    return PromptBook([PACKAGED], {"choose": path})


@given(memories=st.tuples(MEMORY, MEMORY), first=CATEGORY, second=CATEGORY)
def test_a_prompt_without_the_memory_makes_it_ignore_the_memory(
    blind: PromptBook, memories: tuple[str, str], first: str, second: str
) -> None:
    replies = {reply(CHOOSE, shown(memory, ("Alpha", first), ("Bravo", second)), blind) for memory in memories}
    assert len(replies) == 1
    assert CHOOSE.read(replies.pop(), {"titles": ("Alpha", "Bravo")}).index == 0


def test_without_a_list_of_titles_it_names_items_by_their_own_words(tmp_path: Path) -> None:
    path = tmp_path / "rank.j2"
    path.write_text("{% block user %}{{ memory }}\n{{ options | join('\n') }}{% endblock %}", encoding="utf-8")
    prompts = PromptBook([PACKAGED], {"rank": path})
    slots = shown("I like: Jazz.", ("Alpha", "Pop"), ("Bravo", "Jazz"), ("Charlie", "Folk"))
    assert ask(RANK, slots, prompts).order == (1, 0, 2)


def test_a_user_learns_first_what_tells_the_two_apart_then_keeps_what_was_liked() -> None:
    slots = tried("I like: Blues.\nI dislike: Folk; Jazz.", ("Alpha", "Pop; Disco"), ("Bravo", "Pop; Jazz"), 180)
    for what in (REFLECT_USER_WRONG, REFLECT_USER_RIGHT):
        assert ask(what, slots) == "I like: Bravo; Jazz; Pop; Blues.\nI dislike: Alpha; Disco; Folk."


def test_what_is_liked_again_is_loved_but_one_item_counts_once() -> None:
    slots = tried("I love: Soul.\nI like: Blues; Jazz.", ("Alpha", "Pop"), ("Bravo", "Jazz; Soul"), 180)
    once = ask(REFLECT_USER_WRONG, slots)
    assert once == "I love: Jazz; Soul.\nI like: Bravo; Blues.\nI dislike: Alpha; Pop."
    assert ask(REFLECT_USER_RIGHT, {**slots, "memory": once}) == once


def test_what_the_rejected_item_has_from_its_adopters_is_not_disliked() -> None:
    slots = tried("I like: Blues.", ("Alpha", "Pop"), ("Bravo", "Jazz"), 180)
    options = (item("Alpha", "Pop") + "\nIt suits people who like: Folk.", item("Bravo", "Jazz"))
    new = ask(REFLECT_USER_WRONG, {**slots, "options": options})
    assert new == "I like: Bravo; Jazz; Blues.\nI dislike: Alpha; Pop."


def test_a_user_forgets_the_oldest_first() -> None:
    memory = "I like: Blues; Folk; Disco; Soul; Funk; Country; Opera; Swing."
    new = ask(REFLECT_USER_WRONG, tried(memory, ("Alpha", "Pop"), ("Bravo", "Jazz"), 12))
    assert new == "I like: Bravo; Jazz; Blues; Folk; Disco; Soul; Funk.\nI dislike: Alpha."


def test_a_user_forgets_what_came_up_once_before_what_came_up_again() -> None:
    memory = "I love: Opera; Swing.\nI like: Blues; Folk; Disco; Soul; Funk; Country."
    new = ask(REFLECT_USER_WRONG, tried(memory, ("Alpha", "Pop"), ("Bravo", "Jazz"), 14))
    assert new == "I love: Opera; Swing.\nI like: Bravo; Jazz; Blues; Folk.\nI dislike: Alpha; Pop."


def test_the_lesson_of_a_step_turns_the_next_choice() -> None:
    slots = tried(BOOK.text("user", {}, "CD"), ("Alpha", "Pop"), ("Bravo", "Jazz"), 180)
    assert ask(CHOOSE, slots).index == 0
    assert ask(CHOOSE, {**slots, "memory": ask(REFLECT_USER_WRONG, slots)}).index == 1


def test_an_item_gathers_its_adopters_likes_and_the_other_stays() -> None:
    memory = "I love: Opera; Swing.\nI like: Blues; Jazz; Folk; Soul; Disco."
    slots = tried(memory, ("Alpha", "Pop"), ("Bravo", "Jazz"), 50)
    rejected, preferred = ask(REFLECT_ITEM_WRONG, slots)
    assert rejected == item("Alpha", "Pop")
    assert preferred == '"Bravo" is a CD filed under: Jazz.\nIt suits people who like: Opera; Blues; Folk; Soul.'


def test_an_item_forgets_its_oldest_adopters_first() -> None:
    texts = (item("Alpha", "Pop"), item("Bravo", "Jazz") + "\nIt suits people who like: Blues; Soul.")
    slots = {**tried("I like: Folk; Disco.", ("Alpha", "Pop"), ("Bravo", "Jazz"), 15), "options": texts}
    _, preferred = ask(REFLECT_ITEM_WRONG, slots)
    assert preferred == '"Bravo" is a CD filed under: Jazz.\nIt suits people who like: Folk; Disco; Blues.'


def test_a_preference_travels_through_an_item_to_another_user() -> None:
    slots = tried("I like: banjo duels.", ("Alpha", "Pop"), ("Bravo", "Jazz"), 50)
    carried = ask(REFLECT_ITEM_WRONG, slots)
    other = {**tried("I like: Folk.", ("Alpha", "Pop"), ("Bravo", "Jazz"), 180), "options": carried}
    assert "banjo duels" in ask(REFLECT_USER_WRONG, other)


@pytest.mark.parametrize("what", [ANALYSE_USER, ANALYSE_ITEM])
def test_it_can_say_beforehand_what_it_will_learn(what: Task[str]) -> None:
    memory = "I like: Blues; Jazz.\nI dislike: Soul; Opera."
    slots = tried(memory, ("Alpha", "Pop"), ("Bravo", "Jazz; Soul"), 180)
    assert ask(what, slots) == (
        "This choice confirms: Jazz. What is newly liked: Bravo; Soul. What is newly disliked: Alpha; Pop. "
        "What no longer holds: Soul."
    )
    same = tried(memory, ("Alpha", "Pop"), ("Alpha", "Jazz"), 180)
    assert ask(what, same) == "This choice tells nothing new."


def test_nothing_is_learned_where_titles_do_not_tell_the_two_apart() -> None:
    slots = tried("I like: Folk.", ("Alpha", "Pop"), ("Alpha", "Jazz"), 50)
    assert ask(REFLECT_USER_WRONG, slots) == "I like: Folk."
    assert ask(REFLECT_ITEM_WRONG, slots) == (item("Alpha", "Pop"), item("Alpha", "Jazz"))


LONG = st.lists(st.sampled_from([f"{one} {two}" for one in NAMES for two in NAMES]), min_size=1, max_size=90)


@given(likes=LONG, gathered=LONG)
def test_word_limits_are_kept_and_what_is_written_is_read_again(likes: list[str], gathered: list[str]) -> None:
    memory = f"I love: {likes[0]}.\nI like: {'; '.join(likes[1:] or ['tango'])}.\nI dislike: {'; '.join(gathered)}."
    slots = tried(memory, ("Kilo", "Pop"), ("Lima", "Jazz"), USER_LIMIT)
    user = ask(REFLECT_USER_WRONG, slots)
    assert len(user.split()) <= USER_LIMIT
    assert lt.write_taste(lt.read_taste(user, "CD"), USER_LIMIT, 0.75) == user
    described = (item("Kilo", "Pop"), f"{item('Lima', 'Jazz')}\nIt suits people who like: {'; '.join(gathered)}.")
    _, text = ask(REFLECT_ITEM_WRONG, {**slots, "options": described, "limit": str(ITEM_LIMIT)})
    assert len(text.split()) <= ITEM_LIMIT and text.startswith(item("Lima", "Jazz"))
    assert lt.write_description(lt.identity(text), lt.gathered_phrases(text), ITEM_LIMIT) == text


def test_equal_titles_are_told_apart_by_number() -> None:
    slots = shown("I like: Jazz.", ("Alpha", "Pop"), ("Alpha", "Jazz"))
    assert reply(CHOOSE, slots).startswith("Chosen CD: 2. Alpha\n")
    assert ask(CHOOSE, slots).index == 1


def test_it_says_what_it_is_and_counts_no_tokens() -> None:
    request = Request("choose", "", (Message("user", "?"),), slots={"options": ("a", "b"), "titles": ("a", "b")})
    completion = asyncio.run(Lexical().complete(request))
    assert (completion.model, completion.finish_reason, completion.usage) == ("lexical", "stop", Usage())


def test_an_unknown_task_is_refused_with_those_it_knows() -> None:
    with pytest.raises(
        CallFailed, match=r"call c7.*'sing'.*\n.*choose, rank, reflect.user, reflect.item, analyse.user, analyse.item"
    ) as caught:
        asyncio.run(Lexical().complete(Request("sing", "", (), call="c7")))
    assert caught.value.reason == "unsupported"
