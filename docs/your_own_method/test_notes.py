"""The example method keeps the contract of a method: it runs, replays, resumes, and stores no unreadable answer."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE))

import notes  # noqa: E402  (it lies beside this file)

from simengine.methods.catalog import register  # noqa: E402
from simengine.testing import MethodContract  # noqa: E402

register("notes", notes.METHOD)


class TestNotes(MethodContract):
    scenario = HERE / "notes.yaml"
