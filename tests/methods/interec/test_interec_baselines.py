"""The recommenders that the agent is compared with, through the engine: what they see, and that hits are by id."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import runs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interec_games import GAMES, TAKEN, shop_data

from simengine.data import Case, Dataset, Item
from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.reading import pack
from simengine.llm.backends.scripted import Scripted
from simengine.llm.replies import recommendation, talk
from simengine.llm.request import Completion, Request
from simengine.methods.interec.cards import lines, texts, unlike
from simengine.methods.interec.picks import Picks, pick
from simengine.methods.interec.table import build
from simengine.runlog import EventLine, Reader
from simengine.scenario import read
from simengine.scenario.estimate import estimate
from simengine.testing import MethodContract

SMALL = """
name: small
seed: 5
data: {format: market, users: 8, items: 24, interests: 3, interactions: 6, seed: 4}
method: {kind: interec, recommender: bare}
stages: [{converse: {turns: 3}}]
"""
FEW = SMALL.replace("users: 8", "users: 4")
GIVEN = """
name: given
data: {format: frame}
method: {kind: interec, recommender: bare, window: 2000}
stages: [{converse: {turns: 1}}]
"""
CHAT_REC, TWO_TURNS = "method.recommender=chat_rec", "stages=[{converse: {turns: 2}}]"
Answers = Mapping[str, Callable[[Request], str | None]]
"""What is answered to a task in the place of the lexical model, where it is not none."""


class TestContractBare(MethodContract):
    scenario = FEW


class TestContractChatRec(MethodContract):
    scenario = FEW.replace("recommender: bare", "recommender: chat_rec, candidates: 6")


def _games(data: Dataset | None = None, **targets: str) -> Dataset:
    """The shop of games, where users look for these targets."""
    cases = tuple(Case(user, target, TAKEN[user], (target,), 9) for user, target in targets.items())
    return dataclasses.replace(data or shop_data(), cases=cases, digest="games")


def _run(folder: Path, data: Dataset, answers: Answers, *sets: str) -> tuple[Any, list[EventLine], list[Request]]:
    asked: list[Request] = []

    async def model(request: Request) -> Completion:
        asked.append(request)
        instead = answers.get(request.task, lambda _: None)(request)
        return await Lexical().complete(request) if instead is None else Completion(instead)

    finished = runs.run(folder / "run", *sets, text=GIVEN, data=data, backend=Scripted(model))
    return finished, list(Reader(finished.path / "events.jsonl")), asked


def _said(line: EventLine, kind: str) -> list[dict[str, Any]]:
    return [message.body for message in line.messages if message.kind == kind]


def _always(text: str) -> Callable[[Request], str]:
    return lambda request: text


def _names(*titles: str) -> Callable[[Request], str]:
    return _always(recommendation.write("Here.", titles))


def _prompt(request: Request) -> str:
    return "\n".join(message.content for message in request.messages)


SOMETHING = _always(talk.write("Something, please.", False))

# -- titles ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "named", "hit"),
    [
        ("g1", "Portal 2", False),
        ("g1", "Portal", True),
        ("g1", "“portal” (2007)", True),
        ("g1", "Portal 2: a puzzle, better than Portal", False),
        ("g2", "Portal", False),
        ("g3", "Half-Life 2", False),
        ("g3", "half life", True),
        ("g3", "Half-Life: Blue Shift", False),
        ("g3", "Half-Life - the one that all the others copied", True),
        ("g4", "Half-Life", False),
        ("g5", "Bubble Bobble", False),
        ("g5", "Any game with a b in it", False),
        ("g5", "B", True),
        ("g6", "原神", True),
        ("g6", "原", False),
        ("g6", "Genshin Impact", False),
        ("g7", "мор. утопия", True),
        ("g7", "Мор 2", False),
        ("g8", "The Witcher 3: Wild Hunt", True),
        ("g8", "Witcher 3 - Wild Hunt, The", True),
        ("g8", "The Witcher 2: Wild Hunt", False),
        ("g11", "Twins", False),  # there are two
        ("g13", "Counter-Strike: Source", False),
        ("g14", "Counter-Strike", False),
    ],
)
def test_a_hit_is_one_by_id(target: str, named: str, hit: bool, tmp_path: Path) -> None:
    """Whatever titles have in common, and whatever the message says."""
    says = recommendation.write("Portal, Half-Life, b, 原神, Мор. Утопия, The Witcher 3: Wild Hunt!", [named])
    answers = {"converse.user": SOMETHING, "converse.bare": _always(says)}
    _, (line,), _ = _run(tmp_path, _games(u5=target), answers)
    assert _said(line, "end")[0]["how"] == ("hit" if hit else "limit")


def test_what_is_in_vain_takes_its_rank_and_is_told() -> None:
    titles = ["Portal", "Portal 3", "Twins", "portal", "Half-Life 2", "b", "原神"]
    assert pick(titles, 6, build(shop_data())) == Picks(
        ("g1", "", "", "", "g4", "g5"), invented=("Portal 3",), ambiguous=("Twins",), repeated=("portal",), beyond=1
    )
    assert pick(titles, 6, build(shop_data())).items == ("g1", "g4", "g5")
    assert pick([], 5, build(shop_data())) == Picks()


def test_what_was_not_to_choose_from_is_outside_and_settles_who_is_meant() -> None:
    """Of two of one title only one is there; Half-Life is in the catalogue, and never taken for Half-Life 2."""
    found = pick(["Twins", "Half-Life", "Half-Life 2", "Half-Life 3"], 9, build(shop_data()), {"g12", "g4"})
    assert found == Picks(("g12", "", "g4", ""), invented=("Half-Life 3",), outside=("Half-Life",))


SHOP = build(shop_data())
TITLES = st.lists(st.text(max_size=12) | st.sampled_from([title for _, title, *_ in GAMES]), max_size=8)


@given(TITLES, st.integers(1, 6))
def test_items_are_of_the_catalogue_and_each_once(titles: list[str], most: int) -> None:
    found = pick(titles, most, SHOP)
    assert len(found.ranks) == min(len(titles), most)
    assert len(set(found.items)) == len(found.items)
    assert set(found.items) <= set(SHOP.items)
    vain = [found.invented, found.ambiguous, found.repeated, found.outside]
    assert len(found.items) + sum(map(len, vain)) == len(found.ranks)
    assert found.beyond == len(titles) - len(found.ranks)
    assert not found.outside


# -- a bare model ------------------------------------------------------------------------------------------------------


def test_a_bare_model_sees_the_talk_alone_and_is_asked_once_a_turn(tmp_path: Path) -> None:
    answers = {"converse.user": SOMETHING, "converse.bare": _names("Portal 2", "Portal 2", "Nothing Like It", "b")}
    finished, turns, asked = _run(tmp_path, _games(u5="g8"), answers, TWO_TURNS)
    assert [request.task for request in asked] == ["converse.user", "converse.bare"] * 2
    first, second = (_prompt(request) for request in asked if request.task == "converse.bare")
    assert not [title for _, title, *_ in GAMES if len(title) > 1 and title in first]
    assert "Something, please." in first
    assert "at most 5 items" in first
    assert "Recommender: Here. I recommend: Portal 2; Portal 2; Nothing Like It; b." in second
    dialogue = [version.value for turn in turns for version in turn.memories if version.slot == "dialogue"]
    assert dialogue == ["User: Something, please.", dialogue[1]] * 2
    (body,) = _said(turns[0], "reply")
    assert body == {
        "turn": 1, "attempt": 1, "text": dialogue[1].removeprefix("Recommender: "), "items": ["g2", "g5"],
        "ranks": ["g2", "", "", "g5"], "invented": ["Nothing Like It"], "ambiguous": [], "repeated": ["Portal 2"],
        "outside": [], "beyond": 0,
    }  # fmt: skip
    calls = next(result.value for result in finished.report.results if result.metric == "calls per turn")
    assert calls == 1
    assert set(turns[0].units) == {"say/1", "reply/1"}


def test_what_is_asked_again_counts_as_a_call(tmp_path: Path) -> None:
    replies = iter(("Portal is good.", recommendation.write("Here.", ["Portal"])))
    answers = {"converse.user": SOMETHING, "converse.bare": lambda _: next(replies)}
    finished, (line,), _ = _run(tmp_path, _games(u5="g1"), answers)
    assert _said(line, "end")[0]["how"] == "hit"
    assert next(result.value for result in finished.report.results if result.metric == "calls per turn") == 2


def test_no_more_than_k_are_recommended_or_heard(tmp_path: Path) -> None:
    answers = {"converse.user": SOMETHING, "converse.bare": _names("Portal 3", "b", "Portal")}
    _, (line,), _ = _run(tmp_path, _games(u5="g1"), answers, "stages=[{converse: {turns: 1, k: 2}}]")
    (body,) = _said(line, "reply")
    assert (body["items"], body["ranks"], body["beyond"]) == (["g5"], ["", "g5"], 1)
    assert body["text"] == "Here. I recommend: Portal 3; b."
    assert _said(line, "end")[0]["how"] == "limit"


def test_a_long_talk_is_cut_to_the_window(tmp_path: Path) -> None:
    """Ten tokens hold one exchange of these at most, the last one."""
    said = iter(("First words, please.", "Second words, please.", "Third words, please."))
    answers = {
        "converse.user": lambda _: talk.write(next(said), False),
        "converse.bare": _always(recommendation.write("No.", [])),
    }
    sets = ("method.window=10", "stages=[{converse: {turns: 3}}]")
    _, _, asked = _run(tmp_path, _games(u5="g1"), answers, *sets)
    last = _prompt([request for request in asked if request.task == "converse.bare"][-1])
    assert "First words" not in last
    assert "Second words" in last
    assert "Third words" in last


def test_json_is_asked_for_where_the_scenario_says_so(tmp_path: Path) -> None:
    answers = {"converse.bare": _always(recommendation.write("Here.", ["原神"], json=True))}
    _, (line,), asked = _run(tmp_path, _games(u1="g6"), answers, "llm.output=json")
    assert json.loads(asked[1].schema)["required"] == ["message", "recommended"]
    assert _said(line, "end")[0]["how"] == "hit"


@pytest.mark.parametrize("recommender", ["bare", "chat_rec"])
def test_a_reply_that_cannot_be_read_ends_the_talk(recommender: str, tmp_path: Path) -> None:
    answers = {"converse.user": SOMETHING, f"converse.{recommender}": _always("???")}
    finished, (line,), _ = _run(tmp_path, _games(u5="g1"), answers, f"method.recommender={recommender}")
    assert _said(line, "end")[0]["how"] == "error"
    assert not [version for version in line.memories if version.slot == "dialogue"]
    assert finished.report.failures


# -- Chat-Rec ----------------------------------------------------------------------------------------------------------


def test_chat_rec_sees_what_is_near_the_users_words_with_what_is_known_of_it(tmp_path: Path) -> None:
    """Two games have the words; nothing else is shown, and no text of the catalogue is in the search's request."""
    answers = {"converse.user": _always(talk.write("A card game, or some racing.", False))}
    data = _games(u5="g1")
    finished, (line,), asked = _run(tmp_path, data, answers, CHAT_REC)
    shown = _prompt(asked[1])
    assert "- 100% Orange Juice: Card Game; came out in 2013-09-10; costs 6.99; taken 1 times so far\n" in shown
    assert "- Twins: Racing; came out in 2001; costs 5; taken 0 times so far\n" in shown
    assert "Portal" not in shown
    search = next(row.request for row in runs.calls(finished.path) if row.request.task == "search")
    assert dict(search.slots) == {
        "query": "A card game, or some racing.", "corpus": "items", "count": "20", "data": data.kept()
    }  # fmt: skip
    assert set(line.units) == {"say/1", "retrieve", "reply/1"}
    assert next(result.value for result in finished.report.results if result.metric == "calls per turn") == 1


def test_the_query_is_all_that_the_user_has_said(tmp_path: Path) -> None:
    said = iter(("Racing?", "Or a card game?"))
    answers = {
        "converse.user": lambda _: talk.write(next(said), False),
        "converse.chat_rec": _always(recommendation.write("Puzzle? Horror?", [])),
    }
    finished, _, asked = _run(tmp_path, _games(u5="g1"), answers, CHAT_REC, TWO_TURNS)
    queries = [row.request.slots["query"] for row in runs.calls(finished.path) if row.request.task == "search"]
    assert queries == ["Racing?", "Racing?\nOr a card game?"]
    assert "Horror" not in _prompt(asked[-1]).partition("The talk so far")[0]


@pytest.mark.parametrize(("candidates", "shown"), [(1, 1), (2, 2), (20, 4)])
def test_so_many_candidates_are_shown(candidates: int, shown: int, tmp_path: Path) -> None:
    """Four games are called or tagged Puzzle, or have it among their words."""
    data = _games(u5="g1")
    answers = {"converse.user": _always(talk.write("Puzzle", False))}
    # one game is a Puzzle Platformer by title and tag, another is added
    items = (*data.items.values(), Item("g17", "Last", "Puzzle"))
    more = dataclasses.replace(shop_data(items), cases=data.cases, digest="more")
    _, _, asked = _run(tmp_path, more, answers, CHAT_REC, f"method.candidates={candidates}")
    assert _prompt(asked[1]).count(" times so far") == shown


def test_chat_rec_recommends_candidates_alone(tmp_path: Path) -> None:
    """The other of the twins was not near, and Portal is in the catalogue but was not shown."""
    answers = {
        "converse.user": _always(talk.write("Racing, please.", False)),
        "converse.chat_rec": _names("Portal", "Twins", "Twins 2"),
    }
    _, (line,), _ = _run(tmp_path, _games(u5="g1"), answers, CHAT_REC)
    (body,) = _said(line, "reply")
    assert (body["items"], body["ranks"]) == (["g11"], ["", "g11", ""])
    assert (body["outside"], body["invented"]) == (["Portal"], ["Twins 2"])
    assert _said(line, "end")[0]["how"] == "limit"


def test_where_nothing_is_near_the_model_is_told_so(tmp_path: Path) -> None:
    _, (line,), asked = _run(tmp_path, _games(u5="g1"), {"converse.user": _always(talk.write("Hm!", False))}, CHAT_REC)
    assert "None is near what the user has said." in _prompt(asked[1])
    assert _said(line, "reply")[0]["items"] == []


def test_a_retrieval_that_fails_ends_the_talk(tmp_path: Path) -> None:
    """A model that makes no vectors: the failure is recorded, and no model is asked for a reply."""

    async def model(request: Request) -> Completion:
        return Completion(pack([0.0, 0.0])) if request.task == "embed" else await Lexical().complete(request)

    sets = (CHAT_REC, "embed={kind: openai, model: e}", "llm={backend: openai, model: m, base_url: 'http://x'}")
    finished = runs.run(tmp_path / "run", *sets, text=GIVEN, data=_games(u5="g1"), backend=Scripted(model))
    (line,) = Reader(finished.path / "events.jsonl")
    assert _said(line, "end")[0]["how"] == "error"
    assert line.units["retrieve"] != "ok"
    assert not [row for row in runs.calls(finished.path) if row.request.task == "converse.chat_rec"]


def test_the_texts_of_items() -> None:
    late = Item("a", "Heat (1995)", "Crime", "", {"release_date": "1995", "description": "Two men. " * 60})
    early = Item("b", "Heat (1972)", "Crime; Drama", "", {"release_date": "1972", "brand": "W"})
    data, alone = shop_data([late, early], {"u": ("b",)}), shop_data([late], {"u": ("a",)})
    table = build(data)
    first, second = texts(data)
    assert first.startswith("Heat (1995). Crime. Two men. Two men.")
    assert second == "Heat (1972). Crime. Drama. brand W. "
    shown, other = lines(data, table)
    assert shown.startswith("Crime; came out in 1995; taken 0 times so far; Two men.")
    assert shown.endswith("...")
    assert len(shown) < 400
    assert other == "Crime; Drama; came out in 1972; brand W; taken 1 times so far"
    assert unlike(data, table) == ("Heat (1995)", "Heat (1972)")
    assert unlike(alone, build(alone)) == ("Heat",)


def test_an_estimate_plays_the_retrieval() -> None:
    """One call of the user and one of the recommender a turn, at least."""
    found = estimate(read("small", (CHAT_REC,), SMALL)[0])
    calls = {task.task: task.calls for task in found.tasks}
    assert set(calls) == {"converse.user", "converse.chat_rec"}
    assert found.failed == 0


# -- whatever they answer ----------------------------------------------------------------------------------------------

_PARTS = ("Message: ", "Recommended:", "\n", "1. ", "- ", *(title for _, title, *_ in GAMES), '{"recommended": ["b"]}')


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(["bare", "chat_rec"]),
    st.text(max_size=60) | st.lists(st.sampled_from(_PARTS), max_size=12).map("".join),
)
def test_whatever_a_model_answers_the_talk_ends_sanely(recommender: str, reply: str) -> None:
    answers = {"converse.user": _always(talk.write("Puzzle, music.", False)), f"converse.{recommender}": _always(reply)}
    with tempfile.TemporaryDirectory() as folder:
        sets = (f"method.recommender={recommender}", TWO_TURNS)
        finished, turns, _ = _run(Path(folder), _games(u5="g5"), answers, *sets)
    (end,) = _said(turns[-1], "end")
    assert end["how"] in ("hit", "limit", "error")
    items = [body["items"] for turn in turns for body in _said(turn, "reply")]
    assert (end["how"] == "hit") == any("g5" in found for found in items)
    assert all(len(found) <= 5 and len(set(found)) == len(found) for found in items)
    values: Sequence[float] = [result.value for result in finished.report.results if result.metric == "hit"]
    assert all(0 <= value <= 1 for value in values)
