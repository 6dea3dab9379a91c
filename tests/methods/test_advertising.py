"""Advertising through the engine: who is shown what, in which order, who judges, and what a failure leaves out."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import runs
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Completion, Request
from simengine.testing import GARBAGE, MethodContract

# above temperature 0 no two calls share an answer, so that all of them are seen
MARKET = """
name: small
seed: 5
data: {format: market, users: 8, items: 16, interests: 3, interactions: 6, seed: 4}
llm: {temperature: 0.5}
method: {kind: agentcf}
stages: [{optimize: {}}, {advertising: {items: 4, judges: 3}}]
"""
TINY = MARKET.replace("users: 8, items: 16", "users: 5, items: 10").replace("interactions: 6", "interactions: 5")
ASPECTS = ("personal", "creative", "attractive")
Answer = Callable[[Request], str | None]


class TestContract(MethodContract):
    scenario = TINY


class Told:
    """Says a text of its own for each call of the study, so that each can be found again; all are kept."""

    def __init__(self, instead: Answer = lambda request: None) -> None:
        self.asked: dict[str, Request] = {}
        self._instead = instead

    async def __call__(self, request: Request) -> Completion:
        self.asked[request.call] = request
        text = self._instead(request) or self._said(request)
        return await Lexical().complete(request) if text is None else Completion(text)

    def _said(self, request: Request) -> str | None:
        heading = {
            "advertising.draft": "My advertisement",
            "advertising.critique": "My suggestions",
            "advertising.refine": "My advertisement",
        }.get(request.task)
        return f"{heading}: {_own(request.call)}" if heading else None


def _own(call: str) -> str:
    return f"The text of {call.replace('#', ' ')}."


def _run(folder: Path, *sets: str, text: str = MARKET, instead: Answer = lambda request: None) -> tuple[Any, Told]:
    model = Told(instead)
    return runs.run(folder / "run", *sets, text=text, backend=Scripted(model)), model


def _items(finished: Any) -> list[str]:
    return [event["data"]["item"] for event in runs.events(finished.path, "advertising.create")]


def _judgements(finished: Any) -> list[dict[str, Any]]:
    return runs.events(finished.path, "advertising.judge")


def _text(request: Request) -> str:
    return "\n".join(message.content for message in request.messages)


def test_the_draft_is_written_from_what_the_item_says_of_itself(tmp_path: Path) -> None:
    finished, model = _run(tmp_path)
    memories = {
        memory["agent"]: memory["value"]
        for event in runs.events(finished.path, "interaction")
        for memory in event.get("memories", ())
        if memory["slot"] == "memory"
    }
    assert len(_items(finished)) == 4
    for name in _items(finished):
        request = model.asked[f"advertising/create/{name}#draft"]
        assert request.slots["memory"] == memories[f"item:{name}"]
        assert str(request.slots["title"]) in memories[f"item:{name}"]
        assert "At most 150 words" in _text(request) and "against the law" in _text(request)


def test_three_critics_see_the_draft_and_none_sees_another_s_suggestions(tmp_path: Path) -> None:
    finished, model = _run(tmp_path)
    for name in _items(finished):
        create = f"advertising/create/{name}"
        requests = [model.asked[f"{create}#critique/{aspect}"] for aspect in ASPECTS]
        for aspect, request in zip(ASPECTS, requests, strict=True):
            text = _text(request)
            assert _own(f"{create}#draft") in text and "At most 40 words" in text
            assert [other for other in ASPECTS if f"best at the {other} side" in text] == [aspect]
            assert "The text of" not in text.replace(_own(f"{create}#draft"), "")


def test_the_refinement_sees_the_draft_and_all_suggestions(tmp_path: Path) -> None:
    finished, model = _run(tmp_path)
    for name in _items(finished):
        create = f"advertising/create/{name}"
        text = _text(model.asked[f"{create}#refine"])
        for unit in ("draft", *(f"critique/{aspect}" for aspect in ASPECTS)):
            assert _own(f"{create}#{unit}") in text
        assert "At most 200 words" in text


def test_judges_see_both_advertisements_in_their_order_and_not_the_item(tmp_path: Path) -> None:
    finished, model = _run(tmp_path)
    shorts = {
        memory["agent"]: memory["value"]
        for event in runs.events(finished.path, "interaction")
        for memory in event["memories"]
        if memory["slot"] == "short"
    }
    for event in _judgements(finished):
        request = model.asked[f"{event['event']}#judge"]
        create, unit = f"advertising/create/{event['data']['item']}", {"draft": "draft", "refined": "refine"}
        assert request.slots["options"] == tuple(_own(f"{create}#{unit[which]}") for which in event["data"]["shown"])
        assert request.slots["memory"] == shorts[f"user:{event['data']['user']}"]
        assert "filed under" not in _text(request)


def test_what_is_preferred_goes_by_what_was_shown_where(tmp_path: Path) -> None:
    """A judge who always takes the second advertisement prefers the draft where it was shown second."""

    def second(request: Request) -> str | None:
        return (
            "Chosen advertisement: Advertisement 2\nExplanation: Why not."
            if request.task == "advertising.judge"
            else None
        )

    finished, _ = _run(tmp_path, instead=second)
    for event in _judgements(finished):
        verdict = next(message for message in event["messages"] if message["kind"] == "verdict")
        assert verdict["body"] == {"preferred": event["data"]["shown"][1], "explanation": "Why not."}
        assert verdict["sender"] == f"user:{event['data']['user']}"
    found = {(result.metric, result.group): result.value for result in finished.report.results}
    assert found["takes what is first", "both orders"] == 0
    assert found["prefers refined", "refined first"] == 0 and found["prefers refined", "draft first"] == 1


def test_each_order_is_shown_as_often_within_an_item_and_in_all(tmp_path: Path) -> None:
    finished, _ = _run(tmp_path)
    first = Counter((event["data"]["item"], event["data"]["shown"][0]) for event in _judgements(finished))
    assert {abs(first[name, "draft"] - first[name, "refined"]) for name in _items(finished)} == {1}, "three judges each"
    assert sum(count for (_, which), count in first.items() if which == "draft") == 4 * 3 / 2


def test_judges_did_not_have_the_item_and_items_are_trained(tmp_path: Path) -> None:
    """In this market each user has six items: a first one, four to be re-enacted or validated, and the target."""
    finished, _ = _run(tmp_path, "stages=[{optimize: {}}, {advertising: {items: 50, judges: 50}}]")
    taken: dict[str, set[str]] = {}
    for event in runs.events(finished.path, "interaction"):
        taken.setdefault(event["data"]["item"], set()).add(event["data"]["user"])
    assert sorted(_items(finished)) == sorted(taken), "more items were asked for than there are, so it is all of them"
    judges: dict[str, list[str]] = {name: [] for name in taken}
    for event in _judgements(finished):
        judges[event["data"]["item"]].append(event["data"]["user"])
    for name, users in taken.items():
        assert len(judges[name]) == len(set(judges[name])) > 0
        assert not users & set(judges[name])


def test_another_seed_draws_others(tmp_path: Path) -> None:
    drawn = {seed: sorted(_items(_run(tmp_path / seed, f"seed={seed}")[0])) for seed in ("5", "6", "7")}
    assert len(set(map(tuple, drawn.values()))) > 1


def test_suggestions_are_the_causes_of_the_refined_version_alone(tmp_path: Path) -> None:
    finished, _ = _run(tmp_path)
    for event in runs.events(finished.path, "advertising.create"):
        suggestions = {message["id"] for message in event["messages"] if message["kind"] == "suggestions"}
        because = {memory["slot"]: set(memory["because"]) for memory in event["memories"]}
        assert len(suggestions) == 3 and suggestions <= because["refined"] and not suggestions & because["draft"]
        assert {memory["agent"] for memory in event["memories"]} == {f"venue:advertising/{event['data']['item']}"}
    for event in _judgements(finished):
        assert "memories" not in event
        edge = {"user": f"user:{event['data']['user']}", "node": f"venue:advertising/{event['data']['item']}"}
        assert [{key: each[key] for key in edge} for each in event["edges"]] == [edge]


def _broken(folder: Path, *units: str) -> tuple[Any, Told, str]:
    """A run in which one item, which is named, gets garbage for these units."""
    name = _items(_run(folder / "whole")[0])[0]
    calls = {f"advertising/create/{name}#{unit}{again}" for unit in units for again in ("", "/reask")}
    return *_run(folder, instead=lambda request: "???" if request.call in calls else None), name


def test_the_others_go_on_without_a_critic(tmp_path: Path) -> None:
    finished, model, name = _broken(tmp_path, "critique/creative")
    text = _text(model.asked[f"advertising/create/{name}#refine"])
    assert [aspect for aspect in ASPECTS if _own(f"advertising/create/{name}#critique/{aspect}") in text] == [
        "personal",
        "attractive",
    ]
    assert finished.report.failures == {"critique: no_heading": 1} and not finished.report.skipped
    assert "advertising: of 4 items, 1 failed in critique/creative: no_heading" in finished.report.notes


def test_without_a_draft_nobody_is_asked_further(tmp_path: Path) -> None:
    finished, model, name = _broken(tmp_path, "draft")
    calls = [call for call in model.asked if call.startswith(f"advertising/create/{name}#")]
    assert calls == [f"advertising/create/{name}#draft", f"advertising/create/{name}#draft/reask"]
    assert not any(call.startswith(f"advertising/judge/{name}/") for call in model.asked)
    assert finished.report.skipped == {"advertising": {"judge: no_advertisements": 3}}
    assert {result.n for result in finished.report.results} == {3}, "the other three items count"


def test_without_any_suggestion_there_is_no_refined_version(tmp_path: Path) -> None:
    finished, model, name = _broken(tmp_path, *(f"critique/{aspect}" for aspect in ASPECTS))
    assert f"advertising/create/{name}#refine" not in model.asked
    assert finished.report.failures == {
        "critique: no_heading": 3,
        "refine: no_suggestions": 1,
        "judge: no_advertisements": 3,
    }
    words = {result.group: result.n for result in finished.report.results if result.metric == "words"}
    assert words == {"draft": 4, "refined": 3}


def test_answers_in_json_say_the_same(tmp_path: Path) -> None:
    text, json = (runs.run(tmp_path / form, f"llm.output={form}", text=MARKET) for form in ("text", "json"))
    assert text.report.results == json.report.results


HEADINGS = ("", "My advertisement: ", "My suggestions: ", "Chosen advertisement: ")
REPLIES = st.sampled_from(GARBAGE) | st.none() | st.builds(str.__add__, st.sampled_from(HEADINGS), st.text(max_size=60))


@settings(max_examples=8, deadline=None)
@given(st.lists(REPLIES, min_size=1, max_size=6))
def test_whatever_a_model_answers_everything_is_counted_once(replies: list[str | None]) -> None:
    """Advertisers, critics and judges get these replies in turn; ``None`` is the answer of the others."""

    def said(request: Request) -> str | None:
        return replies[sum(request.call.encode()) % len(replies)] if request.call.startswith("advertising/") else None

    with tempfile.TemporaryDirectory() as folder:
        finished, _ = _run(Path(folder), text=TINY, instead=said)
        judged = _judgements(finished)
    verdicts = [message for event in judged for message in event.get("messages", ()) if message["kind"] == "verdict"]
    assert len(verdicts) + sum(finished.report.skipped.get("advertising", {}).values()) == len(judged) > 0
    for result in finished.report.results:
        assert result.value is not None and result.value >= 0 and 1 <= result.n <= 4
        assert result.metric == "words" or result.value <= 1
        assert result.n == 1 or 0 <= result.low <= result.high
