"""The retrying and the limiting layer, and the small backends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from fakes import Held, Sleeper, ask, in_turn, turns
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine.errors import CallFailed, ReplayMiss, RunStopped
from simengine.llm.backends.delay import Delay
from simengine.llm.backends.refuse import Refuse
from simengine.llm.backends.scripted import Scripted
from simengine.llm.layers.limit import Limit
from simengine.llm.layers.retry import Retry
from simengine.llm.request import Completion, Request
from simengine.llm.transient import Transient


class TestRetry:
    async def test_what_may_pass_is_sent_again(self) -> None:
        sleep = Sleeper()
        model = Retry(in_turn(Transient("HTTP 529"), Transient("HTTP 503"), "yes"), 900, sleep=sleep)
        answer = await model.complete(ask())
        assert (answer.text, answer.attempts) == ("yes", 3)
        assert 0.25 <= sleep.pauses[0] <= 0.5 <= sleep.pauses[1] <= 1.0

    @pytest.mark.parametrize(
        "error", [CallFailed("too long", reason="context"), RunStopped("refused key"), KeyError("x")]
    )
    async def test_what_will_not_pass_is_not(self, error: Exception) -> None:
        scripted = Scripted(lambda request: error)
        with pytest.raises(type(error)):
            await Retry(scripted, 900, sleep=Sleeper()).complete(ask())
        assert scripted.calls == 1

    async def test_pauses_grow_to_half_a_minute_and_a_quarter_of_an_hour_is_survived(self) -> None:
        sleep = Sleeper()
        model = Retry(scripted := Scripted(lambda request: Transient("HTTP 503")), 900, sleep=sleep)
        with pytest.raises(CallFailed, match=r"900 s.*HTTP 503") as caught:
            await model.complete(ask())
        assert caught.value.reason == "overloaded"
        assert caught.value.where["attempts"] == scripted.calls == len(sleep.pauses) + 1
        assert 870 <= sum(sleep.pauses) <= 900
        assert all(15 <= pause <= 30 for pause in sleep.pauses[6:])

    async def test_time_lost_in_attempts_counts_and_queueing_does_not(self) -> None:
        """A silent server (case 55): attempts of 120 s each use up 900 s at the eighth."""
        model = Retry(
            Scripted(lambda request: Transient("silence", reason="timeout", elapsed=120.0)), 900, sleep=Sleeper()
        )
        with pytest.raises(CallFailed) as caught:
            await model.complete(ask())
        assert (caught.value.reason, caught.value.where["attempts"]) == ("timeout", 8)

    async def test_the_servers_wish_is_kept(self) -> None:
        sleep = Sleeper()
        waits = [2.0, 0.5, 0.0, 75.0]
        await Retry(in_turn(*(Transient("429", retry_after=wait) for wait in waits), "yes"), 900, sleep=sleep).complete(
            ask()
        )
        assert all(wait <= pause <= wait + 1 for wait, pause in zip(waits, sleep.pauses, strict=True))

    async def test_a_wish_beyond_the_budget_ends_the_call_at_once(self) -> None:
        sleep = Sleeper()
        with pytest.raises(CallFailed):
            await Retry(in_turn(Transient("429", retry_after=901)), 900, sleep=sleep).complete(ask())
        assert sleep.pauses == []

    async def test_pauses_are_spread_and_repeatable(self) -> None:
        async def pause_of(text: str, seed: int) -> float:
            sleep = Sleeper()
            await Retry(in_turn(Transient("x"), "yes"), 900, seed=seed, sleep=sleep).complete(ask(text))
            return sleep.pauses[0]

        drawn = [await pause_of(str(n), 0) for n in range(20)]
        assert len(set(drawn)) == 20
        assert drawn == [await pause_of(str(n), 0) for n in range(20)]
        assert await pause_of("0", 1) != drawn[0]

    async def test_a_terminal_error_knows_how_many_attempts_it_took(self) -> None:
        with pytest.raises(CallFailed) as caught:
            await Retry(in_turn(Transient("503"), CallFailed("no")), 900, sleep=Sleeper()).complete(ask())
        assert caught.value.where["attempts"] == 2

    async def test_a_pause_holds_no_slot(self) -> None:
        limit = Limit(in_turn(Transient("503"), "yes"), 1)
        seen: list[tuple[int, int]] = []

        async def sleep(seconds: float) -> None:
            seen.append((limit.in_flight, limit.waiting))

        await Retry(limit, 900, sleep=sleep).complete(ask())
        assert seen == [(0, 0)]
        assert limit.started == 2


class TestLimit:
    async def start(self, model: Limit, *calls: tuple[str, float]) -> list[asyncio.Task[Completion]]:
        tasks = []
        for name, priority in calls:
            tasks.append(asyncio.ensure_future(model.complete(ask(name, priority=priority))))
            await turns(1)
        await turns()
        return tasks

    async def test_no_more_than_allowed_are_under_way(self) -> None:
        model = Limit(held := Held(), 2)
        tasks = await self.start(model, *((name, 0.0) for name in "abcde"))
        assert (model.in_flight, model.waiting, held.asked()) == (2, 3, ["a", "b"])
        for at in range(5):
            held.give(at)
            await turns()
        await asyncio.gather(*tasks)
        assert held.asked() == list("abcde")
        assert (model.in_flight, model.waiting, model.greatest, model.started) == (0, 0, 2, 5)

    async def test_the_greater_priority_goes_first_and_equals_by_arrival(self) -> None:
        model = Limit(held := Held(), 1)
        tasks = await self.start(model, ("first", 0), ("a", 0), ("b", 10), ("c", 10), ("d", 20))
        for at in range(5):
            held.give(at)
            await turns()
        await asyncio.gather(*tasks)
        assert held.asked() == ["first", "d", "b", "c", "a"]

    @pytest.mark.parametrize("weight", [1.0, 2.0])
    async def test_nobody_starves(self, weight: float) -> None:
        """With a stream of urgent calls, the old one waits for ``weight * priority`` of them, and no longer."""
        model = Limit(held := Held(), 1, weight=weight)
        tasks = await self.start(model, ("first", 0), ("old", 0))
        for at in range(30):
            tasks += await self.start(model, (f"urgent {at}", 5), (f"more urgent {at}", 5))
            held.give(at)
            await turns()
        # "old" arrived second; the urgent call of arrival n has rank n - 5 * weight, and ties go to the older.
        assert held.asked().index("old") == 1 + sum(n - 5 * weight < 2 for n in range(3, 100))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (model.in_flight, model.waiting) == (0, 0)

    async def test_a_failed_call_gives_its_slot_back(self) -> None:
        model = Limit(in_turn(RunStopped("x"), "yes"), 1)
        with pytest.raises(RunStopped):
            await model.complete(ask())
        assert (await model.complete(ask())).text == "yes"

    async def test_a_cancelled_waiter_is_passed_over(self) -> None:
        model = Limit(held := Held(), 1)
        tasks = await self.start(model, ("a", 0), ("b", 0), ("c", 0))
        tasks[1].cancel()
        await turns()
        assert model.waiting == 1
        held.give(0)
        await turns()
        assert held.asked() == ["a", "c"]
        held.give(1)
        await tasks[2]

    async def test_a_slot_handed_to_a_call_cancelled_in_that_turn_is_not_lost(self) -> None:
        model = Limit(held := Held(), 1)

        async def finish_and_cancel_the_next() -> None:
            await model.complete(ask("a"))
            waiters[0].cancel()  # the slot went to b in this very step, and b has not woken yet

        first = asyncio.ensure_future(finish_and_cancel_the_next())
        await turns()
        waiters = await self.start(model, ("b", 0), ("c", 0))
        held.give(0)
        await first
        await turns()
        assert held.asked() == ["a", "c"]
        held.give(1)
        await waiters[1]
        assert (model.in_flight, model.waiting) == (0, 0)

    @settings(max_examples=60, deadline=None)
    @given(
        steps=st.lists(st.tuples(st.sampled_from(["start", "finish", "cancel"]), st.integers(0, 30)), max_size=60),
        concurrency=st.integers(1, 3),
    )
    def test_slots_are_neither_lost_nor_invented(self, steps: list[tuple[str, int]], concurrency: int) -> None:
        async def play() -> None:
            model = Limit(held := Held(), concurrency)
            tasks: list[asyncio.Task[Completion]] = []
            for what, number in steps:
                open_calls = [answer for _, answer in held.calls if not answer.done()]
                if what == "start":
                    tasks.append(asyncio.ensure_future(model.complete(ask(priority=number % 7))))
                elif what == "finish" and open_calls:
                    open_calls[number % len(open_calls)].set_result(Completion("yes"))
                elif tasks:
                    tasks[number % len(tasks)].cancel()
                await turns(number % 3)
                assert model.in_flight <= concurrency
            await turns()
            left = sum(not task.done() for task in tasks)
            assert model.in_flight == min(concurrency, left)
            assert model.waiting == left - model.in_flight
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run(play())


class TestBackends:
    @pytest.mark.parametrize(
        "fn",
        [lambda request: "yes", lambda request: Completion("yes"), lambda request: asyncio.sleep(0, "yes")],
        ids=["text", "completion", "awaitable"],
    )
    async def test_scripted_answers(self, fn: Callable[[Request], object]) -> None:
        model = Scripted(fn)
        assert await model.complete(ask()) == Completion("yes")
        assert model.calls == 1

    async def test_scripted_errors(self) -> None:
        with pytest.raises(CallFailed):
            await Scripted(lambda request: CallFailed("no")).complete(ask())
        with pytest.raises(RunStopped):
            await Scripted(lambda request: asyncio.sleep(0, RunStopped("no"))).complete(ask())

    async def test_refuse_names_call_task_and_key(self) -> None:
        request = ask(call="e1/choose/r1")
        with pytest.raises(ReplayMiss) as caught:
            await Refuse().complete(request)
        assert caught.value.where == {"call": "e1/choose/r1", "task": "choose", "key": request.key()}

    def test_delays_are_lognormal_and_go_by_the_call(self) -> None:
        model = Delay(Scripted(lambda request: "yes"), 0.8, 0.5, 7)
        drawn = [model.seconds(ask(call=str(n))) for n in range(2000)]
        assert drawn == [model.seconds(ask("other text", call=str(n))) for n in range(2000)]
        assert drawn != [Delay(model, 0.8, 0.5, 8).seconds(ask(call=str(n))) for n in range(2000)]
        ordered = sorted(drawn)
        # The median of 2000 draws has a standard error of 0.8 * 0.5 * 1.25 / sqrt(2000) = 0.011; likewise the point of
        # one sigma above, 0.8 * exp(0.5) = 1.319, with one of about 0.02.
        assert ordered[1000] == pytest.approx(0.8, abs=0.05)
        assert ordered[round(2000 * 0.8413)] == pytest.approx(1.319, abs=0.09)

    async def test_delayed_answers_are_the_models_own(self) -> None:
        assert await Delay(Scripted(lambda request: "yes"), 0.001, 0.0, 0).complete(ask()) == Completion("yes")
