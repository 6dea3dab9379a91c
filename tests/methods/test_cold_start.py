"""Cold start through the engine: what a new item reads, what users are shown of it, and what a failure leaves out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runs
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine.errors import InputError
from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Completion, Request
from simengine.runlog.trace import Trace
from simengine.testing import GARBAGE, MethodContract

MARKET = """
name: small
seed: 5
data: {format: market, users: 8, items: 16, interests: 3, interactions: 6, seed: 4}
method: {kind: agentcf}
stages: [{optimize: {}}, {cold_start: {read: 2, pool: 5}}]
"""
TINY = MARKET.replace("users: 8, items: 16", "users: 5, items: 10").replace("interactions: 6", "interactions: 5")
CONDITIONS = ["cold", "similar", "distinct", "warm"]

# Three jazz and three rock CDs are trained; u and v take the same new jazz CD, w a new rock CD.
CATEGORIES = {"j": "Jazz; Swing", "r": "Rock; Grunge"}
TITLES = {
    "j1": "Anna",
    "j2": "Bertha",
    "j3": "Carla",
    "r1": "Otto",
    "r2": "Paul",
    "r3": "Rolf",
    "jx": "Zoe",
    "rx": "Yuri",
}
FILES = {
    "x.train.inter": "user_id:token|item_id_list:token_seq|item_id:token\n"
    "u|r1|j1\nu|r1 j1|r2\nv|r1|j2\nv|r1 j2|j1\nw|j2|r1\nw|j2 r1|r3\nw|j2 r1 r3|j3\n",
    "x.test.inter": "user_id:token|item_id_list:token_seq|item_id:token\n"
    "u|r1 j1 r2|jx\nv|r1 j2 j1|jx\nw|j2 r1 r3 j3|rx\n",
    "x.item": "item_id:token|title:token_seq|category:token_seq\n"
    + "".join(f"{name}|{title}|{CATEGORIES[name[0]]}\n" for name, title in TITLES.items()),
    "x.random": "u|r3 j2 j3\nv|r3 r2 j3\nw|j1 r2 jx\n",
}
SHOP = """
# above temperature 0 no two calls share an answer, so that all of them are seen
name: shop
data: {{format: atomic, path: {path}, noun: CD, clock: step}}
llm: {{temperature: 0.5}}
method: {{kind: agentcf}}
stages: [{{optimize: {{}}}}, {{cold_start: {{read: 2, pool: 6, words: 30}}}}]
"""


class TestContract(MethodContract):
    scenario = TINY


class Watched:
    """The lexical model, of which every request is kept; ``instead`` may answer in its place."""

    def __init__(self, instead: Callable[[Request], str | None] = lambda request: None) -> None:
        self.asked: dict[str, Request] = {}
        self._instead = instead

    async def __call__(self, request: Request) -> Completion:
        self.asked[request.call] = request
        text = self._instead(request)
        return await Lexical().complete(request) if text is None else Completion(text)


def _shop(
    folder: Path, *sets: str, instead: Callable[[Request], str | None] = lambda request: None
) -> tuple[Any, Watched]:
    data = folder / "data"
    data.mkdir(parents=True)
    for name, content in FILES.items():
        (data / name).write_text(content.replace("|", "\t"), encoding="utf-8")
    model = Watched(instead)
    return runs.run(folder / "run", *sets, text=SHOP.format(path=data), backend=Scripted(model)), model


def _identity(name: str) -> str:
    return f'"{TITLES[name]}" is a CD filed under: {CATEGORIES[name[0]]}.'


def _memories(folder: Path) -> dict[str, str]:
    """What every item and new item says of itself at the end; an item that nothing was learnt of, its identity."""
    found = {f"item:{name}": _identity(name) for name in TITLES}
    for event in runs.events(folder):
        found |= {
            memory["agent"]: memory["value"] for memory in event.get("memories", ()) if memory["slot"] == "memory"
        }
    return found


def test_a_new_item_reads_what_the_nearest_or_the_farthest_say(tmp_path: Path) -> None:
    finished, model = _shop(tmp_path)
    said = _memories(finished.path)
    for new, near, far in (("jx", "j", "r"), ("rx", "r", "j")):
        for condition, kind in (("similar", near), ("distinct", far)):
            request = model.asked[f"cold_start/adapt/{new}/{condition}#adapt"]
            assert request.slots["memory"] == _identity(new)
            options = request.slots["options"]
            read = [name for name in TITLES if said[f"item:{name}"] in options]
            assert len(options) == len(read) == 2 and {name[0] for name in read} == {kind}
            text = "\n".join(message.content for message in request.messages)
            assert all(part in text for part in (_identity(new), *options, "At most 30 words"))


def test_of_all_items_the_most_popular_that_are_trained_are_read_and_never_the_item_itself(tmp_path: Path) -> None:
    """In the market targets are trained as well, so that each could read itself."""
    finished = runs.run(tmp_path / "run", text=MARKET)
    counts = {f"item:i{at}": 0 for at in range(1, 17)}
    for event in runs.events(finished.path, "interaction"):
        counts[f"item:{event['data']['item']}"] += 1
    read: dict[tuple[str, str], list[str]] = {}
    for event in runs.events(finished.path, "cold_start.adapt"):
        new = f"item:{event['data']['item']}"
        others = sorted((name for name in counts if name != new), key=lambda name: -counts[name])[:5]
        senders = [message["sender"] for message in event["messages"]]
        assert set(senders) <= set(others)
        read[new, event["data"]["condition"]] = senders
    assert any(counts[new] > 0 for new, _ in read)
    for new, condition in read:
        if condition == "similar":
            assert len({*read[new, "similar"], *read[new, "distinct"]}) == 4, "none is read under both conditions"


def test_a_new_item_adapts_once_for_all_users_whose_target_it_is(tmp_path: Path) -> None:
    finished, _ = _shop(tmp_path)
    adapted = [event["event"] for event in runs.events(finished.path, "cold_start.adapt")]
    assert sorted(adapted) == sorted(f"cold_start/adapt/{new}/{at}" for new in ("jx", "rx") for at in CONDITIONS[1:3])


def test_only_the_memory_of_the_new_item_differs_between_conditions(tmp_path: Path) -> None:
    finished, model = _shop(tmp_path)
    said = _memories(finished.path)
    for who, new in (("u", "jx"), ("v", "jx"), ("w", "rx")):
        asked = {at: model.asked[f"cold_start/rank/{who}/{at}#rank"] for at in CONDITIONS}
        first = asked["cold"].slots
        place = first["titles"].index(TITLES[new])
        shown = {at: request.slots["options"][place] for at, request in asked.items()}
        assert shown == {
            "cold": _identity(new),
            "similar": said[f"venue:cold_start/{new}/similar"],
            "distinct": said[f"venue:cold_start/{new}/distinct"],
            "warm": said[f"item:{new}"],
        }
        for request in asked.values():
            assert request.slots["memory"] == first["memory"] and request.slots["titles"] == first["titles"]
            options = [list(slots["options"]) for slots in (first, request.slots)]
            assert options[0][:place] == options[1][:place] and options[0][place + 1 :] == options[1][place + 1 :]
            assert not {"retrieved", "history"} & request.slots.keys()


def test_beside_the_new_item_stand_trained_ones_that_the_user_does_not_know(tmp_path: Path) -> None:
    """Of the six trained CDs u knows r1, j1, r2; v knows r1, j2, j1; w knows j2, r1, r3, j3."""
    finished, _ = _shop(tmp_path)
    found = {
        event["data"]["user"]: event["data"]["candidates"] for event in runs.events(finished.path, "cold_start.rank")
    }
    others = {who: sorted(set(names) - {"jx", "rx"}) for who, names in found.items()}
    assert others == {"u": ["j2", "j3", "r3"], "v": ["j3", "r2", "r3"], "w": ["j1", "r2"]}
    assert "in 3 of 3 test cases fewer than 10 items were shown, down to 3" in " ".join(finished.report.notes)

    market = runs.run(tmp_path / "market", text=MARKET.replace("items: 16", "items: 40"))
    trained = {event["data"]["item"] for event in runs.events(market.path, "interaction")}
    for event in runs.events(market.path, "cold_start.rank"):
        names = event["data"]["candidates"]
        assert len(set(names)) == len(names) == 10
        assert set(names) - {event["data"]["target"]} <= trained


def test_another_seed_shows_other_items_in_other_places(tmp_path: Path) -> None:
    def laid_out(name: str, *sets: str) -> list[list[str]]:
        finished = runs.run(tmp_path / name, *sets, text=MARKET.replace("items: 16", "items: 40"))
        return [event["data"]["candidates"] for event in runs.events(finished.path, "cold_start.rank")]

    first, other = laid_out("1"), laid_out("2", "seed=6")
    assert first != other
    assert len({tuple(names) for names in first}) == 8, "one for each user, whatever the condition"


def test_what_popular_items_say_can_be_traced_to_the_rankings(tmp_path: Path) -> None:
    finished, _ = _shop(tmp_path)
    trace = Trace(finished.path / "events.jsonl")
    message = next(
        line["id"]
        for event in runs.events(finished.path, "cold_start.rank")
        for line in event["messages"]
        if event["event"] == "cold_start/rank/u/similar" and line["kind"] == "ranking"
    )
    reached, waiting = set(), [message]
    while waiting:
        causes = [trace.causes(waiting.pop())]
        for cause in causes:
            causes += cause.causes
        new = [cause.record.name for cause in causes if cause.record.name not in reached]
        reached.update(new)
        waiting += [name for name in new if name.startswith("venue:")]
    assert "venue:cold_start/jx/similar/memory@1" in reached
    for name in ("similar", "distinct"):
        senders = {f"cold_start/adapt/jx/{name}#adapt.{at}" for at in (0, 1)}
        assert senders <= reached if name == "similar" else not senders & reached


def test_users_attend_what_they_are_shown_and_no_memory_of_user_or_item_changes(tmp_path: Path) -> None:
    finished, _ = _shop(tmp_path)
    edges = []
    for event in runs.events(finished.path):
        if event["kind"].startswith("cold_start"):
            assert all(memory["agent"].startswith("venue:cold_start/") for memory in event.get("memories", ()))
            edges += [(edge["user"], edge["node"], edge["kind"]) for edge in event.get("edges", ())]
    assert sorted(edges) == sorted(
        (f"user:{who}", f"venue:cold_start/{new}/{at}", "attendance")
        for who, new in (("u", "jx"), ("v", "jx"), ("w", "rx"))
        for at in ("similar", "distinct")
    )


@pytest.mark.usefixtures("painted")
def test_a_failed_adaptation_leaves_its_cases_out_of_its_condition_alone(tmp_path: Path) -> None:
    def garbage(request: Request) -> str | None:
        return "???" if request.call.startswith("cold_start/adapt/jx/similar#") else None

    finished, model = _shop(tmp_path, instead=garbage)
    asked = {call.partition("#")[0] for call in model.asked if call.startswith("cold_start/rank/")}
    every = {f"cold_start/rank/{who}/{at}" for who in "uvw" for at in CONDITIONS}
    assert every - asked == {"cold_start/rank/u/similar", "cold_start/rank/v/similar"}
    assert finished.report.failures == {"adapt: no_heading": 1, "rank: not_adapted": 2}
    assert finished.report.skipped == {"cold_start": {"similar: not_adapted": 2}}
    assert "cold_start: 1 of 4 adaptations failed (no_heading)" in finished.report.notes
    counted = {(result.group, result.n) for result in finished.report.results}
    assert counted == {
        *((at, 3) for at in ("cold", "distinct", "warm", "distinct - cold")),
        *((at, 1) for at in ("similar", "similar - cold", "similar - distinct")),
    }
    assert (finished.path / "cold_start.png").stat().st_size > 0


def test_too_few_trained_items_are_an_input_error(tmp_path: Path) -> None:
    text = MARKET.replace("read: 2, pool: 5", "read: 9, pool: 18")
    with pytest.raises(InputError, match="items have training interactions, too few") as caught:
        runs.run(tmp_path / "run", text=text)
    assert caught.value.where["field"] == "stages.cold_start.read"


def test_a_pool_too_small_for_both_conditions_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`pool` is at least twice `read`"):
        runs.run(tmp_path / "run", text=MARKET.replace("pool: 5", "pool: 3"))


def test_two_stages_know_nothing_of_each_other(tmp_path: Path) -> None:
    again = MARKET.replace(
        "{cold_start: {read: 2, pool: 5}}", "{cold_start: {read: 2, pool: 5}}, {cold_start: {read: 1}}"
    )
    finished = runs.run(tmp_path / "run", text=again)
    assert {result.stage for result in finished.report.results} == {"cold_start", "cold_start-2"}
    assert all(result.n == 8 for result in finished.report.results)


def test_answers_in_json_say_the_same(tmp_path: Path) -> None:
    text, json = (runs.run(tmp_path / form, f"llm.output={form}", text=MARKET) for form in ("text", "json"))
    assert text.report.results == json.report.results


REPLIES = (
    st.sampled_from(GARBAGE) | st.text(max_size=80) | st.none() | st.text(max_size=80).map("My description: {}".format)
)


@settings(max_examples=8, deadline=None)
@given(st.lists(REPLIES, min_size=1, max_size=5))
def test_whatever_a_model_answers_everything_is_counted_once(replies: list[str | None]) -> None:
    """Adaptations and rankings get these replies in turn; ``None`` is the rule-based answer."""

    def said(request: Request) -> str | None:
        return replies[sum(request.call.encode()) % len(replies)] if request.call.startswith("cold_start/") else None

    with tempfile.TemporaryDirectory() as folder:
        finished = runs.run(Path(folder) / "run", text=TINY, backend=Scripted(Watched(said)))
        adapted = runs.events(finished.path, "cold_start.adapt")
    results, skipped = finished.report.results, finished.report.skipped.get("cold_start", {})
    for result in results:
        lowest = -1 if " - " in result.group else 0
        assert result.value is not None and lowest <= result.value <= 1
        assert result.n == 1 or lowest <= result.low <= result.high <= 1
    ranked = sum(result.n for result in results if result.metric == "mrr" and " - " not in result.group)
    assert ranked + sum(skipped.values()) == 4 * 5
    failed = sum(event["units"]["adapt"] != "ok" for event in adapted)
    told = [note for note in finished.report.notes if "adaptations failed" in note]
    assert sum(int(note.split()[1]) for note in told) == failed
