"""What a ranking of AgentCF is asked with: memories as they have become, in an order that tells no target."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.scripted import Scripted
from simengine.llm.replies import ranking
from simengine.llm.request import Completion, Request

HEADER = "user_id:token|item_id_list:token_seq|item_id:token\n"
TITLES = {name: f"Title {name.upper()}" for name in "abcdefghij"}
FILES = {
    "x.train.inter": HEADER + "u|a|b\nv|b|c\n",
    "x.test.inter": HEADER + "u|a b|{target}\nv|b c|e\n",
    "x.item": "item_id:token|title:token_seq|category:token_seq\n"
    + "".join(f"{name}|{title}|Folk\n" for name, title in TITLES.items()),
    "x.random": "u|{others} f g h i j\nv|d f g h i j\n",
}
SCENARIO = """
name: ranks
data: {{format: atomic, path: {path}, noun: CD, clock: step}}
method: {{kind: agentcf}}
stages: {stages}
"""
BOTH = "[{optimize: {}}, {rank: {}}]"


class Watched:
    """The lexical model, of which every request is kept."""

    def __init__(self) -> None:
        self.asked: dict[str, Request] = {}

    async def __call__(self, request: Request) -> Completion:
        self.asked[request.call] = request
        return await Lexical().complete(request)

    def rankings(self) -> dict[str, Request]:
        return {call: request for call, request in self.asked.items() if request.task == "rank"}


def _run(folder: Path, *sets: str, target: str = "d", others: str = "e", stages: str = BOTH) -> tuple[Path, Watched]:
    data = folder / "data"
    data.mkdir(parents=True)
    for name, content in FILES.items():
        text = content.replace("{target}", target).replace("{others}", others).replace("|", "\t")
        (data / name).write_text(text, encoding="utf-8")
    model = Watched()
    text = SCENARIO.format(path=data, stages=stages)
    return runs.run(folder / "run", *sets, text=text, backend=Scripted(model)).path, model


def _said(folder: Path) -> dict[str, dict[str, Any]]:
    """Each ranking's event with its body: the order of the candidates' ids."""
    return {
        event["event"]: said["body"]
        for event in runs.events(folder, "ranking")
        for said in event["messages"]
        if said["kind"] == "ranking"
    }


def test_a_ranking_reads_what_the_interactions_have_made(tmp_path: Path) -> None:
    folder, model = _run(tmp_path)
    last: dict[tuple[str, str], str] = {}
    for event in runs.events(folder, "interaction"):
        last |= {(memory["agent"], memory["slot"]): memory["value"] for memory in event["memories"]}
    request = model.asked["rank/u/B/1#rank"]
    assert request.slots["memory"] == last["user:u", "short"]
    folder, model = _run(tmp_path / "untouched", stages="[{rank: {}}]")
    assert model.asked["rank/u/B/1#rank"].slots["memory"] == "I like CDs and am curious about new ones."


def test_the_order_told_is_of_ids_as_the_reply_names_them(tmp_path: Path) -> None:
    folder, model = _run(tmp_path)
    for call, request in model.rankings().items():
        shown = request.slots["titles"]
        reply = next(row.outcome.text for row in runs.calls(folder) if row.request.call == call)
        told = _said(folder)[call.partition("#")[0]]
        assert [TITLES[name] for name in told["order"]] == [shown[at] for at in ranking.read(reply, shown).order]
        assert told["missing"] == []


def test_candidates_are_shuffled_by_the_stream_of_the_event(tmp_path: Path) -> None:
    stages = "[{optimize: {}}, {rank: {repeats: 3}}]"
    _, model = _run(tmp_path / "1", stages=stages)
    orders = {call: request.slots["titles"] for call, request in model.rankings().items()}
    assert list(orders) == [f"rank/{user}/B/{repeat}#rank" for user in "uv" for repeat in (1, 2, 3)]
    natural = sorted({title for titles in orders.values() for title in titles})
    for user in "uv":
        mine = [titles for call, titles in orders.items() if call.startswith(f"rank/{user}/")]
        assert len(set(mine)) == 3, "each repeat has an order of its own"
        assert len({tuple(sorted(titles)) for titles in mine}) == 1, "the candidates are the same in each"
        assert tuple(natural) not in mine

    # Neither the concurrency, nor another stage before, changes an order; another seed does.
    _, again = _run(tmp_path / "2", "llm.limits.concurrency=1", stages="[{rank: {repeats: 3}}]")
    assert {call: request.slots["titles"] for call, request in again.rankings().items()} == orders
    _, other = _run(tmp_path / "3", "seed=1", stages=stages)
    assert {call: request.slots["titles"] for call, request in other.rankings().items()} != orders


def test_the_target_stands_anywhere(tmp_path: Path) -> None:
    """Over 200 repeats each of eight places has its share: 25 on average, 4.7 their standard deviation."""
    _, model = _run(tmp_path, stages="[{rank: {repeats: 200}}]")
    asked = [request for call, request in model.rankings().items() if call.startswith("rank/u/")]
    places = Counter(request.slots["titles"].index(TITLES["d"]) for request in asked)
    assert sorted(places) == list(range(7 + 1))[: len(asked[0].slots["titles"])]
    expected = 200 / len(places)
    assert max(abs(count - expected) for count in places.values()) < 4 * (expected * (1 - 1 / len(places))) ** 0.5


def test_nothing_in_a_request_tells_the_target(tmp_path: Path) -> None:
    """With the target and a negative exchanged the candidates are the same, and so is all that the model sees."""
    _, model = _run(tmp_path / "d", target="d", others="e")
    _, exchanged = _run(tmp_path / "e", target="e", others="d")
    one, other = (watched.rankings()["rank/u/B/1#rank"] for watched in (model, exchanged))
    assert one.slots.keys() == {"memory", "options", "titles", "noun"}
    assert (one.messages, one.slots, one.call, one.key()) == (other.messages, other.slots, other.call, other.key())


# -- the lexical model, through the engine -----------------------------------------------------------------------------

BLIND = """{% block system %}Take one of two {{ noun }}s.{% endblock %}
{% block user %}
{% for option in options %}
{{ loop.index }}. {{ option }}
{% endfor %}
Their titles:
{% for title in titles %}
{{ loop.index }}. {{ title }}
{% endfor %}
{% endblock %}"""


@pytest.mark.parametrize("names_memory", [False, True])
def test_a_template_without_the_memory_makes_the_lexical_model_ignore_it(names_memory: bool, tmp_path: Path) -> None:
    """It knows what the prompt shows and no more: without the memory it takes what stands first, always."""
    template = tmp_path / "choose.j2"
    template.write_text(BLIND.replace("Take", "{{ memory }} Take") if names_memory else BLIND, encoding="utf-8")
    model = Watched()
    folder = runs.run(tmp_path / "run", f"prompts.choose={template}", backend=Scripted(model)).path
    choices = [request for request in model.asked.values() if request.task == "choose"]
    assert all(("memory" in request.slots) == names_memory for request in choices)
    taken = Counter(
        said["recipient"] == f"item:{event['data']['negative']}"
        for event in runs.events(folder, "interaction")
        for said in event["messages"]
        if said["kind"] == "choice"
    )
    if names_memory:
        assert taken[False] > 0, "what was learnt leads to the positive at times"
    else:
        assert taken == {True: 2 * 24}, "the negative stands first, in both rounds of each of 24 steps"
