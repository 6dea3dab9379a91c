"""Rebuilding the state of a run from its log: 200,000 events with two memory versions each.

Prints the events per second of reading, verifying and restoring them into the engine (target: at least 20,000), and
the time of that over the time of a plain decoding of the same lines with msgspec, in the same run. With ``--check``
the exit status says whether the target was met. Then, as a figure of its own, the verified replay of an AgentCF run on
an invented market: every prompt rendered, every answer looked up and parsed, every event compared.

The log goes on for some events behind those that are restored. The engine executes these on the restored state, and
what it commits must be what the log says; so a figure stands only for a state that is right.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec
from kernel import ROWS, Counting, events, interactions, run_kernel

import simengine
from simengine.kernel import Committed, Engine, Restored
from simengine.runlog import EventLine, Reader, event_line

TARGET = 20_000
PROOF = 1_000
AGENTCF = """
name: replayed
data: {format: market, users: 100, items: 150, interactions: 8}
method: {kind: agentcf}
stages: [{optimize: {}}, {rank: {}}]
"""


class Keeping:
    """A sink that keeps what is committed behind the history."""

    def __init__(self) -> None:
        self.records: list[Committed] = []

    def commit(self, record: Committed) -> None:
        self.records.append(record)


def restore(path: Path, users: list[str], items: list[str]) -> float:
    """Seconds until all but the last ``PROOF`` events are restored; exits where the rest does not follow on them."""
    seconds = 0.0

    def history(reader: Reader) -> Iterator[Restored]:
        nonlocal seconds
        for line in islice(reader, ROWS):
            yield line.restored()
        seconds = time.perf_counter() - begin

    sink = Keeping()
    engine = Engine(Counting(), events(users, items), sink)
    begin = time.perf_counter()
    with Reader(path) as reader:
        asyncio.run(engine.run(history(reader)))
        rest = list(reader)
    for line in rest:
        line.sum = ""
    if len(rest) != PROOF or rest != [event_line(record) for record in sink.records]:
        raise SystemExit("the restored run does not go on like the log, so its figure means nothing")
    return seconds


def decode(path: Path) -> float:
    """Seconds to decode the same lines, with nothing else done."""
    decoder = msgspec.json.Decoder(EventLine)
    begin = time.perf_counter()
    with path.open("rb") as file:
        count = sum(1 for _ in map(decoder.decode, islice(file, 2, ROWS + 2)))
    seconds = time.perf_counter() - begin
    if count != ROWS:
        raise SystemExit(f"the log holds {count} events")
    return seconds


def verified_replay(folder: Path) -> str:
    """Events and calls per second of a replay that executes everything again, without a model."""
    folder.mkdir()
    scenario = folder / "market.yaml"
    scenario.write_text(AGENTCF, encoding="utf-8")
    run = simengine.run(scenario, out=folder / "run")
    calls = sum(run.report.costs.calls.values())
    begin = time.perf_counter()
    replayed = simengine.replay(run)
    seconds = time.perf_counter() - begin
    return (
        f"{replayed.events / seconds:,.0f} events and {calls / seconds:,.0f} calls per second, {replayed.calls} asked"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit non-zero when the target is missed")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each, in turn")
    options = parser.parse_args()
    users, items = interactions(ROWS + PROOF)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "events.jsonl"
        run_kernel(users, items, path)
        rounds = [(restore(path, users, items), decode(path)) for _ in range(options.rounds)]
        verified = verified_replay(Path(name) / "agentcf")
    rate = ROWS / statistics.median(seconds for seconds, _ in rounds)
    plain = ROWS / statistics.median(seconds for _, seconds in rounds)
    print(f"verified replay of an AgentCF run: {verified}")
    print(f"ratio {statistics.median(ours / theirs for ours, theirs in rounds):.1f} times a plain decoding")
    print(f"events per second: {rate:,.0f} restored (target at least {TARGET:,}), {plain:,.0f} only decoded")
    return int(options.check and rate < TARGET)


if __name__ == "__main__":
    sys.exit(main())
