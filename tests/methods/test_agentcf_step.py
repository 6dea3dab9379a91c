"""What each prompt of AgentCF shows, and what each reply changes, told by a model that writes down what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import runs

from simengine.errors import CallFailed
from simengine.llm.backends.scripted import Answer, Scripted
from simengine.llm.request import Request

HEADER = "user_id:token|item_id_list:token_seq|item_id:token\n"
# Two users; each starts with item 0. The training interactions in order: u takes a, v takes a, u takes b.
FILES = {
    "x.train.inter": HEADER + "u|0|a\nu|0 a|b\nv|0|a\n",
    "x.test.inter": HEADER + "u|0 a b|c\nv|0 a|c\n",
    "x.item": "item_id:token|title:token_seq|category:token_seq\n"
    "0|Zero|Opera\na|Amber|Folk\nb|Basalt|Metal\nc|Coral|Reggae\nn|Nickel|Polka\n",
    "x.random": "u|n 0\nv|n 0 b\n",
    "negatives.jsonl": "".join(
        f'{{"user_id": "{user}", "pos_item_id": "{item}", "neg_item_ids": ["n"]}}\n'
        for user, item in ("ua", "ub", "va")
    ),
}
SCENARIO = """
name: step
data: {{format: atomic, path: {path}, noun: CD, clock: step, negatives: negatives.jsonl}}
llm: {{temperature: 0.7}}  # so that no two calls share an answer
method: {{kind: agentcf}}
stages: [{{optimize: {{}}}}]
"""
LIKING = "I like CDs and am curious about new ones."
INITIAL = {
    title: f'"{title}" is a CD filed under: {category}.'
    for title, category in [
        ("Amber", "Folk"),
        ("Basalt", "Metal"),
        ("Nickel", "Polka"),
        ("Coral", "Reggae"),
        ("Zero", "Opera"),
    ]
}
A1, A2, A3 = "interaction/u/a/2", "interaction/v/a/2", "interaction/u/b/3"


class Told:
    """Answers each call of a run from a script, and keeps what it was asked.

    ``choices`` maps a call's id to the title that is taken; every other choice takes the positive. ``broken`` names
    calls that end in an error. A reflection's text is the id of its call, so that a prompt tells where it came from.
    """

    def __init__(self, choices: dict[str, str] | None = None, broken: Iterable[str] = ()) -> None:
        self.choices = choices or {}
        self.broken = set(broken)
        self.asked: dict[str, Request] = {}

    def __call__(self, request: Request) -> Answer:
        call = request.call
        self.asked[call] = request
        if call in self.broken:
            return CallFailed("the server refused the request", reason="rejected")
        titles = request.slots["titles"]
        if request.task == "choose":
            return f"Chosen CD: {self.choices.get(call, titles[1])}\nExplanation: because of {call}"
        if request.task == "reflect.user":
            return f"My updated self-introduction: {call}"
        if request.task == "reflect.item":
            lines = [f"The updated description of the {at} CD is: {at} of {call}" for at in ("first", "second")]
            return "\n".join(lines)
        return "\n".join(["Rank:", *titles])

    def saw(self, call: str) -> tuple[str, list[str]]:
        """The user's memory and the two descriptions, in the order shown, both in the slots and in the text."""
        request = self.asked[call]
        memory, options = request.slots["memory"], list(request.slots["options"])
        text = request.messages[-1].content
        places = [text.index(str(part)) for part in (memory, f"1. {options[0]}", f"2. {options[1]}")]
        assert places == sorted(places)
        return str(memory), options


Run = Callable[..., Path]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content.replace("|", "\t"), encoding="utf-8")

    def act(model: Told, *sets: str) -> Path:
        text = SCENARIO.format(path=tmp_path)
        return Path(runs.run(tmp_path / "run", *sets, text=text, backend=Scripted(model)).path)

    return act


def _memories(folder: Path, event: str) -> list[tuple[str, str, str]]:
    """Agent, slot and new text of each change in an event."""
    found = next(each for each in runs.events(folder) if each["event"] == event)
    return [(memory["agent"], memory["slot"], memory["value"]) for memory in found.get("memories", ())]


def _units(folder: Path, event: str) -> dict[str, str]:
    return dict(next(each for each in runs.events(folder) if each["event"] == event)["units"])


def test_a_right_choice_is_one_round(run: Run) -> None:
    model = Told()
    folder = run(model)
    assert [event["event"] for event in runs.events(folder)] == [A1, A2, A3]
    assert list(model.asked) and not any("/r2" in call for call in model.asked)
    assert len(model.asked) == 9

    # The negative stands first; both sides read what the user chose by.
    assert model.saw(f"{A1}#choose/r1") == (LIKING, [INITIAL["Nickel"], INITIAL["Amber"]])
    assert model.saw(f"{A1}#reflect.user/r1") == (LIKING, [INITIAL["Nickel"], INITIAL["Amber"]])
    assert model.saw(f"{A1}#reflect.item/r1") == (LIKING, [INITIAL["Nickel"], INITIAL["Amber"]])
    for side in ("user", "item"):
        request = model.asked[f"{A1}#reflect.{side}/r1"]
        assert f"because of {A1}#choose/r1" in request.messages[-1].content
        assert {name: request.slots[name] for name in ("preferred", "rejected")} == {
            "preferred": "Amber",
            "rejected": "Nickel",
        }
    assert sorted(_memories(folder, A1)) == [
        ("item:a", "memory", f"second of {A1}#reflect.item/r1"),
        ("user:u", "long", LIKING),
        ("user:u", "short", f"{A1}#reflect.user/r1"),
    ]


def test_later_events_read_what_earlier_ones_wrote(run: Run) -> None:
    model = Told()
    run(model)
    amber = f"second of {A1}#reflect.item/r1"
    assert model.saw(f"{A2}#choose/r1") == (LIKING, [INITIAL["Nickel"], amber])
    assert model.saw(f"{A3}#choose/r1") == (f"{A1}#reflect.user/r1", [INITIAL["Nickel"], INITIAL["Basalt"]])


def test_a_wrong_choice_goes_to_a_second_round_that_reads_the_updates(run: Run) -> None:
    model = Told({f"{A1}#choose/r1": "Nickel"})
    folder = run(model)
    assert model.saw(f"{A1}#reflect.item/r1") == (LIKING, [INITIAL["Nickel"], INITIAL["Amber"]])
    user, item = f"{A1}#reflect.user/r1", f"second of {A1}#reflect.item/r1"
    assert model.saw(f"{A1}#choose/r2") == (user, [INITIAL["Nickel"], item])
    # Equation 4: the item reads the memory that the user chose by, and its own as it stands.
    assert model.saw(f"{A1}#reflect.item/r2") == (user, [INITIAL["Nickel"], item])
    assert model.saw(f"{A1}#reflect.user/r2") == (user, [INITIAL["Nickel"], item])
    # One entry a step joins the long-term memory: the memory that the step replaces.
    assert sorted(_memories(folder, A1)) == [
        ("item:a", "memory", item),
        ("item:a", "memory", f"second of {A1}#reflect.item/r2"),
        ("user:u", "long", LIKING),
        ("user:u", "short", user),
        ("user:u", "short", f"{A1}#reflect.user/r2"),
    ]
    assert _memories(folder, A3)[0] == ("user:u", "long", f"{A1}#reflect.user/r2")


@pytest.mark.parametrize(("rounds", "asked"), [(1, 1), (2, 2), (3, 3)])
def test_there_are_no_more_rounds_than_the_scenario_says(rounds: int, asked: int, run: Run) -> None:
    model = Told({f"{A1}#choose/r{number}": "Nickel" for number in range(1, 5)})
    run(model, f"method.rounds={rounds}")
    assert sum(call.startswith(f"{A1}#choose") for call in model.asked) == asked
    assert sum(call.startswith(f"{A1}#reflect.user") for call in model.asked) == asked


def test_the_prompts_of_a_wrong_choice_say_what_was_taken(run: Run) -> None:
    model = Told({f"{A1}#choose/r1": "Nickel"})
    run(model)
    wrong, right = (model.asked[f"{A1}#reflect.user/r{number}"] for number in (1, 2))
    assert "You had taken: Nickel" in wrong.messages[-1].content
    assert "You had taken" not in right.messages[-1].content
    assert wrong.slots["chosen"] == "Nickel"


def test_the_item_may_read_the_updated_user(run: Run) -> None:
    model = Told({f"{A1}#choose/r1": "Nickel"})
    run(model, "method.item_reads=updated")
    user = f"{A1}#reflect.user/r1"
    assert model.saw(f"{A1}#reflect.user/r1")[0] == LIKING
    assert model.saw(f"{A1}#reflect.item/r1") == (user, [INITIAL["Nickel"], INITIAL["Amber"]])


def test_a_reflecting_item_knows_itself_at_latest(run: Run) -> None:
    """Where items are published every two steps, the user sees Amber as it was when the second step began."""
    model = Told()
    run(model, "engine.visibility.items=every 2 steps")
    assert model.saw(f"{A2}#choose/r1")[1] == [INITIAL["Nickel"], INITIAL["Amber"]]
    assert model.saw(f"{A2}#reflect.user/r1")[1] == [INITIAL["Nickel"], INITIAL["Amber"]]
    assert model.saw(f"{A2}#reflect.item/r1")[1] == [INITIAL["Nickel"], f"second of {A1}#reflect.item/r1"]


def test_the_negative_is_left_alone_unless_the_scenario_says_otherwise(run: Run, tmp_path: Path) -> None:
    left = run(Told())
    assert not [change for event in (A1, A2, A3) for change in _memories(left, event) if change[0] == "item:n"]
    left.rename(tmp_path / "left")
    model = Told()
    both = run(model, "method.update_negative=true")
    assert ("item:n", "memory", f"first of {A1}#reflect.item/r1") in _memories(both, A1)
    # Now the negative is an agent that the next event waits for, and reads as it has become.
    assert model.saw(f"{A2}#choose/r1")[1] == [f"first of {A1}#reflect.item/r1", f"second of {A1}#reflect.item/r1"]


def test_a_failed_choice_ends_the_step_and_changes_nothing(run: Run) -> None:
    model = Told(broken=[f"{A1}#choose/r1"])
    folder = run(model)
    assert [call for call in model.asked if call.startswith(A1)] == [f"{A1}#choose/r1"]
    assert _memories(folder, A1) == []
    assert _units(folder, A1) == {"choose/r1": "rejected"}
    assert model.saw(f"{A2}#choose/r1") == (LIKING, [INITIAL["Nickel"], INITIAL["Amber"]])
    assert model.saw(f"{A3}#choose/r1")[0] == LIKING


def test_a_failed_item_reflection_leaves_the_item_and_the_users_stands(run: Run) -> None:
    model = Told(broken=[f"{A1}#reflect.item/r1"])
    folder = run(model)
    assert _units(folder, A1) == {"choose/r1": "ok", "reflect.user/r1": "ok", "reflect.item/r1": "rejected"}
    assert [change[0] for change in _memories(folder, A1)] == ["user:u", "user:u"]
    assert model.saw(f"{A2}#choose/r1")[1] == [INITIAL["Nickel"], INITIAL["Amber"]]
    assert model.saw(f"{A3}#choose/r1")[0] == f"{A1}#reflect.user/r1"


def test_a_failed_user_reflection_leaves_the_user_and_the_items_stands(run: Run) -> None:
    model = Told(broken=[f"{A1}#reflect.user/r1"])
    folder = run(model)
    assert _units(folder, A1)["reflect.user/r1"] == "rejected"
    assert _memories(folder, A1) == [("item:a", "memory", f"second of {A1}#reflect.item/r1")]
    assert model.saw(f"{A3}#choose/r1")[0] == LIKING


def test_a_memory_that_the_second_round_replaces_is_kept_once(run: Run) -> None:
    """The first round's reflection fails, so the second replaces the memory that the step began with."""
    model = Told({f"{A1}#choose/r1": "Nickel"}, broken=[f"{A1}#reflect.user/r1"])
    folder = run(model)
    assert [change for change in _memories(folder, A1) if change[0] == "user:u"] == [
        ("user:u", "long", LIKING),
        ("user:u", "short", f"{A1}#reflect.user/r2"),
    ]


def test_a_reply_that_cannot_be_read_is_asked_for_once_more(run: Run) -> None:
    class Babbling(Told):
        def __call__(self, request: Request) -> Answer:
            answer = super().__call__(request)
            return "Blue skies." if request.call in babbled else answer

    babbled = [f"{A1}#choose/r1"]
    model = Babbling()
    folder = run(model)
    again = model.asked[f"{A1}#choose/r1/reask"]
    assert [message.role for message in again.messages] == ["system", "user", "assistant", "user"]
    assert again.messages[:2] == model.asked[f"{A1}#choose/r1"].messages
    assert again.messages[2].content == "Blue skies."
    assert _units(folder, A1)["choose/r1"] == "ok"

    folder.rename(folder.with_name("once"))
    babbled.append(f"{A1}#choose/r1/reask")
    folder = run(Babbling())
    assert _units(folder, A1) == {"choose/r1": "unmatched"}
    assert _memories(folder, A1) == []
