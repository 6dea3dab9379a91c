"""The journal and the coalescing layer, alone and one over the other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from fakes import Held, ask, turns

from simengine.errors import CallFailed, ReplayMiss, RunStopped
from simengine.llm.backends.delay import Delay
from simengine.llm.backends.scripted import Scripted
from simengine.llm.calls import CallStore
from simengine.llm.layers.coalesce import Coalesce
from simengine.llm.layers.journal import Journal
from simengine.llm.request import Completion, Request, Sampling, Usage
from simengine.llm.transient import Transient


@pytest.fixture
def store(tmp_path: Path):
    with CallStore(tmp_path / "calls.sqlite") as opened:
        yield opened


class TestJournal:
    async def test_a_hit_asks_nobody(self, store: CallStore) -> None:
        model = Scripted(lambda request: Completion("yes", usage=Usage(10, 2)))
        journal = Journal(store, model)
        first = await journal.complete(ask())
        assert await journal.complete(ask(call="another")) == first
        assert (model.calls, journal.asked, journal.answered) == (1, 1, 1)
        assert (journal.prompt_tokens, journal.completion_tokens, journal.unmetered) == (10, 2, 0)

    async def test_the_outcome_is_written_before_anyone_sees_it(self, store: CallStore) -> None:
        journal = Journal(store, Scripted(lambda request: "yes"))
        await journal.complete(ask())
        assert len(store) == 1

    async def test_a_terminal_error_is_an_outcome_like_any_other(self, store: CallStore) -> None:
        refused = CallFailed("no", reason="filtered", remedy="rephrase", status=400, attempts=3)
        model = Scripted(lambda request: refused)
        journal = Journal(store, model)
        seen = []
        for _ in range(2):
            with pytest.raises(CallFailed) as caught:
                await journal.complete(ask())
            seen.append(caught.value)
        assert model.calls == 1
        assert [(e.problem, e.reason, e.remedy, e.where) for e in seen] == [
            ("no", "filtered", "rephrase", {"status": 400})
        ] * 2
        assert seen[0] is not seen[1]
        assert journal.failed == {"filtered": 1}
        assert next(iter(store)).outcome.attempts == 3

    @pytest.mark.parametrize(
        "error", [RunStopped("budget spent"), ReplayMiss("no answer"), Transient("busy"), OSError()]
    )
    async def test_what_is_no_outcome_is_never_stored(self, store: CallStore, error: Exception) -> None:
        with pytest.raises(type(error)):
            await Journal(store, Scripted(lambda request: error)).complete(ask())
        assert len(store) == 0

    async def test_a_cancelled_call_is_never_stored(self, store: CallStore) -> None:
        calling = asyncio.ensure_future(Journal(store, Held()).complete(ask()))
        await turns()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert len(store) == 0

    async def test_answers_without_usage_are_unknown_and_not_zero(self, store: CallStore) -> None:
        usages = [Usage(10, 2), Usage(), Usage(prompt_tokens=5)]
        journal = Journal(
            store, Scripted(lambda request: Completion("yes", usage=usages[int(request.messages[0].content)]))
        )
        for at in range(3):
            await journal.complete(ask(str(at)))
        assert (journal.prompt_tokens, journal.completion_tokens, journal.unmetered) == (15, 2, 2)

    async def test_the_latency_is_stored_and_is_not_negative(self, store: CallStore) -> None:
        await Journal(store, Delay(Scripted(lambda request: "yes"), 0.01, 0.0, 0)).complete(ask())
        assert 0.009 <= next(iter(store)).latency < 5


# Field case 49. Each pair differs in one thing; what makes the key differ is stated beside it.
BASE = ask(call="e1/choose", temperature=1.0)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (ask(temperature=0.0), ask(temperature=1.0), False),
        (ask(temperature=None), ask(temperature=0.0), False),
        (
            msgspec.structs.replace(BASE, sampling=Sampling(1.0, seed=1)),
            msgspec.structs.replace(BASE, sampling=Sampling(1.0, seed=2)),
            False,
        ),
        (
            msgspec.structs.replace(BASE, sampling=Sampling(1.0, max_tokens=16)),
            msgspec.structs.replace(BASE, sampling=Sampling(1.0, max_tokens=400)),
            False,
        ),
        (BASE, msgspec.structs.replace(BASE, model="other"), False),
        (BASE, msgspec.structs.replace(BASE, slots={"option_1": "a"}), False),
        (BASE, msgspec.structs.replace(BASE, call="e2/choose"), False),
        (BASE, msgspec.structs.replace(BASE, repeat=1), False),
        (BASE, msgspec.structs.replace(BASE, priority=9.0), True),
        (ask(call="e1/choose"), ask(call="e2/choose"), True),
        (ask(repeat=0), ask(repeat=1), True),
    ],
)
async def test_what_tells_two_calls_apart(store: CallStore, one: Request, other: Request, same: bool) -> None:
    model = Scripted(lambda request: f"answer {model.calls}")
    journal = Journal(store, model)
    assert (await journal.complete(one) == await journal.complete(other)) is same
    assert model.calls == (1 if same else 2)


class TestCoalesce:
    async def test_equal_calls_under_way_are_one(self) -> None:
        held = Held()
        model = Coalesce(held)
        calls = [asyncio.ensure_future(model.complete(ask(call=name))) for name in "abc"]
        await turns()
        assert len(held.calls) == 1
        held.give(0)
        assert [answer.text for answer in await asyncio.gather(*calls)] == ["yes"] * 3
        assert model.shared == 2

    async def test_different_calls_are_not_and_later_ones_are_asked_again(self) -> None:
        model = Coalesce(scripted := Scripted(lambda request: "yes"))
        await asyncio.gather(model.complete(ask("a")), model.complete(ask("b")))
        await model.complete(ask("a"))
        assert scripted.calls == 3

    async def test_a_cancelled_leader_does_not_fail_its_followers(self) -> None:
        held = Held()
        model = Coalesce(held)
        leader = asyncio.ensure_future(model.complete(ask()))
        await turns()
        follower = asyncio.ensure_future(model.complete(ask()))
        await turns()
        leader.cancel()
        await turns()
        held.give(0)
        assert (await follower).text == "yes"
        assert leader.cancelled()
        assert len(held.calls) == 1

    async def test_with_the_last_caller_the_call_is_cancelled_and_the_next_one_asks_anew(self) -> None:
        held = Held()
        model = Coalesce(held)
        calls = [asyncio.ensure_future(model.complete(ask())) for _ in range(2)]
        await turns()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        again = asyncio.ensure_future(model.complete(ask()))
        await turns()
        assert held.calls[0][1].cancelled()
        held.give(1)
        assert (await again).text == "yes"

    async def test_nobody_joins_a_call_that_is_being_cancelled(self) -> None:
        held = Held()
        model = Coalesce(held)

        async def ask_again_when_cancelled() -> str:
            try:
                await model.complete(ask())
            except asyncio.CancelledError:
                return (await model.complete(ask())).text
            return "the first answer"

        calling = asyncio.ensure_future(ask_again_when_cancelled())
        await turns()
        calling.cancel()
        await turns()
        held.give(1)
        assert await calling == "yes"

    async def test_each_caller_gets_its_own_error_with_its_own_name(self) -> None:
        model = Coalesce(Scripted(lambda request: CallFailed("no", reason="filtered")))
        errors = await asyncio.gather(*(model.complete(ask(call=name)) for name in "ab"), return_exceptions=True)
        assert [(type(e), e.where) for e in errors] == [(CallFailed, {"call": c, "task": "choose"}) for c in "ab"]
        assert errors[0] is not errors[1]

    async def test_an_answer_that_comes_as_its_caller_is_cancelled_is_written_down(self, store: CallStore) -> None:
        held = Held()
        model = Coalesce(Journal(store, held))
        calling = asyncio.ensure_future(model.complete(ask()))
        await turns()
        held.give(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert store.get(ask().key()) == Completion("yes")

    async def test_no_gap_between_the_answer_and_the_journal(self, store: CallStore) -> None:
        """Asked in any turn after the answer came, an equal call finds it under way or written down."""
        for delay in range(8):
            held = Held()
            model = Coalesce(Journal(store, held))
            request = ask(f"after {delay} turns")
            first = asyncio.ensure_future(model.complete(request))
            await turns()
            held.give(0)
            await turns(delay)
            second = await asyncio.wait_for(model.complete(request), 5)
            assert second == await first
            assert len(held.calls) == 1

    async def test_closing_ends_what_is_under_way(self) -> None:
        held = Held()
        model = Coalesce(held)
        calling = asyncio.ensure_future(model.complete(ask()))
        await turns()
        await model.aclose()
        assert held.calls[0][1].cancelled()
        with pytest.raises(asyncio.CancelledError):
            await calling
