"""AgentCF without one of its parts, and with a choice behind the last reflection: what is asked, and what is kept."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine.errors import CallFailed, InputError
from simengine.llm.backends.lexical.text import Taste, read_taste
from simengine.llm.backends.refuse import Refuse
from simengine.llm.backends.scripted import Answer, Scripted
from simengine.llm.request import Request
from simengine.scenario import read
from simengine.scenario.cast import Cast
from simengine.scenario.setup import Setup
from simengine.testing import MethodContract

HEADER = "user_id:token|item_id_list:token_seq|item_id:token\n"
# Both users start with item 0. The training interactions in order: u takes a, v takes a, u takes b; both test with c.
FILES = {
    "x.train.inter": HEADER + "u|0|a\nu|0 a|b\nv|0|a\n",
    "x.test.inter": HEADER + "u|0 a b|c\nv|0 a|c\n",
    "x.item": "item_id:token|title:token_seq|category:token_seq\n"
    "0|Zero|Opera\na|Amber|Folk\nb|Basalt|Metal\nc|Coral|Reggae\nn|Nickel|Polka\n",
    "x.random": "u|n\nv|n\n",
    "negatives.jsonl": "".join(
        f'{{"user_id": "{user}", "pos_item_id": "{item}", "neg_item_ids": ["n"]}}\n'
        for user, item in ("ua", "ub", "va")
    ),
}
SCENARIO = """
name: parts
data: {{format: atomic, path: {path}, noun: CD, clock: step, negatives: negatives.jsonl}}
llm: {{temperature: 0.7}}  # so that no two calls share an answer
method: {{kind: agentcf}}
stages: [{{optimize: {{}}}}, {{rank: {{}}}}]
"""
A1, A2, A3 = "interaction/u/a/2", "interaction/v/a/2", "interaction/u/b/3"
LIKING = "I like CDs and am curious about new ones."
TAKEN = "The CDs that I have had, from the one I had most recently on:"
ZERO, AMBER, BASALT, NICKEL = (
    f'"{title}" is a CD filed under: {category}.'
    for title, category in [("Zero", "Opera"), ("Amber", "Folk"), ("Basalt", "Metal"), ("Nickel", "Polka")]
)


class Told:
    """Takes the positive unless ``wrong`` names the call; what it writes is the id of its call, ``words`` words long.

    ``broken`` names calls that end in an error.
    """

    def __init__(self, wrong: Callable[[str], bool] = lambda call: False, words: int = 1) -> None:
        self.wrong = wrong
        self.words = words
        self.broken: set[str] = set()
        self.asked: dict[str, Request] = {}

    def __call__(self, request: Request) -> Answer:
        call = request.call
        self.asked[call] = request
        if call in self.broken:
            return CallFailed("the server refused the request", reason="rejected")
        text = " ".join([call] * self.words)
        if request.task == "choose":
            title = request.slots["titles"][0 if self.wrong(call) else 1]
            return f"Chosen CD: {title}\nExplanation: because of {call}"
        if request.task == "reflect.user":
            return f"My updated self-introduction: {text}"
        if request.task == "reflect.item":
            return (
                f"The updated description of the first CD is: {text}\nThe updated description of the second is: {text}"
            )
        if request.task.startswith("analyse"):
            return f"My reflection: {text}"
        return "\n".join(["Rank:", *request.slots["titles"]])

    def tasks(self, event: str = "") -> Counter[str]:
        """How often each task was asked, in one event if it is named."""
        return Counter(request.task for call, request in self.asked.items() if call.startswith(event))

    def prompt(self, call: str) -> str:
        return "\n".join(message.content for message in self.asked[call].messages)


Run = Callable[..., Path]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content.replace("|", "\t"), encoding="utf-8")
    numbers = itertools.count()

    def act(model: Told, *sets: str) -> Path:
        text = SCENARIO.format(path=tmp_path)
        return Path(runs.run(tmp_path / f"run-{next(numbers)}", *sets, text=text, backend=Scripted(model)).path)

    return act


def memories(folder: Path, event: str = "") -> list[tuple[str, str, str]]:
    """Agent, slot and new text of each change, in one event if it is named."""
    return [
        (memory["agent"], memory["slot"], memory["value"])
        for each in runs.events(folder)
        for memory in each.get("memories", ())
        if each["event"].startswith(event)
    ]


def said(folder: Path, event: str) -> list[tuple[str, str]]:
    """Kind and recipient of what the user of an event said."""
    found = next(each for each in runs.events(folder) if each["event"] == event)
    return [(each["kind"], each["recipient"]) for each in found["messages"] if each["sender"].startswith("user:")]


# -- without autonomous interaction ------------------------------------------------------------------------------------


def test_without_autonomous_interaction_nobody_chooses(run: Run) -> None:
    """Both sides reflect once on what was really taken; no prompt speaks of a choice, reasons or a mistake."""
    model = Told()
    folder = run(model, "method.autonomous=false", "method.rounds=3")
    assert model.tasks() == {"reflect.user": 3, "reflect.item": 3, "rank": 2}
    for side in ("user", "item"):
        request, prompt = model.asked[f"{A1}#reflect.{side}/r1"], model.prompt(f"{A1}#reflect.{side}/r1")
        assert request.slots["preferred"] == "Amber"
        assert request.slots["rejected"] == "Nickel"
        assert not {"chosen", "explanation", "reflection"} & request.slots.keys()
        assert not [word for word in ("took", "taken", "easons given", "Your reasons", "wrong") if word in prompt]
        assert all(text in prompt for text in (LIKING, NICKEL, AMBER))
    assert said(folder, A1) == [("taken", "item:a")]
    assert sorted(memories(folder, A1)) == [
        ("item:a", "memory", f"{A1}#reflect.item/r1"),
        ("user:u", "long", LIKING),
        ("user:u", "short", f"{A1}#reflect.user/r1"),
    ]


def test_what_was_told_is_a_cause_of_what_was_learnt(run: Run) -> None:
    folder = run(Told(), "method.autonomous=false")
    event = next(each for each in runs.events(folder) if each["event"] == A1)
    told = next(message["id"] for message in event["messages"] if message["kind"] == "taken")
    learnt = [memory for memory in event["memories"] if memory["slot"] in ("short", "memory")]
    assert len(learnt) == 2
    assert all(told in memory["because"] for memory in learnt)


# -- without user agents -----------------------------------------------------------------------------------------------


def test_without_user_agents_a_user_is_the_list_of_what_he_took(run: Run) -> None:
    """It begins with the item that is no target, grows by what items are called, and says nothing that was learnt."""
    model = Told()
    folder = run(model, "method.user_agents=false")
    assert model.tasks() == {"choose": 3, "reflect.item": 3, "rank": 2}
    assert model.asked[f"{A1}#choose/r1"].slots["memory"] == f"{TAKEN}\n- {ZERO}"
    assert model.asked[f"{A3}#choose/r1"].slots["memory"] == f"{TAKEN}\n- {AMBER}\n- {ZERO}"
    whole = f"{TAKEN}\n- {BASALT}\n- {AMBER}\n- {ZERO}"
    assert model.asked["rank/u/B/1#rank"].slots["memory"] == whole
    assert model.asked["rank/v/B/1#rank"].slots["memory"] == f"{TAKEN}\n- {AMBER}\n- {ZERO}"
    assert [change for change in memories(folder) if change[0] == "user:u"] == [
        ("user:u", "short", f"{TAKEN}\n- {AMBER}\n- {ZERO}"),
        ("user:u", "short", whole),
    ]
    # Items learn as ever: from the list, and for those who see them next.
    assert model.asked[f"{A1}#reflect.item/r1"].slots["memory"] == f"{TAKEN}\n- {ZERO}"
    assert model.asked[f"{A2}#choose/r1"].slots["options"] == (NICKEL, f"{A1}#reflect.item/r1")


def test_the_rules_read_the_list_as_a_taste_the_newest_first() -> None:
    """Its heading adds nothing to it; a word of it would be handed on to every item."""
    taste = read_taste(f"{TAKEN}\n- {AMBER}\n- {ZERO}", "CD")
    assert taste == Taste(likes=("Amber", "Folk", "Zero", "Opera"))


def test_the_list_of_a_user_grows_once_a_step_however_many_rounds(run: Run) -> None:
    """In a second round the user must not yet know that he has taken what he is asked about."""
    model = Told(lambda call: call.startswith(A1))
    folder = run(model, "method.user_agents=false")
    assert model.tasks(A1) == {"choose": 2, "reflect.item": 2}
    assert model.asked[f"{A1}#choose/r2"].slots["memory"] == f"{TAKEN}\n- {ZERO}"
    assert [change for change in memories(folder, A1) if change[0] == "user:u"] == [
        ("user:u", "short", f"{TAKEN}\n- {AMBER}\n- {ZERO}")
    ]


def test_without_user_agents_nothing_is_retrieved(run: Run) -> None:
    """There is no long-term memory to look into."""
    model = Told()
    folder = run(model, "method.user_agents=false", "stages[1].rank.strategies=[B+R]")
    assert not [change for change in memories(folder) if change[1] == "long"]
    assert "retrieved" not in model.asked["rank/u/B+R/1#rank"].slots


def test_a_list_is_not_held_to_the_words_of_a_self_introduction(run: Run) -> None:
    """No prompt has asked for its length."""
    folder = run(Told(), "method.user_agents=false", "method.user_words=3", "method.item_words=1000")
    assert runs.report(folder).over_limit == {}
    folder = run(Told(words=5), "method.user_words=3", "method.item_words=1000")
    assert runs.report(folder).over_limit == {"user short over 3 words": 3}


# -- without item agents -----------------------------------------------------------------------------------------------


def test_without_item_agents_items_stay_what_they_are_called(run: Run) -> None:
    model = Told()
    folder = run(model, "method.item_agents=false")
    assert model.tasks() == {"choose": 3, "reflect.user": 3, "rank": 2}
    for event, second in ((A1, AMBER), (A2, AMBER), (A3, BASALT)):
        assert model.asked[f"{event}#choose/r1"].slots["options"] == (NICKEL, second)
        assert model.asked[f"{event}#reflect.user/r1"].slots["options"] == (NICKEL, second)
    assert {change[0] for change in memories(folder)} == {"user:u", "user:v"}
    assert model.asked[f"{A3}#choose/r1"].slots["memory"] == f"{A1}#reflect.user/r1"


def events(folder: Path, *sets: str) -> dict[str, Any]:
    """The interactions of a scenario by their id, not executed."""
    scenario, _ = read("s.yaml", sets, SCENARIO.format(path=folder))
    setup = Setup.of(scenario)
    return {event.id: event for event in Cast(setup, Refuse()).events(setup.stages()[0])}


def test_without_item_agents_two_adopters_of_an_item_do_not_wait_for_each_other(run: Run, tmp_path: Path) -> None:
    made = events(tmp_path, "method.item_agents=false")
    assert [(made[name].writes, made[name].reads) for name in (A1, A2)] == [
        (("user:u",), ("item:a", "item:n")),
        (("user:v",), ("item:a", "item:n")),
    ]
    assert events(tmp_path)[A1].writes == ("user:u", "item:a")


# -- a choice behind the last reflection -------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_recheck_is_asked_once_a_step_and_changes_nothing(rounds: int, run: Run) -> None:
    def wrong(call: str) -> bool:
        return call in (f"{A1}#choose/r1", f"{A2}#choose/check")

    plain = run(Told(wrong), f"method.rounds={rounds}")
    model = Told(wrong)
    folder = run(model, f"method.rounds={rounds}", "method.recheck=true")
    assert memories(folder) == memories(plain)
    checks = {call for call in model.asked if "check" in call}
    assert checks == {f"{event}#choose/check" for event in (A1, A2, A3)}
    assert [said(folder, event)[-1] for event in (A1, A2, A3)] == [
        ("check", "item:a"),
        ("check", "item:n"),
        ("check", "item:b"),
    ]
    # It is the choice of a round in all but its name, by what both sides have just written.
    request = model.asked[f"{A1}#choose/check"]
    assert request.task == "choose"
    assert request.slots["memory"] == f"{A1}#reflect.user/r{rounds}"
    assert request.slots["options"] == (NICKEL, f"{A1}#reflect.item/r{rounds}")


def test_a_recheck_that_fails_is_counted_and_costs_nothing_else(run: Run) -> None:
    model = Told()
    model.broken = {f"{A1}#choose/check"}
    folder = run(model, "method.recheck=true")
    assert runs.report(folder).failures == {"choose: rejected": 1}
    assert memories(folder) == memories(run(Told()))


def test_where_the_first_choice_fails_there_is_nothing_to_check(run: Run) -> None:
    model = Told()
    model.broken = {f"{A1}#choose/r1"}
    run(model, "method.recheck=true")
    assert [call for call in model.asked if call.startswith(A1)] == [f"{A1}#choose/r1"]


# -- how many calls a step takes ---------------------------------------------------------------------------------------

PARTS = ("autonomous", "user_agents", "item_agents")


WITHOUT = [(), *((part,) for part in PARTS), PARTS[:2], PARTS[1:], PARTS]
CHOSEN = ("recheck=true", "reflection_calls=2", "rounds=3")
"""What only users who choose can do."""


@pytest.mark.parametrize(
    ("without", "extra"),
    [
        *((without, extra) for without in WITHOUT for extra in ((), ("over_limit=reask",))),
        *((without, CHOSEN) for without in WITHOUT if "autonomous" not in without),
    ],
)
def test_a_step_takes_the_calls_that_the_method_says(
    without: tuple[str, ...], extra: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    """The fewest where every choice is right and every text short; the most where every one is wrong and too long."""
    sets = [f"method.{part}=false" for part in without] + [f"method.{each}" for each in extra]
    run(Told(), "stages=[{rank: {}}]")  # writes the data
    scenario, _ = read("s.yaml", sets, SCENARIO.format(path=tmp_path))
    least, most = Cast(Setup.of(scenario), Refuse()).calls["interaction"]
    for model, calls in ((Told(), least), (Told(lambda call: "check" not in call, words=200), most)):
        folder = run(model, *sets)
        asked = [len(event.get("calls", ())) for event in runs.events(folder, "interaction")]
        assert asked == [calls] * 3
        assert sum(model.tasks("interaction").values()) == 3 * calls


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"autonomous": False, "recheck": True}, "no choice to check again"),
        ({"autonomous": False, "reflection_calls": 2}, "no choice to check again or to reflect on"),
        ({"item_agents": False, "update_negative": True}, "there is no agent for"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(said: dict[str, Any], problem: str) -> None:
    sets = [f"method.{name}={value}".lower() for name, value in said.items()]
    with pytest.raises(InputError, match=problem) as caught:
        read("s.yaml", sets, SCENARIO.format(path="data"))
    assert "method" in str(caught.value)


# -- each variant keeps the contract of a method -----------------------------------------------------------------------

SMALL = """
name: parts
data: {{format: market, users: 3, items: 12, interests: 3, interactions: 5, seed: 4}}
method: {{kind: agentcf, {method}}}
stages: [{{optimize: {{}}}}, {{rank: {{strategies: [{strategies}]}}}}]
"""


class TestWithoutAutonomous(MethodContract):
    scenario = SMALL.format(method="autonomous: false", strategies="B")


class TestWithoutUserAgents(MethodContract):
    scenario = SMALL.format(method="user_agents: false", strategies="B")


class TestWithoutItemAgents(MethodContract):
    scenario = SMALL.format(method="item_agents: false", strategies="B")


class TestRecheckAndStrategies(MethodContract):
    scenario = SMALL.format(method="recheck: true, reflection_calls: 2", strategies="B+R, B+H, LLMRank")
