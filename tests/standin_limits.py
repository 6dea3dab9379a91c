"""The limits that the stand-in server enforces, exactly: requests and tokens over a sliding window, and concurrency."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Literal


@dataclass
class Limits:
    """``rpm`` and ``tpm`` are per minute and hold over any ``window`` seconds (a tenth of each in any six, say).

    ``counts`` says which tokens of a request are held against ``tpm``: those of its prompt and ``max_tokens``
    (``reserved``), or those of its prompt and its actual reply (``used``). Requests that are refused count for nothing.
    ``gauges``: whether ``x-ratelimit-*`` headers tell of the limits.

    Recorded: ``refused`` by the limit that was met, and of what was admitted ``entered``, pairs of time and tokens.
    """

    rpm: float | None = None
    tpm: float | None = None
    concurrency: int | None = None
    window: float = 60.0
    counts: Literal["reserved", "used"] = "reserved"
    gauges: bool = True
    refused: Counter[str] = field(default_factory=Counter)
    entered: list[tuple[float, int]] = field(default_factory=list)
    _recent: deque[tuple[float, int]] = field(default_factory=deque)
    _tokens: int = 0

    @property
    def requests_per_window(self) -> float:
        return float("inf") if self.rpm is None else self.rpm * self.window / 60

    @property
    def tokens_per_window(self) -> float:
        return float("inf") if self.tpm is None else self.tpm * self.window / 60

    def enter(self, now: float, tokens: int, under_way: int) -> tuple[str, float] | None:
        """Admit a request, or say which limit it meets and in how many seconds there is room for it."""
        self._expire(now)
        met = self._met(now, tokens, under_way)
        if met is not None:
            self.refused[met[0]] += 1
            return met
        self._recent.append((now, tokens))
        self._tokens += tokens
        self.entered.append((now, tokens))
        return None

    def headers(self, now: float) -> dict[str, str]:
        """What the server says about its limits; a reset is the time until the limit is whole again."""
        self._expire(now)
        if not self.gauges:
            return {}
        reset = f"{self._recent[-1][0] + self.window - now:.3f}s" if self._recent else "0s"
        told = {}
        for name, given, most, taken in (
            ("requests", self.rpm, self.requests_per_window, len(self._recent)),
            ("tokens", self.tpm, self.tokens_per_window, self._tokens),
        ):
            if given is not None:
                told[f"x-ratelimit-limit-{name}"] = f"{most:g}"
                told[f"x-ratelimit-remaining-{name}"] = f"{max(0, most - taken):g}"
                told[f"x-ratelimit-reset-{name}"] = reset
        return told

    def _met(self, now: float, tokens: int, under_way: int) -> tuple[str, float] | None:
        if self.concurrency is not None and under_way >= self.concurrency:
            return "concurrency", 0.0
        if len(self._recent) + 1 > self.requests_per_window:
            return "requests", self._recent[0][0] + self.window - now
        if self._tokens + tokens > self.tokens_per_window:
            excess = self._tokens + tokens - self.tokens_per_window
            for time, amount in self._recent:
                excess -= amount
                if excess <= 0:
                    return "tokens", time + self.window - now
            return "tokens", self.window
        return None

    def _expire(self, now: float) -> None:
        while self._recent and self._recent[0][0] + self.window <= now:
            self._tokens -= self._recent.popleft()[1]
