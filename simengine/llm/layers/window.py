"""A sliding window over what was sent: how much counts at the moment, and when there will be room for more."""

from __future__ import annotations

import math
from collections import deque

from simengine.llm.tokens import Need

_MARGIN = 0.02
"""By how much of its length a window is kept longer than the server's, for requests that travel at unequal speed."""

_FASTER = 2.0
"""How many times the limit's mean rate is the fastest: some servers count over parts of what they call a minute."""

_AT_ONCE = 0.1  # of a window may be ahead of that rate, and
_FEW = 10  # units of anything may be

_ROUNDING = 1e-6
_QUIET = 2.0  # windows without a refusal, after which a limit that was found by one is tried again
_FIRST_STEP = 0.01  # of the limit, and doubled with each window that brings no refusal


class Found:
    """A limit that refusals have shown, infinite before the first; tried again in growing steps while none follows."""

    def __init__(self, span: float) -> None:
        self._span = span
        self._value = math.inf
        self._step = 0.0
        self._try_at = math.inf

    def refused(self, before: float, now: float) -> None:
        """With so much under way the server had no room for more."""
        self._value = max(1.0, min(before, self._value))
        self._step = max(1.0, _FIRST_STEP * self._value)
        self._try_at = now + _QUIET * self._span

    def value(self, now: float) -> float:
        """What the limit is taken for."""
        if now >= self._try_at:
            self._value += self._step
            self._step *= 2
            self._try_at = now + self._span
        return self._value


class Charge:
    """What one attempt takes of a window. ``before`` is what counted when it was sent, itself left out."""

    __slots__ = ("before", "need", "sent")

    def __init__(self, need: Need) -> None:
        self.need = need
        self.sent = math.inf
        self.before = Need(0, 0)


class Window:
    """Amounts, each of which counts from the moment it is let through until ``span`` seconds after it was sent.

    The limit is the least of what the user gave (``given``), what the server's headers say (``told``) and what its
    refusals have shown. An amount that is greater than the limit fits an empty window. What there is room for goes out
    at no more than twice the mean rate, but for a first few: bursts meet finer limits, and queues on the way.
    """

    def __init__(self, span: float, given: float | None = None) -> None:
        self.span = span * (1 + _MARGIN)
        self.given = given
        self.told: float | None = None
        self.sum = Need(0, 0)
        self._found = Found(self.span)
        self._unsent = 0
        self._even = -math.inf  # when all that was let through would have gone at the fastest rate
        self._log: deque[Charge] = deque()

    def limit(self, now: float) -> float:
        """The most that may count at one time; infinite while no limit is known."""
        known = (self.given, self.told, self._found.value(now))
        return min(limit for limit in known if limit is not None)

    def charge(self, need: Need, now: float, reserving: bool) -> Charge:
        """Count an amount from now on."""
        charge = Charge(need)
        self.sum += need
        self._unsent += 1
        amount = need.reserved if reserving else need.used
        self._even = max(self._even, now) + min(1.0, amount / self.limit(now)) * self.span / _FASTER
        return charge

    def sent(self, charge: Charge, now: float) -> None:
        """From now on the charge's time runs."""
        self.expire(now)
        charge.sent = now
        charge.before = self.sum - charge.need
        self._unsent -= 1
        self._log.append(charge)

    def settle(self, charge: Charge, need: Need) -> None:
        """Count for a charge what it came to, if it counts still."""
        if charge.sent == math.inf or (self._log and charge.sent >= self._log[0].sent):
            self.sum += need - charge.need
            charge.need = need

    def withdraw(self, charge: Charge) -> None:
        """Count a charge that was never sent no longer."""
        self.sum -= charge.need
        self._unsent -= 1

    def refused(self, charge: Charge, now: float, reserving: bool) -> None:
        """The server found no room for a sent charge, so what counts beside it is about all that it allows.

        Of many that were sent at one time, all that are refused tell so in turn, each without those before it.
        """
        self.settle(charge, Need(0, 0))
        self._found.refused(self.sum.reserved if reserving else self.sum.used, now)

    def wait(self, need: Need, now: float, reserving: bool) -> float:
        """Seconds until there is room; infinite while that hangs on the sending of what was let through."""
        self.expire(now)
        limit = self.limit(now)
        if limit == math.inf:
            return 0.0
        taken, more = (self.sum.reserved, need.reserved) if reserving else (self.sum.used, need.used)
        excess = taken + min(more, limit) - limit
        if excess <= _ROUNDING:
            at_once = max(_AT_ONCE, _FEW / limit / _FASTER) * self.span
            return max(0.0, self._even - at_once - now)
        for charge in self._log:
            excess -= charge.need.reserved if reserving else charge.need.used
            if excess <= _ROUNDING:
                return charge.sent + self.span - now
        return math.inf

    def expire(self, now: float) -> None:
        """Let go of what no longer counts."""
        while self._log and self._log[0].sent + self.span <= now:
            self.sum -= self._log.popleft().need
        if not self._log and not self._unsent:
            self.sum = Need(0, 0)  # lets no rounding error grow old
