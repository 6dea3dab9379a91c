"""Words that several texts for people share: how many of something there are."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """``1 user``, ``2 users``, ``0 users``; a noun of several words is counted by its last."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
