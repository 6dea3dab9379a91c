"""Preferences that a model passes on with a known chance, through the whole engine: what is measured is that chance."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import runs
from contagion import Contagion

from simengine.measure.estimates import Estimate
from simengine.scenario.propagation import Pair, measure_spread
from simengine.scenario.spread import Spread

CHANCES = [0.2, 0.4, 0.6]
FEWER = [0.4, *(pytest.param(p, marks=pytest.mark.slow) for p in (0.2, 0.6))]
"""The same, but only one of them in the default run."""
KINDS = ("harpsichord lullabies", "theremin duets", "whistled yodels", "kazoo marches", "bagpipe sonatas")
STATEMENTS = [f"I like {kind}." for kind in KINDS]
MARKET = """
name: contagion
data: {format: market, users: 20, items: 30, interests: 3, interactions: 8, seed: 4}
method: {kind: agentcf, rounds: 1}
llm: {temperature: 1}
stages: [{optimize: {}}]
"""
BRANCHES, DEPTH, TREES = 3, 3, 20
TREE = """
name: tree
data: {format: atomic, path: FOLDER, clock: time, negatives: negatives.jsonl}
method: {kind: agentcf, rounds: 1}
llm: {temperature: 1}
stages: [{optimize: {}}]
"""


def planted(statements: Sequence[str], seeds: Sequence[str]) -> str:
    """A ``--set`` entry that plants each statement by its rule."""
    each = [f"{{preference: {text}, seeds: {rule}}}" for text, rule in zip(statements, seeds, strict=True)]
    return f"plant={{statements: [{', '.join(each)}]}}"


def measured(out: Path, text: str, entry: str, statements: Sequence[str], p: float, seed: int, *sets: str) -> Spread:
    """Run it with a model that passes statements on with chance p, and measure."""
    model = Contagion(statements, p, seed)
    finished = runs.run(out, entry, f"seed={seed}", *sets, text=text, backend=model)
    assert finished.report.failures == {}
    spread = asyncio.run(measure_spread([Pair("run", finished.path, None)]))
    assert spread.decay.spontaneous.successes == 0  # nobody has it from elsewhere
    assert spread.decay.loss.losses == 0  # and nobody loses it
    return spread


def in_market(out: Path, p: float, seed: int) -> Spread:
    """A market of its own for each seed, each statement planted in one of its users."""
    entry = planted(STATEMENTS, ["{random: 1}"] * len(STATEMENTS))
    return measured(out, MARKET, entry, STATEMENTS, p, seed, f"data.seed={seed}")


def covers(found: Estimate, p: float) -> bool:
    _, low, high, _ = found.interval
    return low <= p <= high


def test_the_rate_per_contact_is_the_chance_that_was_planted(tmp_path: Path) -> None:
    rows = [in_market(tmp_path / str(seed), 0.4, seed).decay.transmission for seed in range(5)]
    assert sum(covers(row[0].rate, 0.4) for row in rows) >= 4
    assert {row.kind for row in rows[0]} == {"all", "interaction", "exposure"}  # of an item that was not taken, too
    successes, trials = (sum(getattr(row[0], name) for row in rows) for name in ("successes", "trials"))
    assert trials > 400
    assert successes / trials == pytest.approx(0.4, abs=0.075)  # three standard errors of 400 trials


@pytest.mark.slow
@pytest.mark.parametrize("p", CHANCES)
def test_intervals_of_the_rate_cover_the_chance_in_ninety_of_a_hundred_seeds(
    tmp_path: Path, p: float, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [in_market(tmp_path / str(seed), p, seed).decay.transmission[0] for seed in range(100)]
    covered = sum(covers(row.rate, p) for row in found)
    pooled = sum(row.successes for row in found) / sum(row.trials for row in found)
    with capsys.disabled():
        print(f"\nrate per contact, p = {p}: covered in {covered} of 100 seeds, all trials together {pooled:.4f}")
    assert covered >= 90
    assert pooled == pytest.approx(p, abs=0.03)


def trees(folder: Path) -> tuple[list[str], list[str]]:
    """Files of interactions that are trees; statements, and the root of each tree by the order of statements.

    A holder meets each of its children once, users and items by turns, at the time of the child's depth. The first and
    the last two items of a user are ``pad``, as these are not re-enacted, and negatives are ``never``, which nothing
    is written of: so no agent has a second chance.
    """
    rows: list[tuple[str, str, int]] = []
    for tree in range(TREES):
        level = [f"t{tree}"]
        for depth in range(1, DEPTH + 1):
            level = [f"{parent}.{child}" for parent in level for child in range(BRANCHES)]
            pairs = [(name.rpartition(".")[0], name) for name in level]
            rows += [(*(pair if depth % 2 else pair[::-1]), depth) for pair in pairs]
    users, items = (dict.fromkeys(row[side] for row in rows) for side in (0, 1))
    pads = [(user, "pad", time) for user in users for time in (0, DEPTH + 1, DEPTH + 2)]
    table = "".join(f"{user}\t{item}\t{time}\n" for user, item, time in (*rows, *pads))
    (folder / "trees.inter").write_text(f"user_id:token\titem_id:token\ttimestamp:float\n{table}", encoding="utf-8")
    named = "".join(f"{name}\tCalled {name}\n" for name in (*items, "pad", "never"))
    (folder / "trees.item").write_text(f"item_id:token\ttitle:token_seq\n{named}", encoding="utf-8")
    negatives = [{"user_id": user, "pos_item_id": item, "neg_item_ids": ["never"]} for user, item, _ in rows]
    (folder / "negatives.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in negatives), encoding="utf-8")
    return [f"I like style{tree}." for tree in range(TREES)], [f"t{tree}" for tree in range(TREES)]


def in_trees(folder: Path, p: float, seed: int) -> Spread:
    """All trees in one run, a statement planted at the root of each."""
    folder.mkdir()
    statements, roots = trees(folder)
    entry = planted(statements, [f"{{users: [{root}]}}" for root in roots])
    return measured(folder / "run", TREE.replace("FOLDER", str(folder)), entry, statements, p, seed)


@pytest.mark.parametrize("p", FEWER)
def test_on_trees_the_share_by_hop_is_the_chance_to_the_power_of_hops(tmp_path: Path, p: float) -> None:
    decay = in_trees(tmp_path / "trees", p, 1).decay
    assert [share.agents for share in decay.hops] == [TREES * BRANCHES**hop for hop in range(DEPTH + 1)]
    assert covers(decay.fit.kept, p)
    assert covers(decay.transmission[0].rate, p)
    assert decay.fit.kept.value == pytest.approx(p, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("p", CHANCES)
def test_on_trees_intervals_of_the_fit_cover_the_chance(
    tmp_path: Path, p: float, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [in_trees(tmp_path / str(seed), p, seed).decay.fit.kept for seed in range(40)]
    covered = sum(covers(kept, p) for kept in found)
    with capsys.disabled():
        print(f"\nshare by hop, p = {p}: covered in {covered} of 40 seeds")
    assert covered >= 36
