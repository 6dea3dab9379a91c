"""Reading an atomic file of a million lines, against the same job with the csv module. Prints the ratio of times.

    python benchmarks/loaders.py [--rows N] [--rounds N] [--check]

Both read a generated log (user, item, rating, timestamp), check the number of fields of each line and give the same
columns: two lists of texts, two arrays of numbers. Rounds alternate between the two in one process; the best round of
each counts. The memory of each is its peak of allocated bytes, measured in a round that is not timed. ``--check``
exits with 1 where reading is not at least ``TARGET`` times as fast.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from simengine.data.atomic import read_table

TARGET = 1.5


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help=f"exit with 1 below {TARGET} times")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.inter"
        write_log(path, arguments.rows)
        if not same_columns(with_simengine(path), with_csv(path)):
            print("the two readers do not give the same columns")
            return 1
        ours, theirs = best_times(path, arguments.rounds)
        print(f"{arguments.rows:,} lines, {path.stat().st_size / 1e6:.0f} MB, best of {arguments.rounds} rounds each")
        print(f"simengine: {ours:.3f} s, {peak_memory(with_simengine, path):.0f} MiB at its peak")
        print(f"csv:       {theirs:.3f} s, {peak_memory(with_csv, path):.0f} MiB at its peak")
    ratio = theirs / ours
    print(f"simengine is {ratio:.2f} times as fast as csv (target {TARGET})")
    return 1 if arguments.check and ratio < TARGET else 0


def write_log(path: Path, rows: int) -> None:
    """A log without meaning, but with the widths and repetitions of a real one."""
    draw = random.Random(0).randrange
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("user_id:token\titem_id:token\trating:float\ttimestamp:float\n")
        for _ in range(rows):
            file.write(f"{draw(20_000)}\t{draw(5_000)}\t{draw(1, 6)}\t{880_000_000 + draw(10**8)}\n")


def with_simengine(path: Path) -> Mapping[str, Any]:
    """The reader under test."""
    return read_table(path).columns


def with_csv(path: Path) -> Mapping[str, Any]:
    """The same job as one would write it with the csv module."""
    users: list[str] = []
    items: list[str] = []
    ratings: list[float] = []
    times: list[float] = []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        width = len(next(reader))
        for row in reader:
            if len(row) != width:
                raise ValueError(f"line {reader.line_num}: {len(row)} fields")
            users.append(row[0])
            items.append(row[1])
            ratings.append(float(row[2]))
            times.append(float(row[3]))
    return {"user_id": users, "item_id": items, "rating": np.array(ratings), "timestamp": np.array(times)}


def same_columns(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    return list(ours) == list(theirs) and all(np.array_equal(ours[field], theirs[field]) for field in ours)


def best_times(path: Path, rounds: int) -> tuple[float, float]:
    """Seconds of the best round of each, in turn, so that both meet the same state of the machine."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for reader, times in zip((with_simengine, with_csv), seconds, strict=True):
            start = time.perf_counter()
            reader(path)
            times.append(time.perf_counter() - start)
    return min(seconds[0]), min(seconds[1])


def peak_memory(reader: Callable[[Path], object], path: Path) -> float:
    """MiB allocated at the peak of one reading, as counted by tracemalloc; this round is not timed."""
    tracemalloc.start()
    reader(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


if __name__ == "__main__":
    sys.exit(main())
