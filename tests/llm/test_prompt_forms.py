"""The part of a prompt that says in what form to answer can be replaced; all else stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment, meta
from runs import ROOT
from test_prompts import SLOTS

from simengine.errors import InputError
from simengine.llm import task as tasks
from simengine.llm.prompts import PromptBook, Slot
from simengine.llm.request import Message
from simengine.llm.task import Json, Task

PROMPTS = ROOT / "simengine" / "methods" / "prompts"
BOOK = PromptBook(sorted(PROMPTS.iterdir()))
TASKS = sorted((task for task in vars(tasks).values() if isinstance(task, Task)), key=lambda task: task.template)
QUESTION = """{% block system %}
Of {{ noun }}s.
{% block form %}
Say <title>.
{% endblock %}
Be brief.
{% endblock %}
{% block user %}{{ memory }}{% endblock %}"""
_SHOWN = {**SLOTS, "history": ("an older text", "a newer text"), "retrieved": "I liked swing."}


def _shown(task: Task[object]) -> dict[str, Slot]:
    """Something for every slot of the task's template."""
    text = next(PROMPTS.glob(f"*/{task.template}.j2")).read_text(encoding="utf-8")
    names = meta.find_undeclared_variables(Environment().parse(text)) - {"noun"}
    return {name: _SHOWN.get(name, f"some {name}") for name in sorted(names)}


def _json(task: Task[object]) -> Json[object]:
    assert task.json is not None
    return task.json


def test_a_form_takes_the_place_of_the_block(tmp_path: Path) -> None:
    (tmp_path / "ask.j2").write_text(QUESTION, encoding="utf-8")
    book = PromptBook([tmp_path])
    plain, other = (
        book.render("ask", {"memory": "jazz"}, "CD", form).messages for form in ("", 'Say {"a": "{{ b }}"}.')
    )
    assert plain == (Message("system", "Of CDs.\nSay <title>.\nBe brief."), Message("user", "jazz"))
    assert other == (Message("system", 'Of CDs.\nSay {"a": "{{ b }}"}.\nBe brief.'), Message("user", "jazz"))
    assert book.render("ask", {"memory": "jazz"}, "CD").messages == plain  # the other left nothing behind


def test_a_template_without_the_block_cannot_ask_in_another_form(tmp_path: Path) -> None:
    (tmp_path / "ask.j2").write_text("{% block user %}{{ memory }}{% endblock %}", encoding="utf-8")
    with pytest.raises(InputError, match="block named form") as caught:
        PromptBook([tmp_path]).render("ask", {"memory": "jazz"}, "CD", "In JSON.")
    assert caught.value.where["file"] == str(tmp_path / "ask.j2")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.template)
def test_every_packaged_question_can_be_asked_for_json(task: Task[object]) -> None:
    """The two forms of a prompt differ in the last part of the system text alone, and show a backend the same."""
    ask = _json(task).form.ask
    plain, other = (BOOK.render(task.template, _shown(task), "CD", form) for form in ("", ask))
    assert other.slots == plain.slots
    assert other.messages[1:] == plain.messages[1:]
    head = other.messages[0].content.removesuffix(ask)
    assert head != other.messages[0].content
    assert plain.messages[0].content.startswith(head + "Answer in ")


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.template)
def test_what_never_changes_comes_first(task: Task[object], form: str) -> None:
    """The system text is the same whatever is shown, so that a server's cache of prefixes holds it for all agents."""
    shown = [{name: slot for name, slot in _shown(task).items() if name != "limit"}, {}]
    shown[1] = {name: tuple(f"{text} too" for text in slot) if isinstance(slot, tuple) else f"{slot} too"
                for name, slot in shown[0].items()}  # fmt: skip
    ask = _json(task).form.ask if form == "json" else ""
    one, other = (BOOK.render(task.template, {**slots, "limit": "180"}, "CD", ask).messages for slots in shown)
    assert [message.role for message in one] == ["system", "user"]
    assert one[0] == other[0] and one[1] != other[1]
