"""The small backends: scripted, refusing, delayed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from fakes import ask

from simengine.errors import CallFailed, ReplayMiss, RunStopped
from simengine.llm.backends.delay import Delay
from simengine.llm.backends.refuse import Refuse
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Completion, Request


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
