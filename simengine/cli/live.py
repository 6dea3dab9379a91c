"""What stands on stderr while a run goes on: a live line that says how it goes, and log events above it."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Self

import structlog
from rich.console import Console
from rich.live import Live
from rich.text import Text

from simengine.scenario.drive import Snapshot
from simengine.scenario.wording import counted

_LINE_EVERY = 10.0  # seconds between two lines where there is no terminal
_RECENT = 300.0  # seconds: the time left is reckoned from the pace of the last five minutes,
_ENOUGH = 10.0  # and from no fewer than these
_FEW = 5  # nor from fewer events


class LiveLine:
    """How far a run is and how fast it goes, on stderr.

    On a terminal the line is rewritten in place (and goes on below where the terminal is narrow); elsewhere it is a
    plain line every ten seconds at most, and the last. It is a context manager. ``clock`` gives seconds.
    """

    def __init__(self, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._left = TimeLeft()
        self._printed_at = -math.inf
        self._pending = ""
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        if self._pending:
            self._print()

    def update(self, now: Snapshot) -> None:
        """Show a snapshot."""
        seconds = self._clock()
        line = describe(now, self._left.after(seconds, now.done, now.total))
        if self._console.is_terminal:
            self._live.update(Text(line), refresh=True)
            return
        self._pending = line
        if seconds - self._printed_at >= _LINE_EVERY:
            self._printed_at = seconds
            self._print()

    def _print(self) -> None:
        self._console.print(Text(self._pending), soft_wrap=True)
        self._pending = ""


class TimeLeft:
    """Reckons the time left from the pace of late: what was done before, or was answered from the journal, soon fades.

    It says nothing where that would be a guess: in the first ten seconds, or over fewer than five events.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def after(self, now: float, done: int, total: int) -> float | None:
        """Seconds left, when so many of all events are done at the time ``now``; ``None`` where none can be told."""
        self._seen.append((now, done))
        while self._seen[0][0] < now - _RECENT:
            self._seen.popleft()
        since, before = self._seen[0]
        if now - since < _ENOUGH or done - before < _FEW or done >= total:
            return None
        return (now - since) / (done - before) * (total - done)


def describe(now: Snapshot, left: float | None = None) -> str:
    """A snapshot in one line; what is under way is left out when nothing is any more."""
    parts = [f"{now.done}/{counted(now.total, 'event')}", counted(now.calls, "call"), f"{now.failures} failed"]
    if now.done < now.total:
        rates = now.rates
        parts += [f"{now.in_flight} in flight", f"{now.waiting} waiting"]
        if now.pausing:
            parts.append(f"{now.pausing} to be sent again")
        parts.append(_rate(rates.requests, rates.most_requests, "requests"))
        parts.append(_rate(rates.tokens, rates.most_tokens, "tokens"))
    if now.usd:
        parts.append(f"{now.usd:.4f} USD")
    if left is not None:
        seconds = round(left)
        parts.append(f"about {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left")
    return ", ".join(parts)


def _rate(value: float, most: float, what: str) -> str:
    """``480 of 500 requests/min``, without the limit where none is known."""
    limit = "" if math.isinf(most) else f" of {_short(most)}"
    return f"{_short(value)}{limit} {what}/min"


def _short(amount: float) -> str:
    if amount < 10_000:
        return f"{amount:.0f}"
    return f"{amount / 1e3:.0f}k" if amount < 1e6 else f"{amount / 1e6:.2f}M"


def log_to_stderr(level: int) -> None:
    """Let log events of at least this level (as :mod:`logging` numbers them) be lines on stderr, above the live line.

    Each is a text with ``key=value``, on a terminal in colours. A traceback shows no local variables: they hold keys.
    """
    renderer = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper("%Y-%m-%d %H:%M:%S", utc=False),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Looked up for each event: while the line lives, what is written to sys.stderr goes above it.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
