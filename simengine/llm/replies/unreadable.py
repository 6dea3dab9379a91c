"""What a parser raises when a reply cannot be read: a plain reason for counting, and a detail for a person."""

from __future__ import annotations

from typing import Literal, get_args

Reason = Literal[
    "empty",
    "reasoning_only",
    "truncated",
    "refusal",
    "off_role",
    "other_language",
    "no_heading",
    "unmatched",
    "ambiguous",
    "both",
    "repeated",
    "incomplete",
    "malformed",
]
REASONS: tuple[str, ...] = get_args(Reason)


class Unreadable(ValueError):
    """A reply that holds no answer in the format asked for.

    It is a plain value for the caller, who decides on a corrective re-ask; nothing is ever stored from such a reply.
    ``reason`` is one of ``REASONS``; ``detail`` says in a few words what was found, fit for a corrective prompt.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"
