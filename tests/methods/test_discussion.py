"""Discussion through the engine: who talks with whom, what each is shown, how it ends, what a failure leaves out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runs
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.scripted import Scripted
from simengine.llm.replies import selfintro
from simengine.llm.request import Completion, Request
from simengine.runlog.trace import Trace
from simengine.scenario import check, read
from simengine.testing import GARBAGE, MethodContract

MARKET = """
name: small
seed: 5
data: {format: market, users: 8, items: 12, interests: 3, interactions: 6, seed: 4}
method: {kind: agentcf}
stages: [{optimize: {}}, {discussion: {turns: 4}}]
"""

# u takes t next, which only w has had; v takes q next, which nobody has had.
HEADER = "user_id:token|item_id_list:token_seq|item_id:token\n"
FILES = {
    "x.train.inter": HEADER + "u|a|b\nv|a|c\nw|a|t\n",
    "x.test.inter": HEADER + "u|a b|t\nv|a c|q\n",
    "x.item": "item_id:token|title:token_seq|category:token_seq\n"
    + "".join(f"{name}|Title {name.upper()}|Folk\n" for name in "abcqt"),
    "x.random": "u|c q\nv|b t\n",
}
SHOP = """
# above temperature 0 no two calls share an answer, so that all of them are seen
name: shop
data: {{format: atomic, path: {path}, noun: CD, clock: step}}
llm: {{temperature: 0.5}}
method: {{kind: agentcf}}
stages: [{{optimize: {{}}}}, {{discussion: {{turns: 4, turn_words: 33, words: 22}}}}]
"""
MEMORIES = {"u": "alpha beta gamma", "w": "omega psi"}
TALK = "discussion/talk/u"
Instead = Callable[[Request], str | None]


class TestContract(MethodContract):
    scenario = MARKET.replace("users: 8", "users: 5")


class Watched:
    """The lexical model, of which every request is kept; ``instead`` may answer in its place."""

    def __init__(self, instead: Instead) -> None:
        self.asked: dict[str, Request] = {}
        self._instead = instead

    async def __call__(self, request: Request) -> Completion:
        self.asked[request.call] = request
        text = self._instead(request)
        who = request.call.split("/")[1]
        if text is None and request.task == "reflect.user" and who in MEMORIES:
            text = selfintro.write(MEMORIES[who])
        return await Lexical().complete(request) if text is None else Completion(text)

    def prompt(self, unit: str) -> str:
        """All that a call of u's talk showed."""
        return "\n".join(message.content for message in self.asked[f"{TALK}#{unit}"].messages)


def _shop(folder: Path, instead: Instead = lambda request: None) -> tuple[Any, Watched]:
    data = folder / "data"
    data.mkdir(parents=True)
    for name, content in FILES.items():
        (data / name).write_text(content.replace("|", "\t"), encoding="utf-8")
    model = Watched(instead)
    return runs.run(folder / "run", text=SHOP.format(path=data), backend=Scripted(model)), model


def _turns(*replies: str) -> Instead:
    """These replies in turn; another question than for a turn is left to the rules."""

    def instead(request: Request) -> str | None:
        unit = request.call.partition("#turn/")[2].partition("/")[0]
        return replies[int(unit) - 1] if unit else None

    return instead


def _says(text: str, goodbye: str = "no") -> str:
    return f"Message: {text}\nGoodbye: {goodbye}"


def _event(folder: Path, name: str = TALK) -> dict[str, Any]:
    return next(event for event in runs.events(folder) if event["event"] == name)


def _said(event: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [message for message in event["messages"] if message["kind"] == kind]


def _values(finished: Any) -> dict[tuple[str, str], tuple[float, int]]:
    return {(row.group, row.metric): (row.value, row.n) for row in finished.report.results if row.stage == "discussion"}


def test_buyer_and_owner_speak_by_turns_and_see_what_was_said(tmp_path: Path) -> None:
    replies = [_says("Is it loud?"), _says("Rather quiet."), _says("And long?"), _says("An hour.")]
    finished, model = _shop(tmp_path, _turns(*replies))
    event = _event(finished.path)
    said = [(message["sender"], message["body"]["text"]) for message in _said(event, "talk")]
    assert said == [
        ("user:u", "Is it loud?"),
        ("user:w", "Rather quiet."),
        ("user:u", "And long?"),
        ("user:w", "An hour."),
    ]
    lines = ("Buyer: Is it loud?", "Owner: Rather quiet.", "Buyer: And long?", "Owner: An hour.")
    assert tuple(memory["value"] for memory in event["memories"]) == lines
    for at in range(4):
        request = model.asked[f"{TALK}#turn/{at + 1}"]
        assert request.slots.get("dialogue", ()) == lines[:at]
        prompt = model.prompt(f"turn/{at + 1}")
        assert all(line in prompt for line in lines[:at]) and not any(line in prompt for line in lines[at:])
        assert "at most 33 words" in prompt and "Title T" in prompt
    assert model.asked[f"{TALK}#decide/after"].slots["dialogue"] == lines


def test_each_is_shown_his_own_memory_and_the_owner_his_review(tmp_path: Path) -> None:
    def instead(request: Request) -> str | None:
        return "My review: It has the omega sound." if request.task == "review" else talk(request)

    talk = _turns(*(_says(f"turn {at}") for at in range(1, 5)))
    finished, model = _shop(tmp_path, instead)
    review = model.prompt("review")
    assert MEMORIES["w"] in review and "you like it" in review and "At most 22 words" in review
    for at in range(1, 5):
        prompt = model.prompt(f"turn/{at}")
        assert f"Your self-introduction:\n{MEMORIES['u' if at % 2 else 'w']}\n" in prompt
        assert ("It has the omega sound." in prompt) == (at % 2 == 0)
    (told,) = _said(_event(finished.path), "review")
    assert (told["sender"], told["recipient"]) == ("user:w", "venue:discussion/u")


def test_the_buyer_decides_before_and_after(tmp_path: Path) -> None:
    talk = _turns(_says("Is it loud?"), _says("No."), _says("Goodbye!", "yes"))

    def instead(request: Request) -> str | None:
        decisions = {
            f"{TALK}#decide/before": "Choice: No\nExplanation: I know no gamma in it.",
            f"{TALK}#decide/after": "Choice: Yes\nExplanation: It is quiet.",
        }
        return decisions.get(request.call) or talk(request)

    finished, model = _shop(tmp_path, instead)
    before = model.asked[f"{TALK}#decide/before"].slots
    assert not {"dialogue", "former", "explanation"} & before.keys()
    after = model.prompt("decide/after")
    assert "before the talk: No" in after and "I know no gamma in it." in after and "Owner: No." in after
    assert [message["body"]["yes"] for message in _said(_event(finished.path), "decision")] == [False, True]
    values = _values(finished)
    assert [values[key, "yes"][0] for key in ("before", "after", "after - before")] == [0, 1, 1]
    assert [values["after", metric][0] for metric in ("no->yes", "yes->no")] == [1, 0]


ENDS = {
    "the mark of the buyer": ([_says("a"), _says("b"), _says("c", "yes")], "goodbye"),
    "the mark of the owner": ([_says("a"), _says("b", "yes")], "goodbye"),
    "the mark at once": ([_says("a", "yes")], "goodbye"),
    "a farewell without the mark": ([_says("a"), "Message: You are welcome. Bye!"], "goodbye"),
    "the limit": ([_says(word) for word in "abcd"], "limit"),
}


@pytest.mark.parametrize("case", ENDS)
def test_a_talk_ends_with_a_goodbye_or_at_the_limit(case: str, tmp_path: Path) -> None:
    replies, end = ENDS[case]
    finished, model = _shop(tmp_path, _turns(*replies))
    assert sum("#turn/" in call for call in model.asked) == len(replies)
    values = _values(finished)
    assert values["talks", "turns"] == (len(replies), 1)
    assert {how: values["talks", how][0] for how in ("goodbye", "limit", "failed")} == {
        how: float(how == end) for how in ("goodbye", "limit", "failed")
    }
    assert f"{TALK}#decide/after" in model.asked


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("???", "no_heading"),
        ("Message: How may I help you today?", "off_role"),
        ("Message: a\nOwner: b", "repeated"),
        ("我不知道", "other_language"),
    ],
)
@pytest.mark.usefixtures("painted")
def test_a_turn_that_cannot_be_read_ends_the_talk_without_a_second_decision(
    reply: str, reason: str, tmp_path: Path
) -> None:
    finished, model = _shop(tmp_path, _turns(_says("a"), reply))
    asked = sorted(call.partition("#")[2] for call in model.asked if call.startswith(TALK))
    assert asked == ["decide/before", "review", "turn/1", "turn/2", "turn/2/reask"]
    assert finished.report.failures == {f"turn: {reason}": 1}
    assert finished.report.skipped == {"discussion": {"no past adopter": 1, f"turn/2: {reason}": 1}}
    values = _values(finished)
    assert set(values) == {("talks", metric) for metric in ("turns", "goodbye", "limit", "failed")}
    assert values["talks", "failed"] == (1, 1) and values["talks", "turns"] == (1, 1)
    assert (finished.path / "discussion.png").stat().st_size > 0


@pytest.mark.parametrize(("unit", "task"), [("decide/before", "decide"), ("review", "review")])
def test_without_decision_or_review_there_is_no_talk(unit: str, task: str, tmp_path: Path) -> None:
    def instead(request: Request) -> str | None:
        return "Sí" if request.call.startswith(f"{TALK}#{unit}") else None

    finished, model = _shop(tmp_path, instead)
    assert not any("#turn/" in call or "#decide/after" in call for call in model.asked)
    assert finished.report.failures == {f"{task}: other_language": 1}
    assert finished.report.skipped["discussion"] == {"no past adopter": 1, f"{unit}: other_language": 1}
    assert not _values(finished)


def test_a_case_without_an_adopter_is_on_record_and_asks_nothing(tmp_path: Path) -> None:
    finished, model = _shop(tmp_path)
    assert _event(finished.path, "discussion/skip/v")["data"] == {"user": "v", "item": "q"}
    assert not any(call.startswith("discussion/skip") for call in model.asked)
    assert any("1 of 2 test cases are left out" in note and "(user v)" in note for note in finished.report.notes)


def test_the_owner_is_another_user_who_took_the_item_in_training(tmp_path: Path) -> None:
    text = MARKET.replace("users: 8", "users: 20")
    finished = runs.run(tmp_path / "run", text=text)
    taken: dict[str, set[str]] = {}
    for event in runs.events(finished.path, "interaction"):
        taken.setdefault(event["data"]["item"], set()).add(event["data"]["user"])
    talks = [event["data"] for event in runs.events(finished.path, "discussion.talk")]
    assert len({talk["user"] for talk in talks}) == len(talks) > 10
    assert all(talk["adopter"] != talk["user"] for talk in talks)
    # the first item of each user is given, and not re-enacted: its adopters are in no event
    assert sum(talk["adopter"] in taken.get(talk["item"], ()) for talk in talks) > len(talks) / 2
    other = runs.run(tmp_path / "other", "seed=6", text=text)
    assert [event["data"] for event in runs.events(other.path, "discussion.talk")] != talks


def test_a_decision_can_be_traced_to_the_review(tmp_path: Path) -> None:
    finished, _ = _shop(tmp_path)
    trace = Trace(finished.path / "events.jsonl")
    (review,) = _said(_event(finished.path), "review")
    decision = _said(_event(finished.path), "decision")[-1]["id"]
    seen, waiting = set(), [decision]
    while waiting:
        for cause in trace.record(waiting.pop()).because:
            if cause not in seen:
                seen.add(cause)
                waiting.append(cause)
    assert review["id"] in seen and f"{TALK}#decide/before.0" in seen
    assert {f"venue:discussion/u/talk@{at}" for at in (1, 2, 3)} <= seen


def test_no_memory_of_user_or_item_changes(tmp_path: Path) -> None:
    finished, _ = _shop(tmp_path)
    event = _event(finished.path)
    assert {memory["agent"] for memory in event["memories"]} == {"venue:discussion/u"}
    assert [(edge["user"], edge["node"], edge["kind"]) for edge in event["edges"]] == [
        ("user:u", "venue:discussion/u", "attendance"),
        ("user:w", "venue:discussion/u", "attendance"),
    ]


def test_calls_are_as_many_as_announced(tmp_path: Path) -> None:
    finished, model = _shop(tmp_path)
    planned = {stage.name: stage for stage in check.plan(read(finished.path / "scenario.yaml")[0]).stages}["discussion"]
    made = sum(call.startswith("discussion/") for call in model.asked)
    assert (planned.events, planned.least_calls, planned.most_calls) == (2, 4, 7)
    assert planned.least_calls <= made == 6 <= planned.most_calls


def test_answers_in_json_say_the_same(tmp_path: Path) -> None:
    text, json = (runs.run(tmp_path / form, f"llm.output={form}", text=MARKET) for form in ("text", "json"))
    assert text.report.results == json.report.results
    assert _values(text)


REPLIES = (
    st.sampled_from((*GARBAGE, "Choice: Yes\nExplanation: why", "Choice: No", "My review: Fine.", "Sí", _says("Bye!")))
    | st.none()
    | st.text(max_size=60)
    | st.text(max_size=60).map("Choice: Yes\nExplanation: {}".format)
    | st.text(max_size=60).map("My review: {}".format)
    | st.text(max_size=60).map("Message: {}\nGoodbye: no".format)
)


@settings(max_examples=8, deadline=None)
@given(st.lists(REPLIES, min_size=1, max_size=6))
def test_whatever_a_model_answers_everything_is_counted_once(replies: list[str | None]) -> None:
    """All questions of the stage get these replies in turn; ``None`` is the rule-based answer."""

    def said(request: Request) -> str | None:
        return replies[sum(request.call.encode()) % len(replies)] if request.call.startswith("discussion/") else None

    with tempfile.TemporaryDirectory() as folder:
        finished = runs.run(Path(folder) / "run", text=MARKET, backend=Scripted(Watched(said)))
        events = runs.events(finished.path, "discussion.talk")
        skipped = finished.report.skipped.get("discussion", {})
    whole = [event for event in events if len(_said(event, "decision")) == 2]
    begun = [event for event in events if "turn/1" in event["units"]]
    assert len(whole) + sum(skipped.values()) == 8
    values = _values(finished)
    for (group, metric), (value, n) in values.items():
        lowest, highest = (-1, 1) if " - " in group else (0, 4) if metric == "turns" else (0, 1)
        assert lowest <= value <= highest
        assert n == len(begun if group == "talks" else whole)
    if begun:
        assert sum(values["talks", end][0] for end in ("goodbye", "limit", "failed")) == pytest.approx(1)
        turns = sum(len(_said(event, "talk")) for event in begun) / len(begun)
        assert values["talks", "turns"][0] == pytest.approx(turns)
    assert bool(begun) == (("talks", "turns") in values) and bool(whole) == (("before", "yes") in values)
