"""The limiting layer: which attempts may be under way, at what rate they are sent, and who goes next."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
import structlog

from simengine.errors import RunStopped
from simengine.llm import attempt as attempts
from simengine.llm.attempt import Attempt, Gauge
from simengine.llm.layers.lane import Lane, Permit, Waiting
from simengine.llm.layers.meter import Basis, Meter
from simengine.llm.layers.packing import PackingModel
from simengine.llm.layers.window import Found
from simengine.llm.request import Completion, LanguageModel, Request
from simengine.llm.settings import LimitSettings
from simengine.llm.tokens import Estimator, Need
from simengine.llm.transient import Transient, headline

T = TypeVar("T")

log = structlog.get_logger("simengine")

_SPREAD = 1.0  # seconds over which the slots open again after a pause, so that not all go out at one instant
_TOLD = 1.0  # seconds; a shorter wait for a limit is not worth an event
_STREAK = 3  # refusals in a row that name no limit are taken for a limit on requests; fewer may be a passing mood


class Rates(msgspec.Struct, frozen=True):
    """Requests and tokens as they are sent per minute, and the least known limit of each (infinite: none known)."""

    requests: float
    tokens: float
    most_requests: float
    most_tokens: float


class Limit:
    """Lets an attempt through once there is a slot and room in the windows; the lowest rank among the waiting is next.

    Rank is the arrival number less the number of slots times the request's priority, fixed on arrival. So a call of
    priority p passes those that came within the last p rounds of all slots and no others: however many urgent calls
    follow, the oldest gets its turn. A waiting call holds no slot; what it holds when it is cancelled is given back.

    Limits are the user's, shared by all models of the endpoint, and for each model those that its headers tell and its
    refusals (status 429) show. A pause that the server asks for (up to ``longest`` seconds) holds everyone back.

    Events: ``rate limit wait`` for an attempt that limits of rate or a pause (not the number of slots) kept for more
    than a second, ``endpoint paused``, ``limit learned`` (of headers), and ``refused``, with the limit that is believed
    in from then on (``most``: slots, or units per minute).
    """

    def __init__(
        self,
        following: LanguageModel,
        settings: LimitSettings,
        *,
        longest: float = math.inf,
        estimator: Estimator | None = None,
        seed: int = 0,
    ) -> None:
        self._following = following
        self._settings = settings
        self._longest = longest
        self._estimator = estimator or Estimator()
        self._random = random.Random(seed)
        self._shared = Meter(settings.window, settings.rpm, settings.tpm)
        self._lanes: dict[str, Lane] = {}
        self._found = Found(settings.window)
        self._basis = Basis()
        self._held = 0
        self._paused_until = -math.inf
        self._reopening = 0
        self._spread = 0.0
        self._held_by = ""  # what kept the next in the queue back when it was last looked at
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self.arrived = 0
        self.started = 0
        self.waiting = 0
        self.in_flight = 0
        self.greatest = 0
        self.refused = 0

    async def complete(self, request: Request) -> Completion:
        """The next model's completion, asked for once it may be sent."""
        permit = await self._enter((request,))
        return await self._through(permit, self._following.complete(request), lambda answer: (answer,))

    def packs(self, request: Request) -> bool:
        """Whether the next model can answer this request together with others."""
        return isinstance(self._following, PackingModel) and self._following.packs(request)

    async def complete_many(self, requests: tuple[Request, ...]) -> tuple[Completion, ...]:
        """The same for several requests in one attempt, where the next model is a :class:`PackingModel`."""
        assert isinstance(self._following, PackingModel)
        permit = await self._enter(requests)
        return await self._through(permit, self._following.complete_many(requests), lambda answers: answers)

    def close(self) -> None:
        """Send nothing more: the run stops. What waits here ends at once; what was sent may still be answered."""
        self._closed = True
        for lane in self._lanes.values():
            lane.fail(_stopping)
        self._stop_timer()

    def rates(self) -> Rates:
        """How fast it goes at the moment."""
        now, meters = self._now(), [self._shared, *(lane.meter for lane in self._lanes.values())]
        requests, tokens = self._shared.per_minute(now)
        limits = [meter.limits_per_minute(now) for meter in meters]
        return Rates(requests, tokens, min(most for most, _ in limits), min(most for _, most in limits))

    async def _enter(self, requests: tuple[Request, ...]) -> Permit:
        if self._closed:
            raise _stopping()
        self._loop = asyncio.get_running_loop()
        self.arrived += 1
        rank = self.arrived - self._settings.concurrency * max(request.priority for request in requests)
        slot: asyncio.Future[Permit] = self._loop.create_future()
        self._lane(requests).push(rank, self.arrived, Waiting(requests, slot, self._loop.time()))
        self._dispatch()
        if slot.done():
            return slot.result()
        self.waiting += 1
        try:
            return await slot
        except asyncio.CancelledError:
            # The slot may have been handed over in the very turn in which its caller was cancelled.
            if slot.done() and not slot.cancelled() and slot.exception() is None:
                self._leave(slot.result())
            raise
        finally:
            self.waiting -= 1

    async def _through(
        self, permit: Permit, sending: Awaitable[T], completions: Callable[[T], tuple[Completion, ...]]
    ) -> T:
        attempt = Attempt(on_sent=lambda: self._sent(permit))
        token = attempts.current.set(attempt)
        self.started += 1
        self.in_flight += 1
        self.greatest = max(self.greatest, self.in_flight)
        try:
            answer = await sending
        except Transient as fault:
            self._sent(permit)
            self._hear(permit, attempt.gauges)
            self._learn_from(fault, permit)
            raise
        else:
            self._sent(permit)
            self._hear(permit, attempt.gauges)
            self._settle(permit, completions(answer))
            return answer
        finally:
            attempts.current.reset(token)
            self.in_flight -= 1
            self._sent(permit)  # if nobody said when, it went out by now
            self._leave(permit)

    def _dispatch(self) -> None:
        """Let through all that may go, and come back when the next one may."""
        self._stop_timer()
        now = self._now()
        while (wait := self._grant_next(now)) == 0:
            pass
        if wait < math.inf:
            self._timer = asyncio.get_running_loop().call_later(wait, self._dispatch)

    def _grant_next(self, now: float) -> float:
        """Let the next one through (0), or tell in how many seconds one may go if nothing happens before."""
        heads = [(head, lane) for lane in self._lanes.values() if (head := lane.head()) is not None]
        if not heads or self._held >= min(self._settings.concurrency, self._found.value(now)):
            self._held_by = ""
            return math.inf
        if now < self._paused_until:
            self._held_by = "pause"
            return self._paused_until - now
        soonest, reserving = math.inf, self._basis.reserving
        for (_, _, waiting), lane in sorted(heads, key=lambda one: one[0][:2]):
            need = self._estimate(waiting.requests)
            wait = lane.meter.wait(need, now, reserving)
            if wait == 0:
                wait = self._shared.wait(need, now, reserving)
                if wait == 0:
                    lane.pop()
                    self._grant(waiting, need, lane, now)
                    return 0.0
                # Nobody passes by one who waits for what all share: many small needs would starve a great one.
                soonest = min(soonest, wait)
                break
            soonest = min(soonest, wait)
        self._held_by = "limit"
        return soonest

    def _estimate(self, requests: tuple[Request, ...]) -> Need:
        """What is to be expected, by what is known now: a call may have waited while much was learned."""
        return sum(map(self._estimator.need, requests), Need(0, 0))

    def _grant(self, waiting: Waiting, need: Need, lane: Lane, now: float) -> None:
        reserving = self._basis.reserving
        tolls = self._shared.charge(need, now, reserving), lane.meter.charge(need, now, reserving)
        waiting.slot.set_result(Permit(waiting.requests, *tolls))
        self._held += 1
        if self._held_by and (waited := now - waiting.came) > _TOLD:
            log.info("rate limit wait", **_told(waiting.requests), reason=self._held_by, seconds=round(waited, 3))
        if self._reopening > 0:
            self._paused_until = now + self._random.uniform(0, 2) * self._spread / self._settings.concurrency
            self._reopening -= 1

    def _sent(self, permit: Permit) -> None:
        """The windows count a permit's time from here on."""
        if not permit.was_sent:
            permit.was_sent = True
            self._shared.sent(permit.shared, self._now())
            self._lane(permit.requests).meter.sent(permit.own, self._now())
            self._dispatch()

    def _leave(self, permit: Permit) -> None:
        self._held -= 1
        if not permit.was_sent:
            self._shared.withdraw(permit.shared)
            self._lane(permit.requests).meter.withdraw(permit.own)
        if not self._closed:
            self._dispatch()

    def _settle(self, permit: Permit, answers: tuple[Completion, ...]) -> None:
        """Put what was really used in the place of what was estimated."""
        need = Need(0, 0)
        for request, answer in zip(permit.requests, answers, strict=True):
            need += self._estimator.learn(request, answer.usage)
        lane = self._lane(permit.requests)
        lane.admitted(permit.own.requests.sent)
        lane.meter.settle(permit.own, need)
        self._shared.settle(permit.shared, need)

    def _hear(self, permit: Permit, gauges: dict[str, Gauge]) -> None:
        """Learn from what the server says about its limits."""
        meter = self._lane(permit.requests).meter
        for name, gauge in gauges.items():
            if gauge.limit and meter.tell(name, gauge.limit):
                log.info("limit learned", limit=name, value=gauge.limit, model=permit.requests[0].model)
            if gauge.remaining == 0 and gauge.reset and meter.believed_room(name, permit.own, self._now()):
                self._pause(gauge.reset, f"no {name} left", permit)
        tokens = gauges.get("tokens")
        if tokens is not None and tokens.limit is not None and tokens.remaining is not None:
            counted = tokens.limit - tokens.remaining
            self._basis.heard(meter.counts_reserved(permit.own, counted, tokens.limit, self._now()))

    def _learn_from(self, fault: Transient, permit: Permit) -> None:
        """A refusal shows a limit; a pause that is asked for holds for everyone."""
        if fault.reason == "limited":
            self.refused += 1
            self._find(fault, permit)
        if fault.retry_after:
            self._pause(fault.retry_after, headline(fault.problem), permit)

    def _find(self, fault: Transient, permit: Permit) -> None:
        """Find out which limit an attempt met, and where it is."""
        lane, now = self._lane(permit.requests), self._now()
        meter, kind = lane.meter, fault.limited
        if kind == "concurrency":
            self._found.refused(self._held - 1, now)
        elif kind == "tokens" and not self._basis.reserving and self._fits_only_as_used(permit, meter, now):
            self._basis.proved()
        elif kind or lane.refused(permit.own.requests.sent) >= _STREAK:
            meter.refused(kind or "requests", permit.own, now, self._basis.reserving)
        self._shared.forget(permit.shared)
        meter.forget(permit.own)
        requests, tokens = meter.limits_per_minute(now)
        most = {"concurrency": self._found.value(now), "tokens": tokens}.get(kind, requests)
        log.info("refused", **_told(permit.requests), reason=kind or "unnamed", most=round(most, 1))

    def _fits_only_as_used(self, permit: Permit, meter: Meter, now: float) -> bool:
        """True where the refused attempt had room by what replies really took, and none by what they might have."""
        tolls = ((self._shared, permit.shared), (meter, permit.own))
        return any(each.fits_only_as_used(toll, now) for each, toll in tolls)

    def _pause(self, seconds: float, reason: str, permit: Permit) -> None:
        until = self._now() + seconds
        if seconds <= self._longest and until > self._paused_until:
            log.info("endpoint paused", **_told(permit.requests), reason=reason, seconds=round(seconds, 3))
            self._paused_until = until
            self._reopening = self._settings.concurrency
            self._spread = min(_SPREAD, seconds)

    def _lane(self, requests: tuple[Request, ...]) -> Lane:
        model = requests[0].model
        if model not in self._lanes:
            self._lanes[model] = Lane(self._settings.window)
        return self._lanes[model]

    def _now(self) -> float:
        return 0.0 if self._loop is None else self._loop.time()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _told(requests: tuple[Request, ...]) -> dict[str, str]:
    """The first call of an attempt, for an event."""
    return {"call": requests[0].call, "task": requests[0].task, "model": requests[0].model}


def _stopping() -> RunStopped:
    return RunStopped("the run stops, so this call is not sent", remedy="resume the run to send it")
