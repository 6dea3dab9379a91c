"""Reviews through the engine: who writes and who reads what, what is skipped, and what a failure leaves out."""

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
stages: [{optimize: {}}, {reviews: {writers: 3, read: 1}}]
"""
CONDITIONS = [f"{sign} {side}" for sign in ("positive", "negative") for side in ("similar", "dissimilar")]

# u and v both take t next, which w1 to w4 have had; x takes q, which nobody has had, y takes s, which only z has had.
HEADER = "user_id:token|item_id_list:token_seq|item_id:token\n"
FILES = {
    "x.train.inter": HEADER + "u|a|b\nv|a|c\nw1|a|t\nw2|b|t\nw3|c|t\nw4|a|t\nx|a|b\ny|b|c\nz|a|s\n",
    "x.test.inter": HEADER + "u|a b|t\nv|a c|t\nw1|a t|b\nx|a b|q\ny|b c|s\n",
    "x.item": "item_id:token|title:token_seq|category:token_seq\n"
    + "".join(f"{name}|Title {name.upper()}|Folk\n" for name in "abcqst"),
    "x.random": "u|c q s\nv|b q s\nw1|c q s\nx|c s t\ny|a q t\n",
}
SHOP = """
# above temperature 0 no two calls share an answer, so that all of them are seen
name: shop
data: {{format: atomic, path: {path}, noun: CD, clock: step}}
llm: {{temperature: 0.5}}
method: {{kind: agentcf}}
stages: [{{optimize: {{}}}}, {{reviews: {{words: 30, read: {read}, writers: {writers}}}}}]
"""
MEMORIES = {
    "u": "alpha beta gamma",
    "w1": "omega psi",
    "w2": "alpha beta delta",
    "w3": "alpha rho sigma",
    "w4": "alpha beta gamma kappa",
    "v": "omega psi chi",
}
"""What users come to say of themselves: nearest to u are w4, w2, w3, w1 in this order; nearest to v is w1."""


class TestContract(MethodContract):
    scenario = MARKET.replace("users: 8", "users: 5")


class Watched:
    """The lexical model, of which every request is kept; ``instead`` may answer in its place.

    Users come to know of themselves what ``MEMORIES`` says.
    """

    def __init__(self, instead: Callable[[Request], str | None]) -> None:
        self.asked: dict[str, Request] = {}
        self._instead = instead

    async def __call__(self, request: Request) -> Completion:
        self.asked[request.call] = request
        text = self._instead(request)
        who = request.call.split("/")[1]
        if text is None and request.task == "reflect.user" and who in MEMORIES:
            text = selfintro.write(MEMORIES[who])
        return await Lexical().complete(request) if text is None else Completion(text)

    def prompt(self, call: str) -> str:
        """All that a call showed."""
        return "\n".join(message.content for message in self.asked[call].messages)


def _shop(
    folder: Path, instead: Callable[[Request], str | None] = lambda request: None, *, read: int = 1, writers: int = 5
) -> tuple[Any, Watched]:
    data = folder / "data"
    data.mkdir(parents=True)
    for name, content in FILES.items():
        (data / name).write_text(content.replace("|", "\t"), encoding="utf-8")
    model = Watched(instead)
    text = SHOP.format(path=data, read=read, writers=writers)
    return runs.run(folder / "run", text=text, backend=Scripted(model)), model


def _written(folder: Path) -> dict[str, str]:
    """The reviews in all threads, by thread, sign and writer."""
    return {
        f"{memory['agent']} {memory['slot']}": memory["value"]
        for event in runs.events(folder, "reviews.write")
        for memory in event.get("memories", ())
    }


def _event(folder: Path, name: str) -> dict[str, Any]:
    return next(event for event in runs.events(folder) if event["event"] == name)


def _decided(event: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {said["body"]["when"]: said for said in event["messages"] if said["kind"] == "decision"}


def test_adopters_write_once_for_all_who_take_the_item_next(tmp_path: Path) -> None:
    finished, model = _shop(tmp_path)
    events = [event["event"] for event in runs.events(finished.path) if event["kind"].startswith("reviews")]
    written = [f"reviews/write/t/w{at}" for at in (1, 2, 3, 4)]
    # b, which w1 takes next, was u's and x's in training, and w2's and y's before it
    written_too = [f"reviews/write/b/{who}" for who in ("u", "w2", "x", "y")]
    cases = ["reviews/read/u", "reviews/read/v", "reviews/read/w1", "reviews/skip/x", "reviews/skip/y"]
    assert sorted(events) == sorted([*written, *written_too, *cases])
    writing = [call for call in model.asked if call.startswith("reviews/write/t/")]
    assert sorted(writing) == sorted(f"{event}#review/{sign}" for event in written for sign in ("positive", "negative"))
    assert set(_written(finished.path)) == {
        f"venue:reviews/{thing} {sign}:{who}"
        for thing, writers in (("t", ("w1", "w2", "w3", "w4")), ("b", ("u", "w2", "x", "y")))
        for who in writers
        for sign in ("positive", "negative")
    }
    assert finished.report.skipped == {"reviews": {"no past adopter": 1, "only one past adopter": 1}}
    assert any("2 of 5 test cases are left out" in note and "users x, y" in note for note in finished.report.notes)


def test_a_review_is_asked_for_with_both_memories_and_the_limit(tmp_path: Path) -> None:
    finished, model = _shop(tmp_path)
    for sign, verdict in (("positive", "you like it"), ("negative", "you dislike it")):
        prompt = model.prompt(f"reviews/write/t/w2#review/{sign}")
        about = _event(finished.path, "reviews/write/t/w2")["messages"][0]["because"]
        item = Trace(finished.path / "events.jsonl").record(about[0])
        assert about[0].startswith("item:t/memory@") and item.text in prompt
        assert all(part in prompt for part in (MEMORIES["w2"], "Title T", "At most 30 words", verdict))
    both = [model.asked[f"reviews/write/t/w2#review/{sign}"].messages[1].content for sign in ("positive", "negative")]
    assert both[0].replace("you like it", "you dislike it") == both[1], "nothing else tells the sign"


def test_a_test_user_decides_before_any_review_is_read(tmp_path: Path) -> None:
    finished, model = _shop(tmp_path)
    request = model.asked["reviews/read/u#decide/before"]
    prompt = model.prompt("reviews/read/u#decide/before")
    assert MEMORIES["u"] in prompt and "Title T" in prompt
    assert not {"reviews", "former", "side", "explanation"} & request.slots.keys()
    assert not any(text in prompt for text in _written(finished.path).values())


@pytest.mark.parametrize(("read", "similar", "dissimilar"), [(1, ["w4"], ["w1"]), (2, ["w4", "w2"], ["w3", "w1"])])
def test_the_nearest_are_similar_and_the_farthest_dissimilar(
    read: int, similar: list[str], dissimilar: list[str], tmp_path: Path
) -> None:
    finished, model = _shop(tmp_path, read=read)
    written = _written(finished.path)
    for sign in ("positive", "negative"):
        for side, writers in (("similar", similar), ("dissimilar", dissimilar)):
            request = model.asked[f"reviews/read/u#decide/{sign}/{side}"]
            assert request.slots["reviews"] == tuple(written[f"venue:reviews/t {sign}:{who}"] for who in writers)
            assert request.slots["side"] == side


def test_all_memories_that_were_compared_are_causes_of_what_is_shown(tmp_path: Path) -> None:
    """Also of writers who are not read: had their memories been others, others would be read."""
    finished, _ = _shop(tmp_path, read=1)
    said = [said for said in _event(finished.path, "reviews/read/u")["messages"] if said["kind"] == "reviews"]
    assert len(said) == 4
    for message in said:
        owners = {cause.partition("/")[0] for cause in message["because"]}
        assert {f"user:{who}" for who in ("u", "w1", "w2", "w3", "w4")} <= owners


def test_of_an_odd_number_the_one_in_the_middle_is_read_by_nobody(tmp_path: Path) -> None:
    finished, model = _shop(tmp_path, read=5, writers=3)
    writers = _event(finished.path, "reviews/read/u")["data"]["writers"]
    asked = {side: model.asked[f"reviews/read/u#decide/positive/{side}"] for side in ("similar", "dissimilar")}
    assert len(set(writers)) == 3
    assert [len(request.slots["reviews"]) for request in asked.values()] == [1, 1]
    near = [who for who in ("w4", "w2", "w3", "w1") if who in writers]
    written = _written(finished.path)
    assert asked["similar"].slots["reviews"] == (written[f"venue:reviews/t positive:{near[0]}"],)
    assert asked["dissimilar"].slots["reviews"] == (written[f"venue:reviews/t positive:{near[2]}"],)


def test_the_question_after_reading_shows_the_former_decision_and_no_other_condition(tmp_path: Path) -> None:
    def instead(request: Request) -> str | None:
        if request.call == "reviews/read/u#decide/before":
            return "Choice: No\nExplanation: It is not for me, as gamma rays are."
        branch = request.call.partition("#decide/")[2]
        return f"Choice: Yes\nExplanation: Told by {branch}." if request.call.startswith("reviews/read/u#") else None

    finished, model = _shop(tmp_path, instead)
    for condition in CONDITIONS:
        prompt = model.prompt(f"reviews/read/u#decide/{condition.replace(' ', '/')}")
        assert "before you read any review: No" in prompt
        assert "It is not for me, as gamma rays are." in prompt and "Told by" not in prompt
        assert f"taste is {condition.split()[1]} to yours" in prompt
    said = _decided(_event(finished.path, "reviews/read/u"))
    assert list(said) == ["before", *CONDITIONS]
    assert said["before"]["body"] == {
        "when": "before",
        "yes": False,
        "explanation": "It is not for me, as gamma rays are.",
    }
    assert said["positive dissimilar"]["body"]["explanation"] == "Told by positive/dissimilar."


def test_nobody_reads_what_he_has_written(tmp_path: Path) -> None:
    """Also where a test user took his target in training already; in the market everybody writes and reads."""
    finished = runs.run(tmp_path / "run", text=MARKET.replace("users: 8", "users: 20"))
    cases = [event["data"] for event in runs.events(finished.path) if event["kind"] in ("reviews.read", "reviews.skip")]
    assert len({case["user"] for case in cases}) == 20
    taken: dict[str, set[str]] = {}
    for event in runs.events(finished.path, "interaction"):
        taken.setdefault(event["data"]["item"], set()).add(event["data"]["user"])
    for case in cases:
        writers = case["writers"]
        assert case["user"] not in writers and len(set(writers)) == len(writers) <= 3
    written = [
        (event["data"]["item"], event["data"]["writer"]) for event in runs.events(finished.path, "reviews.write")
    ]
    assert len(set(written)) == len(written)
    assert {(case["item"], who) for case in cases if len(case["writers"]) > 1 for who in case["writers"]} == set(
        written
    )


def test_another_seed_asks_other_adopters(tmp_path: Path) -> None:
    def writers(name: str, *sets: str) -> list[list[str]]:
        finished = runs.run(tmp_path / name, *sets, text=MARKET.replace("users: 8", "users: 20"))
        return [event["data"]["writers"] for event in runs.events(finished.path, "reviews.read")]

    assert writers("1") != writers("2", "seed=6")


def test_a_review_can_be_traced_to_those_who_read_it(tmp_path: Path) -> None:
    finished, _ = _shop(tmp_path)
    trace = Trace(finished.path / "events.jsonl")
    reached = {part.event: part.records for part in trace.cone("reviews/write/t/w4#review/positive.0")}
    assert reached["reviews/read/u"] == (
        "reviews/read/u#decide/positive/similar.0",
        "reviews/read/u#decide/positive/similar.1",
    )
    assert "reviews/read/w1" not in reached
    decision = _decided(_event(finished.path, "reviews/read/u"))["positive similar"]["id"]
    names = [cause.record.name for cause in trace.causes(decision).causes]
    assert "reviews/read/u#decide/before.0" in names
    shown = next(cause for cause in trace.causes(decision).causes if cause.record.kind == "reviews")
    causes = [cause.record.name for cause in shown.causes]
    assert causes[-1] == "venue:reviews/t/positive:w4@1"
    # whose reviews are shown goes by the memories of all who were compared
    assert [name.partition("/")[0] for name in causes[:-1]] == [f"user:{who}" for who in ("u", "w4", "w2", "w3", "w1")]


def test_users_attend_the_threads_and_no_memory_of_user_or_item_changes(tmp_path: Path) -> None:
    finished, _ = _shop(tmp_path)
    edges = []
    for event in runs.events(finished.path):
        if event["kind"].startswith("reviews"):
            assert all(memory["agent"].startswith("venue:reviews/") for memory in event.get("memories", ()))
            edges += [(edge["user"], edge["node"]) for edge in event.get("edges", ()) if edge["kind"] == "attendance"]
    on_t = sorted(who for who, venue in edges if venue == "venue:reviews/t")
    assert on_t == [f"user:{who}" for who in ("u", "v", "w1", "w2", "w3", "w4")]
    assert {venue for _, venue in edges} == {"venue:reviews/t", "venue:reviews/b"}


def test_a_failed_review_leaves_out_only_those_who_had_nothing_else_to_read(tmp_path: Path) -> None:
    def garbage(request: Request) -> str | None:
        return "???" if request.call.startswith("reviews/write/t/w4#review/positive") else None

    finished, model = _shop(tmp_path, garbage)
    assert "reviews/read/u#decide/positive/similar" not in model.asked
    assert "reviews/read/u#decide/negative/similar" in model.asked
    units = _event(finished.path, "reviews/read/u")["units"]
    assert units["decide/positive/similar"] == "no_review"
    assert [unit for unit, outcome in units.items() if outcome == "ok"] == [
        "decide/before",
        "nearest",
        "decide/positive/dissimilar",
        "decide/negative/similar",
        "decide/negative/dissimilar",
    ]
    assert finished.report.failures["review: no_heading"] == 1
    assert finished.report.skipped["reviews"]["decide/positive/similar: no_review"] >= 1
    assert any("1 of 16 reviews failed (no_heading)" in note for note in finished.report.notes)

    finished, model = _shop(tmp_path / "two", garbage, read=2)
    assert len(model.asked["reviews/read/u#decide/positive/similar"].slots["reviews"]) == 1
    assert all(result.n == 3 for result in finished.report.results if result.stage == "reviews")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [("是", "other_language"), ("Sí", "other_language"), ("I'm sorry, I cannot pretend to be a person.", "refusal")],
)
def test_another_language_or_a_refusal_is_never_a_no(reply: str, reason: str, tmp_path: Path) -> None:
    """Field cases 10 and 11: one corrective question, then the case is left out, and counted by its reason."""

    def instead(request: Request) -> str | None:
        return reply if request.call.startswith("reviews/read/u#decide/before") else None

    finished, model = _shop(tmp_path, instead)
    asked = sorted(call for call in model.asked if call.startswith("reviews/read/u#"))
    assert asked == ["reviews/read/u#decide/before", "reviews/read/u#decide/before/reask"]
    assert finished.report.skipped["reviews"][f"decide/before: {reason}"] == 1
    assert finished.report.failures == {f"decide: {reason}": 1}
    assert {result.n for result in finished.report.results if result.stage == "reviews"} == {2}
    assert any("as a decision is missing (user u)" in note for note in finished.report.notes)


def test_reviews_that_are_too_long_are_kept_and_counted(tmp_path: Path) -> None:
    def instead(request: Request) -> str | None:
        return f"My review: {'word ' * 31}" if request.task == "review" and "/w4#" in request.call else None

    finished, model = _shop(tmp_path, instead)
    assert any("2 of 16 reviews are longer than 30 words" in note for note in finished.report.notes)
    assert len(model.asked["reviews/read/u#decide/positive/similar"].slots["reviews"][0].split()) == 31


def test_as_many_calls_are_made_as_are_announced(tmp_path: Path) -> None:
    finished, model = _shop(tmp_path)
    planned = {stage.name: stage for stage in check.plan(read(finished.path / "scenario.yaml")[0]).stages}["reviews"]
    made = sum(call.startswith("reviews/") for call in model.asked)
    assert planned.least_calls == planned.most_calls == made == 8 * 2 + 3 * 5
    assert planned.events == 8 + 5


def test_answers_in_json_say_the_same(tmp_path: Path) -> None:
    text, json = (runs.run(tmp_path / form, f"llm.output={form}", text=MARKET) for form in ("text", "json"))
    assert text.report.results == json.report.results
    assert [result for result in text.report.results if result.stage == "reviews"]


@pytest.mark.usefixtures("painted")
def test_two_stages_know_nothing_of_each_other(tmp_path: Path) -> None:
    again = MARKET.replace("read: 1}}]", "read: 1}}, {reviews: {writers: 2}}]")
    finished = runs.run(tmp_path / "run", text=again)
    stages = {result.stage for result in finished.report.results}
    assert {"reviews", "reviews-2"} <= stages
    painted = {path.name for path in finished.path.glob("reviews*.png") if path.stat().st_size}
    assert painted == {"reviews.png", "reviews-2.png"}


REPLIES = (
    st.sampled_from((*GARBAGE, "Choice: Yes\nExplanation: why", "Choice: No", "My review: Fine.", "Sí"))
    | st.none()
    | st.text(max_size=60)
    | st.text(max_size=60).map("Choice: Yes\nExplanation: {}".format)
    | st.text(max_size=60).map("My review: {}".format)
)


@settings(max_examples=8, deadline=None)
@given(st.lists(REPLIES, min_size=1, max_size=6))
def test_whatever_a_model_answers_everything_is_counted_once(replies: list[str | None]) -> None:
    """All questions of the stage get these replies in turn; ``None`` is the rule-based answer."""

    def said(request: Request) -> str | None:
        return replies[sum(request.call.encode()) % len(replies)] if request.call.startswith("reviews/") else None

    with tempfile.TemporaryDirectory() as folder:
        finished = runs.run(Path(folder) / "run", text=MARKET, backend=Scripted(Watched(said)))
        decided = [_decided(event) for event in runs.events(finished.path, "reviews.read")]
        skipped = finished.report.skipped.get("reviews", {})
    results = [result for result in finished.report.results if result.stage == "reviews"]
    whole = [case for case in decided if len(case) == 1 + len(CONDITIONS)]
    assert len(whole) + sum(skipped.values()) == 8
    assert {result.n for result in results} == ({len(whole)} if whole else set())
    for result in results:
        lowest = -1 if " - " in result.group else 0
        assert result.value is not None and lowest <= result.value <= 1
        assert result.n == 1 or lowest <= result.low <= result.value <= result.high <= 1
    share = {result.group: result.value for result in results if result.metric == "yes"}
    for group in ("before", *CONDITIONS) if whole else ():
        assert share[group] == pytest.approx(sum(case[group]["body"]["yes"] for case in whole) / len(whole))
