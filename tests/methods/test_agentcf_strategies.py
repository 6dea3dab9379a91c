"""What each way of ranking shows: the memory alone, a former one beside it, those of past items; titles alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine.errors import InputError, UnitFailed
from simengine.kernel import Event
from simengine.llm.backends.refuse import Refuse
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Request
from simengine.scenario import read, tools
from simengine.scenario.cast import Cast
from simengine.scenario.setup import Setup

# u takes a, b and c behind the first item, v takes a alone; x and y are negatives.
HEADER = "user_id:token|item_id_list:token_seq|item_id:token\n"
FILES = {
    "x.train.inter": HEADER + "u|0|a\nu|0 a|b\nu|0 a b|c\nv|0|a\n",
    "x.test.inter": HEADER + "u|0 a b c|d\nv|0 a|d\n",
    "x.item": "item_id:token|title:token_seq|category:token_seq\n"
    "0|Zero|Opera\na|Amber|Folk\nb|Basalt|Metal\nc|Coral|Reggae\nd|Delta|{target}\nx|Xenon|Polka\ny|Yarrow|Polka\n",
    "x.random": "u|x y\nv|x y\n",
    "negatives.jsonl": "".join(
        f'{{"user_id": "{user}", "pos_item_id": "{item}", "neg_item_ids": ["x"]}}\n'
        for user, item in ("ua", "ub", "uc", "va")
    ),
}
SCENARIO = """
name: strategies
data: {{format: atomic, path: {path}, noun: CD, clock: step, negatives: negatives.jsonl}}
llm: {{temperature: 0.7}}  # so that no two calls share an answer
method: {{kind: agentcf}}
stages: [{{optimize: {{}}}}, {{rank: {{strategies: [B, B+R, B+H, LLMRank]}}}}]
"""
LIKING = "I like CDs and am curious about new ones."
FORMER = {"a": "I like folk and fiddles.", "b": "I like metal and thunder.", "c": "I like reggae and the sea."}
"""What u writes of himself behind each interaction; the last one is the short-term memory when he ranks."""
ADOPTED = {"a": "Amber, for friends of the fiddle.", "b": "Basalt, for the loud.", "c": "Coral, for the calm."}


def identity(title: str, category: str) -> str:
    return f'"{title}" is a CD filed under: {category}.'


def answer(request: Request) -> str:
    """Every choice is right; what is written is told by the item of the interaction."""
    item = request.call.partition("#")[0].split("/")[2]
    if request.task == "choose":
        return f"Chosen CD: {request.slots['titles'][1]}\nExplanation: it suits me"
    if request.task == "reflect.user":
        return f"My updated self-introduction: {FORMER[item]}"
    if request.task == "reflect.item":
        lines = ["Xenon as it was", ADOPTED[item]]
        return "\n".join(
            f"The updated description of the {at} CD is: {text}"
            for at, text in zip(("first", "second"), lines, strict=True)
        )
    return "\n".join(["Rank:", *request.slots["titles"]])


class Ranked:
    """A finished run: the requests of its rankings by user and strategy, and its folder."""

    def __init__(self, folder: Path, target: str = "Metal", *sets: str) -> None:
        data = folder / "data"
        data.mkdir(parents=True)
        for name, content in FILES.items():
            text = content.replace("{target}", target).replace("|", "\t")
            (data / name).write_text(text, encoding="utf-8")
        self.asked: dict[tuple[str, str], Request] = {}

        def watch(request: Request) -> str:
            if request.task == "rank":
                _, user, strategy, _ = request.call.partition("#")[0].split("/")
                self.asked[user, strategy] = request
            return answer(request)

        self.text = SCENARIO.format(path=data)
        self.path = Path(runs.run(folder / "run", *sets, text=self.text, backend=Scripted(watch)).path)

    def slots(self, strategy: str, user: str = "u") -> Mapping[str, Any]:
        return self.asked[user, strategy].slots

    def prompt(self, strategy: str, user: str = "u") -> str:
        return "\n".join(message.content for message in self.asked[user, strategy].messages)

    def event(self, strategy: str, user: str = "u") -> dict[str, Any]:
        return next(event for event in runs.events(self.path) if event["event"] == f"rank/{user}/{strategy}/1")


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Ranked:
    return Ranked(tmp_path_factory.mktemp("strategies"))


def options(ranked: Ranked, strategy: str) -> dict[str, str]:
    slots = ranked.slots(strategy)
    return dict(zip(slots["titles"], slots["options"], strict=True))


CANDIDATES = {
    "Delta": identity("Delta", "Metal"),
    "Xenon": identity("Xenon", "Polka"),
    "Yarrow": identity("Yarrow", "Polka"),
}


def test_b_shows_the_short_term_memory_and_those_of_the_candidates(ranked: Ranked) -> None:
    """Equation 6: nothing that was written before, and no past item."""
    assert ranked.slots("B").keys() == {"memory", "options", "titles", "noun"}
    assert ranked.slots("B")["memory"] == FORMER["c"]
    assert options(ranked, "B") == CANDIDATES
    for text in (FORMER["a"], FORMER["b"], LIKING, *ADOPTED.values(), "Zero", "Amber"):
        assert text not in ranked.prompt("B")


@pytest.mark.parametrize(("category", "former"), [("Metal; Thunder", "b"), ("Folk; Fiddles", "a")])
def test_b_r_adds_the_former_memory_that_is_nearest_to_the_candidates(
    category: str, former: str, tmp_path: Path
) -> None:
    """Equation 7: the query is what the candidates say of themselves, so another target leads to another memory."""
    ranked = Ranked(tmp_path, category)
    slots = ranked.slots("B+R")
    assert slots["memory"] == FORMER["c"]
    assert slots["retrieved"] == FORMER[former]
    assert FORMER[former] in ranked.prompt("B+R")
    assert all(FORMER[other] not in ranked.prompt("B+R") for other in "ab" if other != former)
    assert "history" not in slots


def test_b_r_never_retrieves_what_every_user_starts_with(tmp_path: Path) -> None:
    """Even where it is the nearest by far: the candidates speak its own words, and share none with other memories."""
    ranked = Ranked(tmp_path, "curious about new ones")
    assert ranked.slots("B+R")["retrieved"] in (FORMER["a"], FORMER["b"])
    assert LIKING not in ranked.prompt("B+R")


def test_without_a_former_memory_b_r_shows_what_b_shows(ranked: Ranked) -> None:
    """v has learnt once, so that its long-term memory holds the first one alone; nothing is looked for."""
    assert ranked.slots("B+R", "v").keys() == ranked.slots("B", "v").keys()
    assert "earlier time" not in ranked.prompt("B+R", "v")
    assert list(ranked.event("B+R", "v")["calls"]) == ["rank"]


def test_what_was_retrieved_is_recorded_and_named_as_a_cause(ranked: Ranked) -> None:
    """A replay goes by the journal: it neither asks a model nor looks for what is near."""
    event = ranked.event("B+R")
    assert list(event["calls"]) == ["rank/nearest", "rank"]
    told = next(message for message in event["messages"] if message["kind"] == "ranking")
    kept = {
        f"{memory['agent']}/{memory['slot']}@{memory['version']}": memory["value"]
        for step in runs.events(ranked.path, "interaction")
        for memory in step["memories"]
        if memory["agent"] == "user:u"
    }
    causes = [kept[cause] for cause in told["because"] if cause in kept]
    assert causes == [FORMER["c"], FORMER["b"]], "the short-term memory, and the entry that was retrieved"
    assert runs.replay(ranked.path).hash == runs.report(ranked.path).hash


def test_b_h_shows_the_memories_of_all_past_items(ranked: Ranked) -> None:
    """Equation 8: in the order in which they were taken, as they have become; the first is no target, but is past."""
    slots = ranked.slots("B+H")
    assert slots["memory"] == FORMER["c"]
    assert slots["history"] == (identity("Zero", "Opera"), *ADOPTED.values())
    assert options(ranked, "B+H") == CANDIDATES
    assert "retrieved" not in slots
    places = [ranked.prompt("B+H").index(text) for text in slots["history"]]
    assert places == sorted(places)
    said = {message["sender"] for message in ranked.event("B+H")["messages"] if message["kind"] == "description"}
    assert said == {f"item:{name}" for name in "0abcdxy"}


def test_llmrank_shows_titles_and_categories_and_no_memory(ranked: Ranked) -> None:
    """It has no agents: items are what they are called, and of the user only the history is known (section 3.1.3)."""
    slots = ranked.slots("LLMRank")
    assert slots.keys() == {"history", "options", "titles", "noun"}
    assert slots["history"] == tuple(
        identity(*named) for named in [("Zero", "Opera"), ("Amber", "Folk"), ("Basalt", "Metal"), ("Coral", "Reggae")]
    )
    assert options(ranked, "LLMRank") == CANDIDATES
    for text in (*FORMER.values(), *ADOPTED.values(), LIKING):
        assert text not in ranked.prompt("LLMRank")
    assert [message["kind"] for message in ranked.event("LLMRank")["messages"]] == ["ranking"]


def test_all_strategies_rank_the_same_candidates_and_are_told_apart_in_the_report(ranked: Ranked) -> None:
    for strategy in ("B", "B+R", "B+H", "LLMRank"):
        assert options(ranked, strategy) == CANDIDATES
    named = list(dict.fromkeys(result.ranker for result in runs.report(ranked.path).results))
    assert named == ["random", "pop", "agentcf B", "agentcf B+R", "agentcf B+H", "LLMRank"]
    assert runs.report(ranked.path).failures == {}


def test_a_former_memory_that_cannot_be_looked_for_costs_that_ranking_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def broken(*_: object) -> list[int]:
        raise UnitFailed("the embedding server is away", reason="unreachable")

    monkeypatch.setattr(tools, "nearest_texts", broken)
    ranked = Ranked(tmp_path)
    assert runs.report(ranked.path).failures == {"rank: unreachable": 1}
    assert ("u", "B+R") not in ranked.asked
    assert ("u", "B+H") in ranked.asked


def test_a_ranking_waits_for_those_whom_it_looks_at_and_no_others(ranked: Ranked) -> None:
    """Its footprint: LLMRank looks at no item, B+H at the past ones too."""
    scenario, _ = read("s.yaml", (), ranked.text)
    setup = Setup.of(scenario)
    cast = Cast(setup, Refuse())
    events: list[Event] = [event for event in cast.events(setup.stages()[1]) if event.data["user"] == "u"]
    reads = {event.data["strategy"]: set(event.reads) for event in events}
    shown = {"user:u", *(f"item:{name}" for name in "dxy")}
    assert reads == {
        "B": shown,
        "B+R": shown,
        "B+H": shown | {f"item:{name}" for name in "0abc"},
        "LLMRank": {"user:u"},
    }
    assert all(event.writes == () for event in events)


def test_an_unknown_strategy_is_refused_with_those_that_there_are(ranked: Ranked) -> None:
    with pytest.raises(InputError, match=r"agentcf has no strategy 'RAG' to rank by; it has B, B\+R, B\+H, LLMRank"):
        read("s.yaml", ["stages[1].rank.strategies=[RAG]"], ranked.text)
