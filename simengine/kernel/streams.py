"""Keyed randomness: a stream is a function of the run's seed and of names, never of who asked first."""

from __future__ import annotations

import hashlib
import random


def stream(seed: int, *names: str) -> random.Random:
    """A fresh generator for this seed and these names; equal arguments give equal draws, in any process."""
    text = "\x1f".join((str(seed), *names))
    return random.Random(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big"))
