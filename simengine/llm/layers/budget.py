"""The budget layer: a run stops before a call that would take it beyond the most calls, tokens or dollars allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
import structlog

from simengine.errors import CallFailed, RunStopped
from simengine.llm.calls import Row
from simengine.llm.request import Completion, LanguageModel, Request
from simengine.llm.settings import BudgetSettings, Price
from simengine.llm.tokens import CHARACTERS, EMBED, Estimator, characters

log = structlog.get_logger("simengine")

_MILLION = 1e6
_ROUNDING = 1e-9


class Spending(msgspec.Struct, frozen=True):
    """What a run has come to, the journal's calls included. ``usd`` knows only the models that have a price.

    ``estimated`` calls came without a full count of tokens, so that theirs were estimated.
    """

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    estimated: int = 0

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.estimated + other.estimated,
        )

    def __sub__(self, other: Spending) -> Spending:
        return self + Spending(-other.calls, -other.tokens, -other.usd, -other.estimated)


@dataclass(frozen=True)
class _Cap:
    """One of the limits: its name, which is a field of :class:`Spending`, and the most."""

    name: str
    most: float

    def broken_by(self, spending: Spending) -> bool:
        return bool(getattr(spending, self.name) > self.most + _ROUNDING)


class Budget:
    """Adds up what calls cost and stops the run (:class:`RunStopped`) before one that would break the budget.

    Calls under way are counted at their estimate; where only these stand between a call and the budget, the call waits
    for what they really cost (``waiting`` counts such calls). So the budget is overdrawn by no more than the error of
    the estimates. A call that ended in an error counts as a call and, since servers do not bill what they do not
    answer, as no tokens.

    Events: ``budget wait`` for each call that waits, and ``budget reached``, once.
    """

    def __init__(
        self,
        following: LanguageModel,
        settings: BudgetSettings,
        prices: Mapping[str, Price],
        estimator: Estimator,
        paid: Iterable[Row] = (),
    ) -> None:
        self._following = following
        self._caps = [_Cap(name, most) for name, most in settings.model_dump(exclude_none=True).items()]
        self._prices = prices
        self._estimator = estimator
        self._under_way = Spending()
        self._settled: asyncio.Event | None = None
        self._reached = False
        self.waiting = 0
        self.spent = Spending()
        for row in paid:
            if row.outcome.attempts == 0:
                continue  # reused: another run has paid for it
            self.spent += self._cost(row.request, row.outcome if isinstance(row.outcome, Completion) else None)

    async def complete(self, request: Request) -> Completion:
        """The next model's completion, if there is money for it."""
        need = await self._admit(request)
        cost = Spending()
        try:
            completion = await self._following.complete(request)
            cost = self._cost(request, completion)
            return completion
        except CallFailed:
            cost = self._cost(request, None)
            raise
        finally:
            self._under_way -= need
            self.spent += cost
            if self._settled is not None:
                self._settled.set()

    async def _admit(self, request: Request) -> Spending:
        """Count a call as under way, at its estimate, once there is room for it."""
        need, waits = self._estimate(request), False
        while (broken := self._first_broken(self.spent + self._under_way + need)) is not None:
            certain = self._first_broken(self.spent + need)
            if certain is not None or self._under_way.calls == 0:
                raise self._stop(certain or broken, need, request)
            if not waits:
                waits = True
                log.info("budget wait", call=request.call, task=request.task, reason=broken.name)
            self._settled = self._settled or asyncio.Event()
            self._settled.clear()
            self.waiting += 1
            try:
                await self._settled.wait()
            finally:
                self.waiting -= 1
        self._under_way += need
        return need

    def _first_broken(self, spending: Spending) -> _Cap | None:
        return next((cap for cap in self._caps if cap.broken_by(spending)), None)

    def _stop(self, cap: _Cap, need: Spending, request: Request) -> RunStopped:
        done, more = (f"{getattr(amount, cap.name):.6g}" for amount in (self.spent, need))
        if not self._reached:
            self._reached = True
            spent = round(getattr(self.spent, cap.name), 6)
            who = {"call": request.call, "task": request.task}
            log.warning("budget reached", **who, reason=cap.name, most=cap.most, spent=spent)
        return RunStopped(
            f"the budget of {cap.most:g} {cap.name} is spent: {done} so far, and the next call would add about {more}",
            remedy=f"to go on, resume with a greater one: --set llm.budget.{cap.name}=...",
        )

    def _estimate(self, request: Request) -> Spending:
        need = self._estimator.need(request)
        prompt = self._estimator.prompt(request)
        return self._priced(request, prompt, need.used - prompt)

    def _cost(self, request: Request, completion: Completion | None) -> Spending:
        """What a call came to; tokens that the server did not report are taken from the length of the texts."""
        if completion is None:
            return Spending(calls=1)
        usage = completion.usage
        prompt = characters(request) / CHARACTERS if usage.prompt_tokens is None else usage.prompt_tokens
        if request.task == EMBED:
            return self._priced(request, prompt, 0, usage.prompt_tokens is None)
        told = len(completion.text) + len(completion.reasoning)
        reply = told / CHARACTERS if usage.completion_tokens is None else usage.completion_tokens
        return self._priced(request, prompt, reply, None in (usage.prompt_tokens, usage.completion_tokens))

    def _priced(self, request: Request, prompt: float, reply: float, estimated: bool = False) -> Spending:
        price = self._prices.get(request.model)
        usd = 0.0 if price is None else (prompt * price.input + reply * price.output) / _MILLION
        return Spending(1, round(prompt + reply), usd, int(estimated))
