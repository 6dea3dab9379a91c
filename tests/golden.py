"""Records the golden run anew, and a copy that was changed by hand: ``python tests/golden.py``.

Do so only when prompts, schema or the golden scenario have changed on purpose. The copy has one word of one memory
changed and all checksums made to fit, so that only re-executing it can tell.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

import simengine
from simengine.runlog import EventLine
from simengine.runlog.records import Chain

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "replays" / "golden-agentcf"
TAMPERED = ROOT / "replays" / "golden-tampered-memory"


def tamper(events: Path) -> None:
    """Change the last user memory of a log, and close every line behind it anew."""
    provenance, header, *lines = events.read_bytes().splitlines(keepends=True)
    rows = [msgspec.json.decode(line, type=EventLine) for line in lines[:-1]]
    memory = [version for row in rows for version in row.memories if version.slot == "short"][-1]
    memory.value = memory.value.replace("I like", "I loathe", 1)
    chain = Chain(msgspec.json.decode(header)["sum"])
    for row in rows:
        row.sum = ""
    end = msgspec.json.decode(lines[-1])
    end.pop("sum")
    closed = [chain.close(row) for row in rows] + [chain.close(end)]
    events.write_bytes(b"".join([provenance, header, *closed]))


def main() -> None:
    for folder in (GOLDEN, TAMPERED):
        shutil.rmtree(folder, ignore_errors=True)
    simengine.run(ROOT / "scenarios" / "golden.yaml", out=GOLDEN)
    shutil.copytree(GOLDEN, TAMPERED)
    tamper(TAMPERED / "events.jsonl")


if __name__ == "__main__":
    main()
