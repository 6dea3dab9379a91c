"""Which memories each prompt of AgentCF++ contains and which it does not, in the order of the paper's section 3.3.

A scripted model answers each call with the call's own id, so that a prompt tells what it was made of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine.errors import CallFailed, InputError
from simengine.llm.backends.scripted import Answer, Scripted
from simengine.llm.request import Request

HEADER = "user_id:token|item_id_list:token_seq|item_id:token\n"
TITLES = {
    "b": ["Amber", "Basalt", "Coral", "Dolomite", "Emerald", "Flint"],
    "f": ["Garnet", "Hematite", "Iolite", "Jasper"],
}
ITEMS = [(f"{kind}{at}", title) for kind, titles in TITLES.items() for at, title in enumerate(titles)]
DOMAINS = {"b": "book", "f": "film"}
# Two users, each with one given item. In order: u takes a book, v takes one, u takes a film, u takes another book.
FILES = {
    "x.train.inter": HEADER + "u|b0|b1\nu|b0 b1|f1\nu|b0 b1 f1|b2\nv|b0|b2\n",
    "x.test.inter": HEADER + "u|b0 b1 f1 b2|b3\nv|b0 b2|f0\n",
    "x.item": "item_id:token|title:token_seq|category:token_seq|domain:token\n"
    + "".join(f"{name}|{title}|Minerals|{DOMAINS[name[0]]}\n" for name, title in ITEMS),
    "x.random": "u|b4 b5\nv|f2 f3\n",
    "negatives.jsonl": "".join(
        f'{{"user_id": "{user}", "pos_item_id": "{item}", "neg_item_ids": ["{negative}"]}}\n'
        for user, item, negative in (("u", "b1", "b4"), ("u", "f1", "f2"), ("u", "b2", "b5"), ("v", "b2", "b4"))
    ),
}
SCENARIO = """
name: step
data: {{format: atomic, path: {path}, noun: thing, clock: step, negatives: negatives.jsonl}}
llm: {{temperature: 0.7}}  # so that no two calls share an answer
method: {{kind: agentcfpp, shared: false}}
stages: [{{optimize: {{}}}}]
"""
A1, A2, A3, A4 = (f"interaction/{name}" for name in ("u/b1/2", "v/b2/2", "u/f1/3", "u/b2/4"))
ID = re.compile(r"(?:interaction|online)/\w+/\w+/\d+#[\w./]*[\w]")


class Told:
    """Answers each call with its id and keeps what it was asked; ``broken`` calls end in an error.

    ``choices`` maps a call's id to the title that is taken; every other choice takes the positive.
    """

    def __init__(self, choices: dict[str, str] | None = None, broken: Iterable[str] = ()) -> None:
        self.choices = choices or {}
        self.broken = set(broken)
        self.asked: dict[str, Request] = {}

    def __call__(self, request: Request) -> Answer:
        call = request.call
        self.asked[call] = request
        if call in self.broken:
            return CallFailed("the server refused the request", reason="rejected")
        titles = request.slots.get("titles", ())
        if request.task == "choose":
            return f"Chosen thing: {self.choices.get(call, titles[1])}\nExplanation: because"
        if request.task in ("reflect.user", "fuse.merge"):
            return f"My updated self-introduction: {call}"
        if request.task == "fuse.extract":
            return f"My preferences: {call}"
        if request.task == "reflect.item":
            return "\n".join(
                f"The updated description of the {at} thing is: {at} of {call}" for at in ("first", "second")
            )
        return "\n".join(["Rank:", *titles])

    def text(self, call: str) -> str:
        """All that a call's prompt says."""
        return "\n".join(message.content for message in self.asked[call].messages)

    def made_of(self, call: str) -> set[str]:
        """The calls whose answers a prompt contains."""
        return set(ID.findall(self.text(call)))


Run = Callable[..., Path]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content.replace("|", "\t"), encoding="utf-8")

    def act(model: Told, *sets: str) -> Path:
        text = SCENARIO.format(path=tmp_path)
        return Path(runs.run(tmp_path / "run", *sets, text=text, backend=Scripted(model)).path)

    return act


@pytest.fixture
def crowd(tmp_path: Path, run: Run) -> None:
    """A third user, who takes what the others leave: so there are negatives to be drawn."""
    more = "w|b0|b4\nw|b0 b4|f2\nw|b0 b4 f2|b5\n".replace("|", "\t")
    with (tmp_path / "x.train.inter").open("a", encoding="utf-8") as file:
        file.write(more)


def _event(folder: Path, name: str) -> dict[str, Any]:
    return next(each for each in runs.events(folder) if each["event"] == name)


def _memories(folder: Path, name: str) -> dict[str, str]:
    """The slots that an event changed, with what they hold now."""
    return {f"{one['agent']}/{one['slot']}": one["value"] for one in _event(folder, name).get("memories", ())}


def _units(folder: Path, name: str) -> dict[str, str]:
    return dict(_event(folder, name)["units"])


# -- the order of the updates, and what each is made of (section 3.3) ------------------------------------------------


def test_both_layers_are_empty_at_first(run: Run) -> None:
    model = Told()
    folder = run(model)
    assert [event["event"] for event in runs.events(folder)] == [A1, A2, A3, A4]
    assert list(_event(folder, A1)["calls"]) == ["choose/r1", "reflect.user/r1", "fuse/r1", "reflect.item/r1"]
    assert "memory" not in model.asked[f"{A1}#choose/r1"].slots
    assert "fused" not in model.asked[f"{A1}#choose/r1"].slots
    assert model.made_of(f"{A1}#choose/r1") == set()
    # nothing is known of other domains, so nothing is extracted: what was learnt goes into the fused memory as it is
    assert model.made_of(f"{A1}#fuse/r1") == {f"{A1}#reflect.user/r1"}


def test_another_domain_is_reached_by_extraction_alone(run: Run) -> None:
    model = Told()
    folder = run(model)
    assert list(_event(folder, A3)["calls"]) == [
        "choose/r1",
        "reflect.user/r1",
        "fuse/r1/extract",
        "fuse/r1",
        "reflect.item/r1",
    ]
    assert model.made_of(f"{A3}#choose/r1") == set()
    assert model.made_of(f"{A3}#reflect.user/r1") == set()
    # from the other domain's separate memory, not from its fused one
    assert model.made_of(f"{A3}#fuse/r1/extract") == {f"{A1}#reflect.user/r1"}
    assert f"book: {A1}#reflect.user/r1" in model.text(f"{A3}#fuse/r1/extract")
    assert "The kind in question: film" in model.text(f"{A3}#fuse/r1/extract")
    assert model.made_of(f"{A3}#fuse/r1") == {f"{A3}#reflect.user/r1", f"{A3}#fuse/r1/extract"}
    assert model.made_of(f"{A3}#reflect.item/r1") == {f"{A3}#fuse/r1"}


def test_a_second_step_in_a_domain_goes_by_both_of_its_layers(run: Run) -> None:
    model = Told()
    folder = run(model)
    separate, fused = f"{A1}#reflect.user/r1", f"{A1}#fuse/r1"
    # the item was taken by v before, and so was the recorded negative of that step
    told = f"{A2}#reflect.item/r1"
    assert model.made_of(f"{A4}#choose/r1") == {separate, fused, told}
    assert model.asked[f"{A4}#choose/r1"].slots["memory"] == separate
    assert model.asked[f"{A4}#choose/r1"].slots["fused"] == fused
    assert model.made_of(f"{A4}#reflect.user/r1") == {separate, told}
    assert model.made_of(f"{A4}#fuse/r1/extract") == {f"{A3}#reflect.user/r1"}
    assert model.made_of(f"{A4}#fuse/r1") == {fused, f"{A4}#reflect.user/r1", f"{A4}#fuse/r1/extract"}
    assert model.made_of(f"{A4}#reflect.item/r1") == {f"{A4}#fuse/r1", told}
    assert _memories(folder, A4) == {
        "user:u/separate:book": f"{A4}#reflect.user/r1",
        "user:u/fused:book": f"{A4}#fuse/r1",
        "user:u/self": f"{A4}#fuse/r1\n{A3}#fuse/r1",
        "item:b5/memory": f"first of {A4}#reflect.item/r1",
        "item:b2/memory": f"second of {A4}#reflect.item/r1",
    }


def test_the_negative_stands_first_and_learns_too(run: Run) -> None:
    model = Told()
    folder = run(model)
    for call in ("choose/r1", "reflect.user/r1", "reflect.item/r1"):
        assert model.asked[f"{A1}#{call}"].slots["titles"] == ("Emerald", "Basalt")
    assert {agent for agent in _memories(folder, A1) if agent.startswith("item")} == {
        "item:b4/memory",
        "item:b1/memory",
    }
    assert model.asked[f"{A2}#choose/r1"].slots["options"][0] == f"first of {A1}#reflect.item/r1"


def test_reflections_are_told_what_was_taken(run: Run) -> None:
    model = Told({f"{A1}#choose/r1": "Emerald"})
    run(model)
    for side in ("user", "item"):
        slots = model.asked[f"{A1}#reflect.{side}/r1"].slots
        assert {name: slots[name] for name in ("chosen", "explanation", "preferred", "rejected")} == {
            "chosen": "Emerald",
            "explanation": "because",
            "preferred": "Basalt",
            "rejected": "Emerald",
        }


@pytest.mark.usefixtures("crowd")
def test_a_drawn_negative_is_of_the_same_domain(run: Run) -> None:
    drawn = set()
    for seed in range(4):
        folder = run(Told(), "data.negatives=null", f"seed={seed}")
        found = {event["event"]: (event["data"]["item"], event["data"]["negative"]) for event in runs.events(folder)}
        folder.rename(folder.with_name(f"run-{seed}"))
        assert len(found) == 7
        assert all(item[0] == negative[0] for item, negative in found.values())
        drawn.add(found[A1])
    assert drawn == {("b1", "b4"), ("b1", "b5")}  # what others have taken and u has not


def test_a_wrong_choice_goes_to_another_round_where_there_is_one(run: Run) -> None:
    model = Told({f"{A1}#choose/r1": "Emerald"})
    folder = run(model, "method.rounds=2")
    assert model.made_of(f"{A1}#choose/r2") == {
        f"{A1}#reflect.user/r1",
        f"{A1}#fuse/r1",
        f"{A1}#reflect.item/r1",
    }
    assert _memories(folder, A1)["user:u/separate:book"] == f"{A1}#reflect.user/r2"
    assert not any("/r2" in call for call in _event(folder, A2)["calls"])


def test_where_nobody_else_took_anything_of_a_domain_the_negative_is_drawn_from_the_rest(run: Run) -> None:
    folder = run(Told(), "data.negatives=null", "data.users=1")
    negatives = {event["data"]["item"]: event["data"]["negative"] for event in runs.events(folder)}
    assert negatives["f1"] in {"f0", "f2", "f3"}
    assert {negatives["b1"], negatives["b2"]} <= {"b4", "b5"}


def test_a_user_who_has_had_all_of_a_domain_has_no_negative(run: Run, tmp_path: Path) -> None:
    lines = FILES["x.item"].replace("|", "\t").splitlines(keepends=True)
    (tmp_path / "x.item").write_text("".join(line for line in lines if line[:2] not in ("f0", "f2", "f3")), "utf-8")
    (tmp_path / "x.test.inter").write_text(HEADER.replace("|", "\t") + "u\tb0 b1 f1 b2\tb3\n", "utf-8")
    (tmp_path / "x.random").write_text("u\tb4 b5\n", "utf-8")
    with pytest.raises(InputError, match="user u, domain film: there is no item left"):
        run(Told(), "data.negatives=null")


# -- what fails leaves its memory as it was --------------------------------------------------------------------------


def test_a_failed_choice_ends_the_step(run: Run) -> None:
    folder = run(Told(broken=[f"{A1}#choose/r1"]))
    assert _units(folder, A1) == {"choose/r1": "rejected"}
    assert _memories(folder, A1) == {}


@pytest.mark.parametrize(
    ("broken", "failed", "kept"),
    [
        ("reflect.user/r1", ["reflect.user/r1"], ["separate:book"]),
        ("fuse/r1/extract", ["fuse/r1/extract", "fuse/r1"], ["fused:book", "self"]),
        ("fuse/r1", ["fuse/r1"], ["fused:book", "self"]),
    ],
)
def test_a_failed_update_leaves_its_memory_and_the_others_go_on(
    broken: str, failed: list[str], kept: list[str], run: Run
) -> None:
    model = Told(broken=[f"{A4}#{broken}"])
    folder = run(model)
    assert [unit for unit, outcome in _units(folder, A4).items() if outcome != "ok"] == failed
    changed = {"separate:book", "fused:book", "self"} - set(kept)
    assert {name for name in _memories(folder, A4) if name.startswith("user")} == {f"user:u/{slot}" for slot in changed}
    # the items learn from the fused memory as it is then
    fused = f"{A1}#fuse/r1" if "fused:book" in kept else f"{A4}#fuse/r1"
    assert model.asked[f"{A4}#reflect.item/r1"].slots["memory"] == fused


def test_items_learn_nothing_from_a_user_who_knows_nothing(run: Run) -> None:
    folder = run(Told(broken=[f"{A1}#reflect.user/r1"]))
    assert _units(folder, A1) == {"choose/r1": "ok", "reflect.user/r1": "rejected", "fuse/r1": "ok"}
    assert _memories(folder, A1) == {}


# -- rankings and variants -------------------------------------------------------------------------------------------

RANK = "stages=[{optimize: {}}, {rank: {strategies: [B, LLMRank]}}]"


def test_a_ranking_sees_both_layers_of_its_domain_and_learns_nothing(run: Run) -> None:
    model = Told()
    folder = run(model, RANK)
    items = {f"{A4}#reflect.item/r1", f"{A2}#reflect.item/r1"}
    assert model.made_of("rank/u/B/1#rank") - items == {f"{A4}#reflect.user/r1", f"{A4}#fuse/r1"}
    assert "memory" not in model.asked["rank/v/B/1#rank"].slots  # v knows books alone, and is shown films
    assert model.made_of("rank/v/B/1#rank") <= {f"{A3}#reflect.item/r1"}
    assert model.made_of("rank/u/LLMRank/1#rank") == set()
    assert not any(event.get("memories") for event in runs.events(folder, "ranking"))
    assert {row.ranker for row in runs.report(folder).results} >= {"agentcfpp B", "LLMRank"}


def test_candidates_of_several_domains_do_not_tell_which_one_is_taken(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.random").write_text("u\tb4 f3\nv\tf2 f3\n", encoding="utf-8")
    model = Told()
    run(model, RANK)
    found = {call for call in model.made_of("rank/u/B/1#rank") if "item" not in call}
    assert found == {f"{A4}#reflect.user/r1", f"{A4}#fuse/r1", f"{A3}#reflect.user/r1", f"{A3}#fuse/r1"}


def test_without_layers_there_is_one_memory_for_all_domains(run: Run) -> None:
    model = Told()
    folder = run(model, "method.dual=false")
    assert {call.partition("#")[2] for call in model.asked} == {"choose/r1", "reflect.user/r1", "reflect.item/r1"}
    liking = "I like things and am curious about new ones."
    assert model.asked[f"{A1}#choose/r1"].slots["memory"] == liking
    assert model.made_of(f"{A3}#choose/r1") == {f"{A1}#reflect.user/r1"}  # the film is chosen by what books have taught
    assert model.made_of(f"{A3}#reflect.item/r1") == {f"{A3}#reflect.user/r1"}
    assert [name for name in _memories(folder, A3) if name.startswith("user")] == ["user:u/short"]


ONLINE = ["method.online=true", "data.negatives=null"]


@pytest.mark.usefixtures("crowd")
def test_online_a_target_is_learnt_from_once_it_is_ranked(run: Run) -> None:
    model = Told()
    folder = run(model, *ONLINE, "stages=[{optimize: {}}, {rank: {}}]")
    order = [event["event"] for event in runs.events(folder)]
    assert order[7:] == ["rank/v/B/1", "online/v/f0/3", "rank/u/B/1", "online/u/b3/5"]
    slots = model.asked["online/u/b3/5#choose/r1"].slots
    assert slots["memory"] == f"{A4}#reflect.user/r1"
    assert slots["titles"][1] == "Dolomite"
    assert "user:u/fused:book" in _memories(folder, "online/u/b3/5")


@pytest.mark.usefixtures("crowd")
def test_online_no_target_is_ranked_once_more(run: Run) -> None:
    with pytest.raises(InputError, match="rank-2 would rank them again"):
        run(Told(), *ONLINE, "stages=[{optimize: {}}, {rank: {}}, {rank: {}}]")
