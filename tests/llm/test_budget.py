"""The budget layer: what a run comes to, what stops it, and what a resumed run has paid for already."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fakes import ask
from pydantic import ValidationError
from standin_clock import run_virtual

from simengine.errors import CallFailed, RunStopped
from simengine.llm import CallStore, LLMSettings, build
from simengine.llm.backends.scripted import Scripted
from simengine.llm.calls import Entry, Failure, Row
from simengine.llm.layers.budget import Budget, Spending
from simengine.llm.request import Completion, Message, Request, Sampling, Usage
from simengine.llm.settings import BudgetSettings, Price
from simengine.llm.tokens import Estimator

PRICES = {"m": Price(input=2.0, output=10.0)}
METERED = Completion("yes", usage=Usage(100, 20))


def call(number: int = 0) -> Request:
    """A prompt of 400 characters, estimated at 100 tokens, and up to 30 of reply."""
    return Request("choose", "m", (Message("user", "x" * 400),), Sampling(0.0, max_tokens=30), call=str(number))


def budget(model: object, paid: tuple[Row, ...] = (), **most: float) -> Budget:
    return Budget(model, BudgetSettings.model_validate(most), PRICES, Estimator(), paid)


async def in_turn(layer: Budget, count: int) -> int:
    """How many of so many calls, one after another, are made before the run stops."""
    for done in range(count):
        try:
            await layer.complete(call(done))
        except RunStopped:
            return done
    return count


class TestCost:
    def test_what_servers_report_is_priced_per_million(self) -> None:
        layer = budget(Scripted(lambda request: METERED))
        run_virtual(in_turn(layer, 3))
        # 3 * (100 * 2 + 20 * 10) / 1e6
        assert layer.spent == Spending(calls=3, tokens=360, usd=pytest.approx(0.0012), estimated=0)

    @pytest.mark.parametrize(
        ("usage", "tokens", "estimated"),
        [
            (Usage(), 100 + 2, 1),
            (Usage(90, None), 90 + 2, 1),
            (Usage(None, 20), 100 + 20, 1),
            (Usage(0, 0), 0, 0),
        ],
    )
    def test_what_they_do_not_is_estimated_and_said_to_be(self, usage: Usage, tokens: int, estimated: int) -> None:
        """Field case 12: never a silent zero; a token for each four characters of prompt and reply."""
        layer = budget(Scripted(lambda request: Completion("8 chars.", usage=usage)))
        run_virtual(in_turn(layer, 1))
        assert (layer.spent.tokens, layer.spent.estimated) == (tokens, estimated)

    def test_a_call_that_failed_is_a_call_without_tokens_and_one_that_was_stopped_is_none(self) -> None:
        errors = [CallFailed("filtered", reason="filtered"), RunStopped("no key")]
        layer = budget(Scripted(lambda request: errors.pop(0)))

        async def play() -> None:
            for kind in (CallFailed, RunStopped):
                with pytest.raises(kind):
                    await layer.complete(call())

        run_virtual(play())
        assert layer.spent == Spending(calls=1)

    def test_a_model_without_a_price_costs_nothing_that_is_known(self) -> None:
        layer = Budget(Scripted(lambda request: METERED), BudgetSettings(), {}, Estimator())
        run_virtual(in_turn(layer, 1))
        assert layer.spent == Spending(calls=1, tokens=120)


class TestStopping:
    @pytest.mark.parametrize(
        ("most", "made"),
        [
            ({"calls": 3}, 3),
            ({"calls": 0}, 0),
            ({"tokens": 610}, 5),  # 120 each; the fifth is expected at 130, after 480
            ({"tokens": 609}, 4),
            ({"usd": 0.0021}, 5),  # 0.0004 each; the fifth is expected at 0.0005, after 0.0016
            ({"usd": 0.00209}, 4),
            ({"calls": 9, "usd": 0.0009}, 2),
            ({}, 10),
        ],
    )
    def test_the_run_stops_before_the_call_that_would_break_the_budget(self, most: dict[str, float], made: int) -> None:
        model = Scripted(lambda request: METERED)
        assert run_virtual(in_turn(budget(model, **most), 10)) == made
        assert model.calls == made

    def test_the_message_says_how_to_go_on(self) -> None:
        layer = budget(Scripted(lambda request: METERED), usd=0.001)
        run_virtual(in_turn(layer, 2))
        with pytest.raises(RunStopped, match=r"budget of 0.001 usd is spent: 0.0008 so far.*about 0.0005") as caught:
            run_virtual(layer.complete(call()))
        assert "--set llm.budget.usd=" in caught.value.remedy

    def test_calls_under_way_count_so_that_a_hundred_at_once_do_not_overdraw(self) -> None:
        async def answer(request: Request) -> Completion:
            await asyncio.sleep(1)
            return METERED

        async def play() -> list[object]:
            layer = budget(model, tokens=1210)
            calls = (layer.complete(call(n)) for n in range(100))
            return await asyncio.gather(*calls, return_exceptions=True)

        model = Scripted(answer)
        got = run_virtual(play())
        # Nine fit by their estimate of 130; when they turn out at 120, there is room for the tenth.
        assert sum(isinstance(each, Completion) for each in got) == model.calls == 10
        assert all(isinstance(each, Completion | RunStopped) for each in got)

    def test_one_that_waits_can_be_cancelled(self) -> None:
        async def play() -> int:
            held: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
            layer = budget(Scripted(lambda request: held), calls=1)
            first, second = (asyncio.ensure_future(layer.complete(call(n))) for n in range(2))
            await asyncio.sleep(1)
            second.cancel()
            await asyncio.sleep(1)
            held.set_result(METERED)
            await first
            return layer.spent.calls

        # One call may be under way, but while it is, another could still turn out to be none: it has to wait.
        assert run_virtual(play()) == 1


class TestJournal:
    async def test_a_resumed_run_has_paid_for_what_its_journal_holds(self, tmp_path: Path) -> None:
        model = Scripted(lambda request: METERED)
        settings = {"prices": {"": {"input": 2, "output": 10}}, "budget": {"calls": 4}}

        async def ask_all(said: dict[str, object], count: int) -> tuple[int, Spending]:
            with CallStore(tmp_path / "calls.sqlite") as store:
                async with build(LLMSettings.model_validate(said), store, backend=model) as stack:
                    got = [stack.complete(ask(str(n))) for n in range(count)]
                    done = await asyncio.gather(*got, return_exceptions=True)
                    return sum(isinstance(each, Completion) for each in done), stack.stats().spending

        assert await ask_all(settings, 3) == (3, Spending(3, 360, 0.0, 0))
        assert await ask_all(settings, 9) == (4, Spending(4, 480, 0.0, 0))
        assert model.calls == 4
        assert (await ask_all({"budget": {"calls": 9}}, 9))[0] == 9
        assert model.calls == 9

    def test_failures_and_unmetered_answers_in_the_journal_count_as_they_did(self) -> None:
        outcomes = (METERED, Completion("8 chars."), Failure("no", "filtered"))
        rows = tuple(Row("k", call(), outcome, 0.1) for outcome in outcomes)
        assert budget(None, rows).spent == Spending(3, 120 + 102, pytest.approx(0.0004 + 0.00022), 1)

    async def test_a_full_budget_leaves_no_outcome_in_the_journal(self, tmp_path: Path) -> None:
        settings = LLMSettings.model_validate({"budget": {"calls": 0}})
        with CallStore(tmp_path / "calls.sqlite") as store:
            async with build(settings, store, backend=Scripted(lambda request: METERED)) as stack:
                with pytest.raises(RunStopped):
                    await stack.complete(ask())
            assert len(store) == 0
            await store.put(Entry(ask(), METERED, 0.1))
            async with build(settings, store, backend=Scripted(lambda request: METERED)) as stack:
                assert await stack.complete(ask()) == METERED, "what is paid for is free"


class TestSettings:
    SERVED = {"backend": "openai", "base_url": "http://h/v1", "model": "m", "roles": {"reflect": {"model": "big"}}}  # noqa: RUF012

    def test_a_budget_in_dollars_needs_the_price_of_every_model(self) -> None:
        price = {"input": 1, "output": 2}
        with pytest.raises(ValidationError, match="there is none of big"):
            LLMSettings.model_validate({**self.SERVED, "budget": {"usd": 5}, "prices": {"m": price}})
        LLMSettings.model_validate({**self.SERVED, "budget": {"usd": 5}, "prices": {"m": price, "big": price}})
        LLMSettings.model_validate({**self.SERVED, "budget": {"tokens": 5}})

    def test_models_are_told_once_each(self) -> None:
        settings = LLMSettings.model_validate(
            {**self.SERVED, "roles": {**self.SERVED["roles"], "rank": {"model": "m"}, "choose": {"temperature": 1}}}
        )
        assert settings.models == ("m", "big")

    def test_what_is_neutral_is_a_part_of_the_settings(self) -> None:
        assert set(LLMSettings.model_fields) > LLMSettings.OUTCOME_NEUTRAL
