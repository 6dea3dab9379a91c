"""Rendering: two messages per question, slots that are seen and slots that are withheld, errors with file and line."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.errors import InputError
from simengine.llm.prompts import PromptBook
from simengine.llm.request import Message

QUESTION = (
    "{% block system %}About {{ noun }}s.{% endblock %}\n{% block user %}{{ memory }}: {{ options }}{% endblock %}"
)


def book(folder: Path, **templates: str) -> PromptBook:
    for name, text in templates.items():
        (folder / f"{name}.j2").write_text(text, encoding="utf-8")
    return PromptBook([folder])


@pytest.fixture(scope="module")
def agentcf() -> PromptBook:
    return PromptBook([files("simengine") / "methods" / "prompts" / "agentcf"])


def test_two_messages_and_the_slots_that_are_seen(tmp_path: Path) -> None:
    rendered = book(tmp_path, choose=QUESTION).render(
        "choose", {"memory": "rock", "options": "A", "secret": "rock"}, "CD"
    )
    assert rendered.messages == (Message("system", "About CDs."), Message("user", "rock: A"))
    assert rendered.slots == {"memory": "rock", "options": "A", "noun": "CD"}  # secret is not referred to


def test_a_list_is_seen_only_whole(tmp_path: Path) -> None:
    prompts = book(tmp_path, first="{% block user %}{{ options[0] }}{% endblock %}")
    assert prompts.render("first", {"options": ("Heat", "Big")}, "film").slots == {}
    assert prompts.render("first", {"options": ("Heat",)}, "film").slots == {"options": ("Heat",)}


def test_a_slot_that_is_only_asked_about_is_withheld(tmp_path: Path) -> None:
    prompts = book(tmp_path, choose="{% block user %}{% if memory %}Hello.{% endif %}{% endblock %}")
    assert prompts.render("choose", {"memory": "I like jazz."}, "CD").slots == {}


def test_a_template_seen_through_an_include_counts(tmp_path: Path) -> None:
    prompts = book(tmp_path, choose="{% block user %}{% include 'part' %}{% endblock %}", part="{{ memory }}")
    assert prompts.render("choose", {"memory": "jazz"}, "CD").slots == {"memory": "jazz"}


@given(st.text(max_size=60))
def test_what_a_memory_holds_is_never_run(agentcf: PromptBook, memory: str) -> None:
    text = "{{ 1 + 1 }}{% for x in y %}" + memory
    slots = {"memory": text, "options": ("a", "b"), "titles": ("a", "b")}
    assert text.strip() in agentcf.render("choose", slots, "CD").messages[1].content


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("{% block user %}\nfine\n{{ memmory }}{% endblock %}", 3, "memmory"),
        ("{% block user %}\n{% for %}\n{% endblock %}", 2, "Expected an expression"),
        ("{% block user %}\n\n{{ ''.__class__.__mro__ }}{% endblock %}", 3, "unsafe"),
        ("{% block user %}\n{{ memory / 2 }}{% endblock %}", 2, "unsupported operand"),
        ("{{ memory }}", 1, "no block named user"),
        ("{% block user %}{% include 'nothing' %}{% endblock %}", 1, "nothing"),
        ("{% block user %}\n{% include 'choose' %}{% endblock %}", 2, "recursion"),
    ],
)
def test_a_bad_template_is_an_input_error_with_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        book(tmp_path, choose=text).render("choose", {"memory": "x"}, "CD")
    assert caught.value.where == {"file": str(tmp_path / "choose.j2"), "line": line}
    assert caught.value.remedy


def test_unknown_prompts_are_named(tmp_path: Path) -> None:
    prompts = book(tmp_path, choose=QUESTION)
    with pytest.raises(InputError, match=r"field rnak.*\n.*choose"):
        prompts.render("rnak", {}, "CD")
    with pytest.raises(InputError, match=r"field prompts\.rnak.*\n.*choose"):
        PromptBook([tmp_path], {"rnak": tmp_path / "choose.j2"})


def test_an_override_replaces_text_and_hash(tmp_path: Path) -> None:
    folder = tmp_path / "packaged"
    folder.mkdir()
    packaged = book(folder, choose=QUESTION, rank=QUESTION)
    mine = tmp_path / "mine.j2"
    mine.write_text("{% block user %}Which?{% endblock %}", encoding="utf-8")
    prompts = PromptBook([folder], {"choose": mine})
    assert prompts.render("choose", {"memory": "x"}, "CD").messages == (Message("user", "Which?"),)
    assert prompts.hashes()["choose"] == hashlib.sha256(mine.read_bytes()).hexdigest()
    assert prompts.hashes()["rank"] == packaged.hashes()["rank"]
    with pytest.raises(InputError, match="cannot be read"):
        PromptBook([folder], {"choose": tmp_path / "absent.j2"})


SLOTS = {
    "memory": "I like slow jazz.",
    "options": ("first text", "second text"),
    "titles": ("Kind of Blue", "Boston"),
    "chosen": "Boston",
    "explanation": "It is loud.",
    "preferred": "Kind of Blue",
    "rejected": "Boston",
    "reflection": "I was misled.",
    "limit": "180",
    "retrieved": "",
    "history": (),
}


@pytest.mark.parametrize("task", ["reflect.user", "reflect.item"])
def test_the_verdict_is_told_by_the_template(agentcf: PromptBook, task: str) -> None:
    wrong, right = (agentcf.render(f"{task}.{verdict}", SLOTS, "CD") for verdict in ("wrong", "right"))
    assert wrong.slots == {**{name: value for name, value in SLOTS.items() if value}, "noun": "CD"}
    assert right.slots == {name: value for name, value in wrong.slots.items() if name != "chosen"}


@pytest.mark.parametrize("task", ["choose", "rank"])
def test_choose_and_rank_do_not_tell_the_true_option(agentcf: PromptBook, task: str) -> None:
    """Even when all is handed over, what would tell the true option is neither in the text nor in the slots."""
    rendered = agentcf.render(task, {**SLOTS, "explanation": "SECRET"}, "book")
    assert set(rendered.slots) == {"memory", "options", "titles", "noun"}
    names = ("memory", "retrieved", "history", "options", "titles")
    asked = agentcf.render(task, {name: SLOTS[name] for name in names}, "book")
    assert rendered == asked


def test_the_fixed_part_of_a_prompt_comes_first(agentcf: PromptBook) -> None:
    """Two users' prompts differ only in the last message, so that a server can reuse the prefix."""
    for name in ("choose", "rank", "reflect.user.wrong", "reflect.item.right"):
        one, other = (agentcf.render(name, {**SLOTS, "memory": text}, "CD").messages for text in ("jazz", "rock"))
        assert one[0] == other[0] and one[1] != other[1]


def test_initial_memories(agentcf: PromptBook) -> None:
    slots = {"title": 'The "Best"', "category": "Rock; Pop"}
    assert agentcf.text("item", slots, "CD") == '"The "Best"" is a CD filed under: Rock; Pop.'
    assert agentcf.text("item", {**slots, "category": ""}, "film") == '"The "Best"" is a film.'
    assert agentcf.text("user", {}, "film") == "I like films and am curious about new ones."
