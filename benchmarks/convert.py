"""Converting Amazon reviews to atomic files: reviews per second, and whether memory grows with their number.

    python benchmarks/convert.py [--small MB] [--large MB] [--check]

Generates two logs of reviews in the form of 2023, one of 50 MB and one of 400 MB, of the same users and items, with
the same item metadata; every fiftieth line repeats an earlier one. Each is converted in a process of its own, whose
peak of resident memory the system counts. What was written is counted against what was generated. ``--check`` exits
with 1 where the peak on the large log is more than ``TARGET`` times that on the small one.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.connection
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from simengine.data import AmazonSettings
from simengine.data.sources import convert

TARGET = 1.2
USERS, ITEMS = 20_000, 5_000
REPEAT_EVERY = 50
_WORDS = ["sturdy", "lovely", "cheap", "sound", "story", "strap", "colour", "works", "broke", "again", "gift", "loud"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", type=int, default=50, help="megabytes of the small log")
    parser.add_argument("--large", type=int, default=400, help="megabytes of the large log")
    parser.add_argument("--check", action="store_true", help=f"exit with 1 above {TARGET} times")
    arguments = parser.parse_args()
    peaks = []
    for megabytes in (arguments.small, arguments.large):
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder) / "source", Path(folder) / "out"
            reviews, repeats = generate(source, megabytes)
            seconds, peak, interactions = in_own_process(source, out)
        if interactions != reviews - repeats:
            print(f"{reviews} reviews with {repeats} repeats gave {interactions} interactions")
            return 1
        peaks.append(peak)
        print(
            f"{megabytes} MB, {reviews:,} reviews: {reviews / seconds:,.0f} reviews/s, peak {peak:.1f} MiB", flush=True
        )
    ratio = peaks[1] / peaks[0]
    print(f"peak memory is {ratio:.3f} times as large on the large log (target {TARGET})")
    return 1 if arguments.check and ratio > TARGET else 0


def generate(folder: Path, megabytes: int) -> tuple[int, int]:
    """Write reviews and metadata; how many reviews there are, and how many of them repeat an earlier one."""
    folder.mkdir()
    draws = random.Random(0)
    written = reviews = repeats = 0
    line = ""
    with (folder / "Books.jsonl").open("w", encoding="utf-8") as file:
        while written < megabytes * 1_000_000:
            reviews += 1
            if reviews % REPEAT_EVERY:
                # Every user and every item comes early, so that both logs have all of them; each time is its own.
                user, item = (reviews % USERS, reviews % ITEMS) if reviews <= USERS else (
                    draws.randrange(USERS), draws.randrange(ITEMS))  # fmt: skip
                line = _review(user, item, reviews, draws)
            else:
                repeats += 1
            written += file.write(line)
    with (folder / "meta_Books.jsonl").open("w", encoding="utf-8") as file:
        for item in range(ITEMS):
            meta = {"parent_asin": f"B{item:09}", "title": f"Title &amp; {item}", "price": "$9.99", "features": []}
            file.write(json.dumps(meta) + "\n")
    return reviews, repeats


def _review(user: int, item: int, number: int, draws: random.Random) -> str:
    text = " ".join(draws.choices(_WORDS, k=draws.randrange(10, 70)))
    review = {
        "rating": float(draws.randrange(1, 6)), "title": text[:20], "text": text, "images": [],
        "asin": f"B{item:09}", "parent_asin": f"B{item:09}", "user_id": f"AE{user:026}",
        "timestamp": 1_600_000_000_000 + number * 1000, "helpful_vote": 0, "verified_purchase": True,
    }  # fmt: skip
    return json.dumps(review) + "\n"


def in_own_process(source: Path, out: Path) -> tuple[float, float, int]:
    """Seconds, MiB at the peak, and interactions written, of one conversion."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=measured, args=(source, out, sender))
    process.start()
    sender.close()
    result: tuple[float, float, int] = receiver.recv()
    process.join()
    return result


def measured(source: Path, out: Path, sender: multiprocessing.connection.Connection) -> None:
    """Convert, and send what it took."""
    start = time.perf_counter()
    made = convert(AmazonSettings(format="amazon", path=source), out)
    seconds = time.perf_counter() - start
    with (out / "out.inter").open(encoding="utf-8") as file:
        written = sum(1 for _ in file) - 1
    assert written == made.interactions
    sender.send((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, written))


if __name__ == "__main__":
    sys.exit(main())
