"""What a reply's headers say: how long to wait, and how much is left of the server's limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import structlog

from simengine.llm.attempt import Gauge

log = structlog.get_logger("simengine")

_NUMBER = re.compile(r"\s*\d+(\.\d*)?\s*")
_DURATION = re.compile(r"(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_SECONDS = (86_400, 3600, 60, 1, 0.001)
_INSTANT = 1e9  # a greater number of seconds is an instant (since 1970), and a thousand times greater one in ms
_KINDS = ("requests", "tokens")
_PARTS = ("limit", "remaining", "reset")


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks to wait, from ``retry-after-ms`` or ``retry-after`` (a number or an HTTP date).

    ``now`` is the time in seconds since 1970, for dates. ``None`` where nothing legible was said.
    """
    if _NUMBER.fullmatch(milliseconds := headers.get("retry-after-ms", "")):
        return float(milliseconds) / 1000
    said = headers.get("retry-after", "")
    if _NUMBER.fullmatch(said):
        return float(said)
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - now)
    except ValueError:
        return None


class GaugeReader:
    """Reads ``x-ratelimit-limit-requests``, ``-remaining-tokens``, ``-reset-tokens`` and the like.

    A reset is a duration (``1m30.5s``, ``250ms``), a number of seconds, or an instant (ISO 8601, or a number of seconds
    or milliseconds since 1970). What is none of these is ignored, with one warning for the whole run.
    """

    def __init__(self) -> None:
        self._warned = False

    def read(self, headers: Mapping[str, str], now: float) -> dict[str, Gauge]:
        """The gauges that the headers speak of, by name. ``now`` is in seconds since 1970."""
        gauges = {}
        for kind in _KINDS:
            limit, remaining, reset = (headers.get(f"x-ratelimit-{part}-{kind}") for part in _PARTS)
            if limit or remaining or reset:
                gauges[kind] = Gauge(
                    self._legible(limit, number), self._legible(remaining, number), self._legible(reset, seconds, now)
                )
        return gauges

    def _legible(self, said: str | None, read: Callable[..., float | None], *more: float) -> float | None:
        value = read(said, *more) if said else None
        if said and value is None and not self._warned:
            self._warned = True
            log.warning("rate limit header not understood, ignored", said=said[:40])
        return value


def number(said: str) -> float | None:
    """A plain number."""
    return float(said) if _NUMBER.fullmatch(said) else None


def seconds(said: str, now: float) -> float | None:
    """Seconds from ``now`` (since 1970) until a stated instant, or of a stated duration."""
    said = said.strip()
    if (amount := number(said)) is not None:
        if amount < _INSTANT:
            return amount
        return max(0.0, (amount / 1000 if amount > 1000 * _INSTANT else amount) - now)
    if found := _DURATION.fullmatch(said):
        return sum(float(part) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True) if part)
    try:
        instant = datetime.fromisoformat(said)
    except ValueError:
        return None
    return max(0.0, (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp() - now)
