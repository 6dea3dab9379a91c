"""A meter for one endpoint or one of its models: its windows over requests and over tokens, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from simengine.llm.layers.window import Charge, Window
from simengine.llm.tokens import Need

log = structlog.get_logger("simengine")

_ONE = Need(1, 1)
_NONE = Need(0, 0)
_TELLING = 0.02  # of a limit: closer together, two sums do not show which of them the server has


class Basis:
    """Whether a server holds against its limit what was asked for, or what was used, as far as that is known.

    Where it tells its count at all, the careful answer is taken for true until the count has told the two apart. A
    count that is greater than what was used is proof. One that is smaller may only come from a window that ended.
    """

    def __init__(self) -> None:
        self.reserving = False
        self._settled = False

    def heard(self, reserved: bool | None) -> None:
        """The server told its count, which agrees with what was reserved, or with what was used, or cannot tell."""
        if reserved:
            self.proved()
        elif not self._settled:
            self._settled = reserved is not None
            self._take(reserved is None)

    def proved(self) -> None:
        """It is what was asked for that counts."""
        self._settled = True
        self._take(True)

    def _take(self, reserving: bool) -> None:
        if reserving != self.reserving:
            self.reserving = reserving
            log.info("token count learned", counted="as asked for" if reserving else "as used")


@dataclass(frozen=True)
class Toll:
    """What one attempt was charged on one meter."""

    requests: Charge
    tokens: Charge


class Meter:
    """Requests and tokens over ``window`` seconds; ``rpm`` and ``tpm`` are limits per minute, if there are any."""

    def __init__(self, window: float, rpm: float | None = None, tpm: float | None = None) -> None:
        self._minutes = window / 60
        self.requests = Window(window, rpm and max(1.0, rpm * self._minutes))
        self.tokens = Window(window, tpm and max(1.0, tpm * self._minutes))

    def wait(self, need: Need, now: float, reserving: bool) -> float:
        """Seconds until there is room for one more request of this need."""
        return max(self.requests.wait(_ONE, now, reserving), self.tokens.wait(need, now, reserving))

    def charge(self, need: Need, now: float, reserving: bool) -> Toll:
        """Count one more request."""
        return Toll(self.requests.charge(_ONE, now, reserving), self.tokens.charge(need, now, reserving))

    def sent(self, toll: Toll, now: float) -> None:
        """The request went out."""
        self.requests.sent(toll.requests, now)
        self.tokens.sent(toll.tokens, now)

    def settle(self, toll: Toll, need: Need) -> None:
        """The request took so many tokens in truth."""
        self.tokens.settle(toll.tokens, need)

    def forget(self, toll: Toll) -> None:
        """The request was refused, so that it counts for nothing any more."""
        self.requests.settle(toll.requests, _NONE)
        self.tokens.settle(toll.tokens, _NONE)

    def withdraw(self, toll: Toll) -> None:
        """The request was never sent."""
        self.requests.withdraw(toll.requests)
        self.tokens.withdraw(toll.tokens)

    def tell(self, name: str, limit: float) -> bool:
        """The server names its limit for a window; True where that is news."""
        window = self._window(name)
        news = window.told != limit
        window.told = limit
        return news

    def refused(self, name: str, toll: Toll, now: float, reserving: bool) -> None:
        """The server refused the request for one of its limits."""
        self._window(name).refused(self._charge(name, toll), now, reserving)

    def believed_room(self, name: str, toll: Toll, now: float) -> bool:
        """Whether there seemed to be room for more when the request went out, and does now.

        Some servers tell of the moment in which a request came, others of that in which they answer it.
        """
        window, charge = self._window(name), self._charge(name, toll)
        window.expire(now)
        most = max(charge.before.reserved + charge.need.reserved, window.sum.reserved)
        return most < window.limit(now) * (1 - _TELLING)

    def fits_only_as_used(self, toll: Toll, now: float) -> bool:
        """Whether there was room for the request's tokens by what was used, but not by what was reserved."""
        limit, before, need = self.tokens.limit(now), toll.tokens.before, toll.tokens.need
        return before.used + need.used <= limit < before.reserved + need.reserved

    def counts_reserved(self, toll: Toll, counted: float, limit: float, now: float) -> bool | None:
        """Whether the server counts more than was used (True), or less than was reserved (False), beyond doubt.

        That must hold of the sums when the request went out and of those now: the server may speak of either moment.
        """
        self.tokens.expire(now)
        moments = (toll.tokens.before + toll.tokens.need, self.tokens.sum)
        if all(counted > sums.used + sums.doubt + _TELLING * limit for sums in moments):
            return True
        if all(counted < sums.reserved - sums.doubt - _TELLING * limit for sums in moments):
            return False
        return None

    def per_minute(self, now: float) -> tuple[float, float]:
        """Requests and tokens in the window, as so many per minute."""
        self.requests.expire(now)
        self.tokens.expire(now)
        return self.requests.sum.used / self._minutes, self.tokens.sum.used / self._minutes

    def limits_per_minute(self, now: float) -> tuple[float, float]:
        """The known limits on both, per minute."""
        return self.requests.limit(now) / self._minutes, self.tokens.limit(now) / self._minutes

    def _window(self, name: str) -> Window:
        return self.tokens if name == "tokens" else self.requests

    @staticmethod
    def _charge(name: str, toll: Toll) -> Charge:
        return toll.tokens if name == "tokens" else toll.requests
