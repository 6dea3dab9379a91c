"""One-turn recommendation through the engine: what prompts show, what lists hold, and what answers are worth."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import runs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interec_games import GAMES, TAKEN, shop_data

from simengine.data import Case, Dataset, Item
from simengine.errors import InputError
from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.lexical import one_turn as asked
from simengine.llm.backends.scripted import Scripted
from simengine.llm.replies import dialogue, recommendation
from simengine.llm.request import Completion, Request
from simengine.measure.studies.one_turn import OneTurnReading
from simengine.runlog import EventLine, Reader
from simengine.testing import MethodContract

SMALL = """
name: small
seed: 5
data: {format: market, users: 8, items: 24, interests: 3, interactions: 6, seed: 4}
method: {kind: interec, reflection: 1}
stages: [{one_turn: {users: 2, candidates: 5}}]
"""
GIVEN = """
name: given
data: {format: frame}
# above temperature 0 no two calls share an answer, so that all of them are seen
llm: {temperature: 0.5}
method: {kind: interec, recommender: bare}
stages: [{one_turn: {candidates: 4}}]
"""
AGENT, RANKING, RETRIEVAL = (
    "method={kind: interec, reflection: 0}",
    "stages=[{one_turn: {tasks: [ranking], candidates: 4}}]",
    "stages=[{one_turn: {tasks: [retrieval]}}]",
)
TITLE = {name: title for name, title, *_ in GAMES}
Answers = Mapping[str, Callable[[Request], str]]


class TestContract(MethodContract):
    scenario = SMALL


def _games(taken: Mapping[str, Sequence[str]] = TAKEN, items: Sequence[Item] | None = None, **targets: str) -> Dataset:
    """The shop of games, where these are the targets of users."""
    data = shop_data(items)
    cases = tuple(Case(user, target, tuple(taken[user]), (target,), 9) for user, target in targets.items())
    own = {user: frozenset((*taken[user], target)) for user, target in targets.items()}
    return dataclasses.replace(data, cases=cases, own=own, digest="games")


def _run(folder: Path, data: Dataset, answers: Answers, *sets: str) -> tuple[Any, list[EventLine], list[Request]]:
    """A run; what ``answers`` does not answer is answered by the lexical model."""
    requests: list[Request] = []

    async def model(request: Request) -> Completion:
        requests.append(request)
        answer = answers.get(request.task)
        return Completion(answer(request)) if answer else await Lexical().complete(request)

    finished = runs.run(folder / "run", *sets, text=GIVEN, data=data, backend=Scripted(model))
    return finished, list(Reader(finished.path / "events.jsonl")), requests


def _prompt(request: Request) -> str:
    return "\n".join(message.content for message in request.messages)


def _value(finished: Any, metric: str) -> float:
    (found,) = [it.value for it in finished.report.results if it.metric == metric and it.ranker == "interec"]
    return float(found)


def _said(line: EventLine, kind: str) -> list[dict[str, Any]]:
    return [message.body for message in line.messages if message.kind == kind]


def _for_portal(users: int) -> Dataset:
    """So many users, who have had nothing but a game and look for Portal."""
    names = [f"p{at}" for at in range(users)]
    return _games(dict.fromkeys(names, ("g5",)), **dict.fromkeys(names, "g1"))


def _number(request: Request) -> int:
    """Which of these users a call is about."""
    return int(request.call.split("/")[2].removeprefix("p"))


def _of_each_case(lines: Sequence[EventLine]) -> dict[tuple[str, int | None], list[float]]:
    """The values of each metric, case by case."""
    reading = OneTurnReading("one_turn", _for_portal(len(lines)))
    for line in lines:
        reading.take(line)
    ((_, _, found),) = reading.per_case()
    return {metric: values.tolist() for metric, values in found.values.items()}


def _always(text: str) -> Callable[[Request], str]:
    return lambda request: text


# -- what is shown -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recommender", ["agent", "bare", "chat_rec"])
def test_no_prompt_tells_of_the_target_but_as_one_of_the_list(recommender: str, tmp_path: Path) -> None:
    """Of The Witcher 3 there is neither title nor date nor price, save for a line of the list to rank."""
    sets = (f"method={{kind: interec, recommender: {recommender}}}",)
    answers = {"converse.plan": _always('{"steps": []}')}  # so that no tool finds it either
    _, lines, requests = _run(tmp_path, _games(u1="g8", u3="g8"), answers, *sets)
    assert {request.task for request in requests} >= {"converse.dialogue"}
    for request in requests:
        prompt = _prompt(request)
        if request.task == "converse.chat_rec":  # what it is shown to pick from may well hold the target
            prompt = prompt.partition("The talk so far:")[2]
        listed = "/ranking/" in request.call and request.task != "converse.dialogue"
        assert prompt.count("Witcher") == prompt.count("\n- The Witcher 3: Wild Hunt") == int(listed)
        assert "39.99" not in prompt.replace("from 0.0 to 39.99", "")  # the range of all prices
        assert "2015-05-18" not in prompt
    assert [_said(line, "end")[0]["named"] for line in lines] == [False] * len(lines)


def test_a_target_that_was_taken_before_is_not_told_either(tmp_path: Path) -> None:
    taken = {"u1": ("g1", "g8", "g2")}
    _, _, requests = _run(tmp_path, _games(taken, u1="g8"), {}, RETRIEVAL)
    assert "Portal 2" in _prompt(requests[0])
    assert not [request.task for request in requests if "Witcher" in _prompt(request)]


def test_each_task_has_a_talk_of_its_own_which_the_recommender_hears(tmp_path: Path) -> None:
    """The two prompts differ, so that a model is asked twice; each talk stands before the one request."""
    talks = iter(([("I liked Portal.", "I see.")], [("I liked Portal 2.", "Why?"), ("It is long.", "I see.")]))
    answers = {"converse.dialogue": lambda _: dialogue.write(next(talks))}
    _, (first, second), requests = _run(tmp_path, _games(u1="g8"), answers)
    assert (first.kind, second.kind) == ("one_turn.retrieval", "one_turn.ranking")
    one, other = (request.slots["dialogue"] for request in requests if request.task == "converse.bare")
    assert one == ("User: I liked Portal.", "Recommender: I see.")
    assert other == ("User: I liked Portal 2.", "Recommender: Why?", "User: It is long.", "Recommender: I see.")
    assert [body["turn"] for line in (first, second) for body in _said(line, "say")] == [2, 3]
    assert "Name 5 items" in _said(first, "say")[0]["text"]
    assert "Put all 4 of them in order" in _said(second, "say")[0]["text"]


def test_the_talk_is_written_from_the_case_s_own_history(tmp_path: Path) -> None:
    """A user's first case does not tell of what he takes in the second."""
    data = _games(u1="g8")
    cases = (Case("u1", "g8", ("g1",), ("g8",), 9), Case("u1", "g16", ("g1", "g8"), ("g16",), 10, number=2))
    _, lines, requests = _run(tmp_path, dataclasses.replace(data, cases=cases), {}, RETRIEVAL)
    assert [request.slots["history"] for request in requests if request.task == "converse.dialogue"] == [
        ("Portal",), ("Portal", "The Witcher 3: Wild Hunt")
    ]  # fmt: skip
    assert [line.event for line in lines] == ["one_turn/retrieval/u1/1", "one_turn/retrieval/u1/2"]


def test_a_talk_that_names_the_target_by_chance_counts_and_is_told(tmp_path: Path) -> None:
    answers = {"converse.dialogue": _always(dialogue.write([("I want the Witcher 3, Wild Hunt.", "Fine.")]))}
    finished, _, _ = _run(tmp_path, _games(u1="g8"), answers, RETRIEVAL)
    assert any("1 talks name the target" in note for note in finished.report.notes)
    assert finished.report.skipped == {}


# -- the list ----------------------------------------------------------------------------------------------------------


def test_the_list_holds_the_target_and_what_is_not_known_of_the_user(tmp_path: Path) -> None:
    """The twins share a title, so that neither is a negative; all others but his own are, with 20 places."""
    sets = ("stages=[{one_turn: {tasks: [ranking], candidates: 20}}]",)
    _, (line,), _ = _run(tmp_path, _games(u1="g8"), {}, *sets)
    assert sorted(line.data["candidates"]) == sorted({*TITLE} - {"g1", "g2", "g4", "g11", "g12"})


def test_every_recommender_gets_the_same_list_in_the_same_order(tmp_path: Path) -> None:
    lists = []
    for recommender in ("agent", "bare"):
        sets = (f"method={{kind: interec, recommender: {recommender}}}", RANKING)
        _, lines, _ = _run(tmp_path / recommender, _games(u1="g8", u3="g8", u5="g1"), {}, *sets)
        lists.append([line.data["candidates"] for line in lines])
    assert lists[0] == lists[1]
    assert len({found.index(target) for found, target in zip(lists[0], ("g8", "g8", "g1"), strict=True)}) > 1
    assert [len(found) for found in lists[0]] == [4, 4, 4]


def test_negatives_are_of_the_targets_domain(tmp_path: Path) -> None:
    domains = {"g1": "old", "g8": "new", "g6": "new", "g5": "new"}
    items = [Item(name, TITLE[name], "", "", {}, domain) for name, domain in domains.items()]
    taken = {"u": ("g5",)}
    data = dataclasses.replace(shop_data(items, taken), own={"u": frozenset(("g5", "g8"))}, digest="domains")
    case = Case("u", "g8", ("g5",), ("g8",), 9)
    _, (line,), _ = _run(tmp_path, dataclasses.replace(data, cases=(case,)), {}, RANKING)
    assert sorted(line.data["candidates"]) == ["g6", "g8"]


def test_users_are_taken_with_all_their_cases(tmp_path: Path) -> None:
    data = _games(u1="g8", u2="g8")
    first, second = data.cases
    data = dataclasses.replace(data, cases=(first, msgspec.structs.replace(first, number=2), second))
    _, lines, _ = _run(tmp_path, data, {}, "stages=[{one_turn: {tasks: [retrieval], users: 1}}]")
    assert [line.event for line in lines] == ["one_turn/retrieval/u1/1", "one_turn/retrieval/u1/2"]


def test_where_no_list_can_be_made_the_case_is_skipped(tmp_path: Path) -> None:
    """A twin cannot be told from the other; one who has had all else has nothing to rank the target among."""
    taken = {"u1": ("g1",), "u2": tuple(name for name in TITLE if name != "g8")}
    finished, lines, _ = _run(tmp_path, _games(taken, u1="g11", u2="g8"), {}, RANKING)
    assert finished.report.skipped == {
        "one_turn": {
            "ranking: the target shares its title with another item": 1,
            "ranking: there is nothing to rank the target among": 1,
        }
    }
    assert [(line.calls, line.messages) for line in lines] == [({}, []), ({}, [])]


# -- what answers are worth --------------------------------------------------------------------------------------------


RETRIEVALS: tuple[tuple[list[str], int, int], ...] = (
    (["Portal"], 1, 1),
    (["Half-Life", "Portal"], 1, 1),
    (["Portal 2"], 0, 1),  # the text rule takes a part of a title for the title
    (["Portal 3"], 0, 1),
    (["b", "b", "b", "b", "b", "Portal"], 0, 0),  # beyond the five
    ([], 0, 0),
)


def test_recall_is_by_id(tmp_path: Path) -> None:
    """All users look for Portal; what each is answered, Recall by ids, and by the replies' texts."""
    answers = {"converse.bare": lambda request: recommendation.write("Here.", RETRIEVALS[_number(request)][0])}
    finished, lines, _ = _run(tmp_path, _for_portal(len(RETRIEVALS)), answers, RETRIEVAL)
    values = _of_each_case(lines)
    assert values["recall", 5] == [by_id for _, by_id, _ in RETRIEVALS]
    assert values["text recall", 5] == [by_text for *_, by_text in RETRIEVALS]
    assert _value(finished, "calls") == 1


RANKINGS: tuple[tuple[list[str], float], ...] = (
    (["target", "a", "b", "c"], 1.0),
    (["a", "b", "target", "c"], 0.5),  # 1 / log2(4)
    (["c", "b", "a", "target"], 0.430677),  # 1 / log2(5)
    (["Nowhere 7", "target"], 0.630930),  # an invented title has rank 1
    (["a", "a", "target"], 0.5),  # so has a repeated one rank 2
    (["target", "target", "target", "target"], 1.0),
    (["Twins", "target"], 0.630930),  # in the shop, and not in the list
    (["a", "b", "c"], 0.0),
    (["Nowhere 7", "Nowhere 8", "Nowhere 9", "Nowhere 10", "target"], 0.0),  # rank 5 of 4
    ([], 0.0),
)


def test_a_ranking_gets_what_it_deserves(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        others = [title for title in asked.listed(str(request.slots["request"])) if title != "Portal"]
        known = {"target": "Portal", **dict(zip("abc", others, strict=True))}
        return recommendation.write("Here.", [known.get(name, name) for name in RANKINGS[_number(request)][0]])

    _, lines, _ = _run(tmp_path, _for_portal(len(RANKINGS)), {"converse.bare": answer}, RANKING)
    assert _of_each_case(lines)["ndcg", 4] == pytest.approx([value for _, value in RANKINGS], abs=1e-6)


def test_the_agent_may_fetch_the_whole_list(tmp_path: Path) -> None:
    """It stores the list, and puts the target last: its rank is 4 where four are fetched, and none where three are."""
    fetched = (20, 4, 3)

    def plan(request: Request) -> str:
        titles = asked.listed(str(request.slots["request"]))
        last = {"sql": "SELECT id FROM candidates ORDER BY title = 'Portal'"}
        uses = [("store", {"titles": titles}), ("hard_filter", last), ("fetch", {"n": fetched[_number(request)]})]
        return json.dumps({"steps": [{"tool": tool, "input": given} for tool, given in uses]})

    finished, lines, _ = _run(tmp_path, _for_portal(3), {"converse.plan": plan}, AGENT, RANKING)
    assert [len(_said(line, "reply")[0]["items"]) for line in lines] == [4, 4, 3]
    assert _of_each_case(lines)["ndcg", 4] == pytest.approx([0.430677, 0.430677, 0.0], abs=1e-6)
    assert _value(finished, "calls") == 2


def test_what_the_agent_fetches_from_the_whole_shop_takes_its_ranks(tmp_path: Path) -> None:
    answers = {"converse.plan": _always('{"steps": [{"tool": "fetch", "input": {"n": 20}}]}')}
    finished, (line,), _ = _run(tmp_path, _games(u5="g16"), answers, AGENT, RANKING)
    items = _said(line, "reply")[0]["items"]
    assert len(items) == 4
    strange = len(set(items) - set(line.data["candidates"]))
    assert strange
    assert f"one_turn, ranking: {strange} places are taken by items that were not to be ranked" in finished.report.notes


def test_no_talk_is_skipped_and_no_answer_counts_nothing(tmp_path: Path) -> None:
    def write(request: Request) -> str:
        return "???" if "/u1/" in request.call else dialogue.write([("Hello.", "Hello.")])

    data = _games(u1="g8", u3="g8")
    answers = {"converse.dialogue": write, "converse.bare": _always("???")}
    finished, lines, _ = _run(tmp_path, data, answers)
    assert finished.report.skipped == {
        "one_turn": {"retrieval: no talk was written": 1, "ranking: no talk was written": 1}
    }
    assert (_value(finished, "recall"), _value(finished, "ndcg")) == (0, 0)
    assert "one_turn, ranking: no answer in 1 of 1 cases, which count 0: reply: no_heading 1" in finished.report.notes
    assert [bool(line.memories) for line in lines] == [False, False, True, True]


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_chat_rec_ranks_nothing_and_the_report_says_so(tmp_path: Path) -> None:
    sets = ("method={kind: interec, recommender: chat_rec}",)
    finished, lines, _ = _run(tmp_path, _games(u1="g8"), {}, *sets)
    assert [line.kind for line in lines] == ["one_turn.retrieval"]
    assert any("Chat-Rec ranks no list" in note for note in finished.report.notes)


@pytest.mark.parametrize(
    ("sets", "field"),
    [
        (("method.recommender=chat_rec", RANKING), "stages.one_turn.tasks"),
        (("method.long_term=true",), "method.long_term"),
        (("stages=[{one_turn: {tasks: [ranking, ranking]}}]",), "tasks"),
        (("stages=[{one_turn: {tasks: []}}]",), "tasks"),
        (("stages=[{one_turn: {candidates: 21}}]",), "candidates"),
        (("stages=[{one_turn: {k: 21}}]",), "k"),
        (("method={kind: agentcf}",), "method"),
    ],
)
def test_what_cannot_be_is_refused(sets: tuple[str, ...], field: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=field):
        _run(tmp_path, _games(u1="g8"), {}, *sets)


# -- the embedded rules ------------------------------------------------------------------------------------------------


def test_the_rules_plan_for_the_request_and_for_nothing_else() -> None:
    ranking = "Put all 2 of them in order, the best first, each once, and nothing else:\n- A; B\n- C"
    store, rank, fetch = asked.steps(ranking, ["D"])
    assert store == {"tool": "store", "input": {"titles": ["A; B", "C"]}}
    assert rank == {"tool": "rank", "input": {"by": "preference", "liked": ["D"]}}
    assert fetch == {"tool": "fetch", "input": {"n": 2}}
    assert asked.steps("Name 7 games that I have not had yet, the best first.", []) == [
        {"tool": "rank", "input": {"by": "popularity"}}, {"tool": "fetch", "input": {"n": 7}}
    ]  # fmt: skip
    assert asked.steps("What do you recommend to me?", ["D"]) == []
    assert asked.without_list(f"Go. {ranking}") == "Go. "


def test_the_rules_order_a_list_by_words() -> None:
    assert asked.in_order(["Red Sea", "Blue Moon", "Blue Sea"], ["Moons of Blue", "Sky"]) == [
        "Blue Moon", "Blue Sea", "Red Sea"
    ]  # fmt: skip


# -- whatever they answer ----------------------------------------------------------------------------------------------

_PARTS = ("Message: ", "Recommended:", "User: ", "Recommender: ", "\n", "1. ", *TITLE.values(), '{"steps": [', "{")


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(["dialogue", "bare", "plan", "reply", "critic"]),
    st.text(max_size=60) | st.lists(st.sampled_from(_PARTS), max_size=12).map("".join),
)
def test_whatever_a_model_answers_every_case_counts_once(task: str, reply: str) -> None:
    """As answered or as skipped, for each task and each ranker; and every value is a share."""
    sets = () if task == "bare" else (AGENT.replace("reflection: 0", "reflection: 1"),)
    with tempfile.TemporaryDirectory() as folder:
        data = _games(u1="g8", u5="g1")
        finished, lines, _ = _run(Path(folder), data, {f"converse.{task}": _always(reply)}, *sets)
    assert len(lines) == 4
    skipped = finished.report.skipped.get("one_turn", {})
    for kind, metric in (("retrieval", "recall"), ("ranking", "ndcg")):
        lost = sum(count for why, count in skipped.items() if why.startswith(kind))
        found = [result for result in finished.report.results if result.metric == metric]
        assert [result.n for result in found] == ([2 - lost] * 3 if lost < 2 else [])
        assert all(0 <= result.value <= 1 for result in found)
