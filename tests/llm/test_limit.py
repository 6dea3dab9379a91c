"""The limiting layer: slots, order, cancellation. Rates are held against an exact server in test_limit_rates."""

from __future__ import annotations

import asyncio

import pytest
from fakes import Held, ask, in_turn, turns
from hypothesis import given, settings
from hypothesis import strategies as st
from standin_clock import run_virtual

from simengine.errors import RunStopped
from simengine.llm.layers.limit import Limit
from simengine.llm.request import Completion
from simengine.llm.settings import LimitSettings


def slots(count: int) -> LimitSettings:
    return LimitSettings(concurrency=count)


class TestLimit:
    async def start(self, model: Limit, *calls: tuple[str, float]) -> list[asyncio.Task[Completion]]:
        tasks = []
        for name, priority in calls:
            tasks.append(asyncio.ensure_future(model.complete(ask(name, priority=priority))))
            await turns(1)
        await turns()
        return tasks

    async def test_no_more_than_allowed_are_under_way(self) -> None:
        model = Limit(held := Held(), slots(2))
        tasks = await self.start(model, *((name, 0.0) for name in "abcde"))
        assert (model.in_flight, model.waiting, held.asked()) == (2, 3, ["a", "b"])
        for at in range(5):
            held.give(at)
            await turns()
        await asyncio.gather(*tasks)
        assert held.asked() == list("abcde")
        assert (model.in_flight, model.waiting, model.greatest, model.started) == (0, 0, 2, 5)

    async def test_the_greater_priority_goes_first_and_equals_by_arrival(self) -> None:
        model = Limit(held := Held(), slots(1))
        tasks = await self.start(model, ("first", 0), ("a", 0), ("b", 10), ("c", 10), ("d", 20))
        for at in range(5):
            held.give(at)
            await turns()
        await asyncio.gather(*tasks)
        assert held.asked() == ["first", "d", "b", "c", "a"]

    @pytest.mark.parametrize("priority", [5, 10])
    async def test_nobody_starves(self, priority: int) -> None:
        """With a stream of urgent calls, the old one waits for as many of them as their priority, and no longer."""
        model = Limit(held := Held(), slots(1))
        tasks = await self.start(model, ("first", 0), ("old", 0))
        for at in range(30):
            tasks += await self.start(model, (f"urgent {at}", priority), (f"more urgent {at}", priority))
            held.give(at)
            await turns()
        # "old" arrived second; the urgent call of arrival n has rank n - priority, and ties go to the older.
        assert held.asked().index("old") == 1 + sum(n - priority < 2 for n in range(3, 100))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (model.in_flight, model.waiting) == (0, 0)

    async def test_a_failed_call_gives_its_slot_back(self) -> None:
        model = Limit(in_turn(RunStopped("x"), "yes"), slots(1))
        with pytest.raises(RunStopped):
            await model.complete(ask())
        assert (await model.complete(ask())).text == "yes"

    async def test_a_cancelled_waiter_is_passed_over(self) -> None:
        model = Limit(held := Held(), slots(1))
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
        model = Limit(held := Held(), slots(1))

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
            model = Limit(held := Held(), slots(concurrency))
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

    @settings(max_examples=60, deadline=None)
    @given(
        steps=st.lists(st.tuples(st.sampled_from(["start", "finish", "cancel"]), st.integers(0, 30)), max_size=60),
        rpm=st.integers(60, 300),
    )
    def test_what_is_counted_is_given_back(self, steps: list[tuple[str, int]], rpm: int) -> None:
        """With all at rest and the window over, as many may go at once as in the beginning."""

        async def play() -> None:
            model = Limit(held := Held(), LimitSettings(rpm=rpm, tpm=rpm * 10_000, window=1.0))
            tasks: list[asyncio.Task[Completion]] = []
            for what, number in steps:
                open_calls = [answer for _, answer in held.calls if not answer.done()]
                if what == "start":
                    tasks.append(asyncio.ensure_future(model.complete(ask(str(number), priority=number % 3))))
                elif what == "finish" and open_calls:
                    open_calls[number % len(open_calls)].set_result(Completion("yes"))
                elif tasks:
                    tasks[number % len(tasks)].cancel()
                await asyncio.sleep(number % 3 / 10)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert (model.in_flight, model.waiting) == (0, 0)
            await asyncio.sleep(1.1)
            assert model.rates().requests == 0
            assert model.rates().tokens == 0
            before = len(held.calls)
            again = [asyncio.ensure_future(model.complete(ask("x"))) for _ in range(30)]
            await turns()
            assert len(held.calls) - before == rpm // 60
            for task in again:
                task.cancel()
            await asyncio.gather(*again, return_exceptions=True)

        run_virtual(play())
