"""Long talks: what fits the window, what is kept of the rest, talks of earlier days, and what messages are for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_interec_converse import FETCH, _always, _games, _run, _said

from simengine.errors import InputError
from simengine.llm.replies import decision, dialogue, talk
from simengine.llm.request import Request
from simengine.methods.interec import memory
from simengine.methods.interec.profile import Profile
from simengine.testing import MethodContract

LONG = """
name: long
seed: 5
data: {format: market, users: 4, items: 40, interests: 3, interactions: 8, seed: 4}
method: {kind: interec, window: 60, long_term: true, reflection: 1}
stages: [{converse: {mode: long_chat, turns: 12}}, {converse: {mode: long_context}}]
"""


class TestContractLong(MethodContract):
    scenario = LONG.replace("users: 4", "users: 3").replace("turns: 12", "turns: 8")


# -- the window --------------------------------------------------------------------------------------------------------

sizes = st.lists(st.integers(1, 200), max_size=12)


@given(sizes, st.integers(1, 60))
def test_the_window_holds_as_many_of_the_newest_as_fit(lengths: list[int], window: int) -> None:
    """Two lines an exchange, four characters a token; the last exchange is always there."""
    lines = [line for length in lengths for line in ("u" * length, "r" * length)]
    first = memory._first(lines, window)
    tokens = [length / 2 for length in lengths]
    assert 0 <= first <= max(len(lengths) - 1, 0)
    assert sum(tokens[first:]) <= window or first == len(lengths) - 1
    assert first == 0 or sum(tokens[first - 1 :]) > window


@given(sizes, st.integers(1, 60), st.integers(0, 5))
def test_what_is_distilled_is_all_that_leaves_the_window_once(lengths: list[int], window: int, known: int) -> None:
    """In pieces that follow each other, none longer than the window unless it is a single exchange."""
    known = min(known, len(lengths))
    lines = [line for length in lengths for line in ("u" * length, "r" * length)]
    tokens = [length / 2 for length in lengths]
    pieces = memory._pieces(lines, known, window)
    if sum(tokens[known:]) <= window:
        assert not pieces
        return
    assert len(pieces) <= memory.PIECES
    assert [first for first, _ in pieces] == [known, *(end for _, end in pieces[:-1])][: len(pieces)]
    for first, end in pieces:
        assert first < end
        assert sum(tokens[first:end]) <= window or end == first + 1
    if pieces and len(pieces) < memory.PIECES:
        assert pieces[-1][1] == max(known, memory._first(lines, window // 2))


# -- what is kept ------------------------------------------------------------------------------------------------------

PLAN = {"profile": {"like": [], "dislike": [], "expect": ["war"]}, "steps": json.loads(FETCH)["steps"]}


def _tastes(request: Request) -> str:
    """He likes what he named first, and does not want it any more once he says so."""
    lines = request.messages[-1].content
    like = ["Portal"] if "I like Portal" in lines else []
    return json.dumps({"like": like, "dislike": ["Portal"] if "no more Portal" in lines else []})


def _speaks(*texts: str) -> Callable[[Request], str]:
    """What the user says, turn by turn."""
    return lambda request: talk.write(texts[min(len(request.slots.get("dialogue", ())) // 2, len(texts) - 1)], False)


@pytest.mark.parametrize("long_term", [False, True])
def test_what_leaves_the_window_is_forgotten_or_distilled(long_term: bool, tmp_path: Path) -> None:
    """The last plan is made from the newest lines; with long-term memory also from the tastes that the rest told."""
    answers = {
        "converse.user": _speaks("I like Portal very much.", *["Something else, please, a little longer."] * 4),
        "converse.plan": _always(json.dumps(PLAN)),
        "converse.reply": _always("Message: Hm, that is hard to find."),
        "converse.critic": _always(decision.write(True, "Good.")),
        "converse.distil": _tastes,
    }
    method = f"method={{kind: interec, window: 45, long_term: {str(long_term).lower()}, demonstrations: 0}}"
    _, lines, model = _run(
        tmp_path, _games(u5="g16"), answers, method, "stages=[{converse: {mode: long_chat, turns: 5, k: 1}}]"
    )
    plans = [request for request in model.asked if request.task == "converse.plan"]
    last = plans[-1].messages[-1].content
    assert "I like Portal" not in last
    assert "I like Portal" in plans[1].messages[-1].content
    assert ("likes: Portal" in last) == long_term
    assert any(task == "distil" for task in model.tasks()) == long_term
    kept = [version.value for line in lines for version in line.memories if version.slot == "long_term"]
    assert bool(kept) == long_term
    if long_term:
        assert kept[-1]["profile"]["like"] == ["Portal"]
        assert [it["exchanges"] for it in kept] == sorted({it["exchanges"] for it in kept})


def test_a_session_has_no_long_term_memory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no long-term memory") as caught:
        _run(tmp_path, _games(u5="g16"), {}, "method={kind: interec, long_term: true}", "stages=[{converse: {}}]")
    assert caught.value.where["field"] == "method.long_term"


def test_what_is_newer_holds_and_what_was_expected_once_does_not() -> None:
    older = Profile(("Portal", "Puzzle"), ("b",), ("war",))
    assert older.merged(Profile(("b",), ("Portal",))) == Profile(("Puzzle", "b"), ("Portal",), ())


def test_a_profile_that_cannot_be_read_is_asked_for_again_in_the_next_turn(tmp_path: Path) -> None:
    """Meanwhile the talk goes on with what fits the window."""
    answers = {
        "converse.user": _speaks(*["I like Portal very much, and so on."] * 6),
        "converse.plan": _always('{"steps": []}'),
        "converse.reply": _always("Message: Hm, that is hard to find."),
        "converse.critic": _always(decision.write(True, "Good.")),
        "converse.distil": _always("I would rather not."),
    }
    method = "method={kind: interec, window: 40, long_term: true, demonstrations: 0}"
    _, lines, model = _run(
        tmp_path, _games(u5="g16"), answers, method, "stages=[{converse: {mode: long_chat, turns: 5}}]"
    )
    failed = [line.units["distil/1"] for line in lines if "distil/1" in line.units]
    assert len(failed) > 1
    assert set(failed) == {"incomplete"}
    assert _said(lines[-1], "end")[0]["how"] == "limit"
    plans = [request.slots.get("dialogue", ()) for request in model.asked if request.task == "converse.plan"]
    assert len(plans[-1]) < 8


# -- modes -------------------------------------------------------------------------------------------------------------


def test_a_long_chat_informs_for_five_turns_and_chats_for_five(tmp_path: Path) -> None:
    answers = {"converse.user": _always(talk.write("Hm.", False)), "converse.plan": _always('{"steps": []}')}
    sets = ("method={kind: interec, reflection: 0}", "stages=[{converse: {mode: long_chat, turns: 11}}]")
    _, lines, model = _run(tmp_path, _games(u5="g16"), answers, *sets)
    users = [request.messages[-1].content for request in model.asked if request.task == "converse.user"]
    intents = [text.partition("What this message is for: ")[2].partition(":")[0] for text in users]
    assert intents == ["share", "describe", "share", "describe", "share", *["chat"] * 5, "share"]
    assert len(lines) == 11


def test_a_long_chat_has_fifty_turns_where_nothing_else_is_said(tmp_path: Path) -> None:
    answers = {"converse.user": _always(talk.write("Hm.", False)), "converse.plan": _always('{"steps": []}')}
    sets = ("method={kind: interec, reflection: 0, demonstrations: 0}", "stages=[{converse: {mode: long_chat}}]")
    _, lines, _ = _run(tmp_path, _games(u5="g16"), answers, *sets)
    assert len(lines) == 50


def test_a_talk_of_an_earlier_day_that_names_the_target_marks_the_conversation(tmp_path: Path) -> None:
    """Its writer does not know the target, and may name it all the same."""
    guess = dialogue.write([("I had Portal.", "Then take 100% Orange Juice.")])
    answers = {"converse.day": _always(guess), "converse.user": _always(talk.write("Something, please.", False))}
    finished, lines, _ = _run(
        tmp_path, _games(u1="g16"), answers, "stages=[{converse: {mode: long_context, turns: 1}}]"
    )
    assert _said(lines[-1], "end")[0]["named"]
    assert finished.report.skipped == {"converse": {"the target was named": 1}}


def test_talks_of_earlier_days_stand_before_a_long_context(tmp_path: Path) -> None:
    """Of all that the user has had, in its order, and nothing of the target; the session's user has not heard them."""
    days = []

    def day(request: Request) -> str:
        days.append(request.slots["history"])
        return dialogue.write([(f"I had {'; '.join(request.slots['history'])}.", "Good.")])

    answers = {
        "converse.day": day,
        "converse.user": _always(talk.write("Something, please.", False)),
        "converse.plan": _always('{"steps": []}'),
    }
    sets = (
        "method={kind: interec, reflection: 0, demonstrations: 0}",
        "stages=[{converse: {mode: long_context, turns: 1, days: 2}}]",
    )
    _, lines, model = _run(tmp_path, _games(u1="g16"), answers, *sets)
    assert days == [("Portal",), ("Portal 2", "Half-Life 2")]
    assert [line.event for line in lines] == ["converse/talk/u1/1", "converse/talk/u1/1+2"]
    plan = next(request for request in model.asked if request.task == "converse.plan")
    assert plan.slots["dialogue"] == (
        "User: I had Portal.",
        "Recommender: Good.",
        "User: I had Portal 2; Half-Life 2.",
        "Recommender: Good.",
    )
    user = next(request for request in model.asked if request.task == "converse.user")
    assert "I had Portal." not in user.messages[-1].content
