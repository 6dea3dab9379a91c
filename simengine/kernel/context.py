"""All that a handler may touch: versions, its own writes, notes, randomness, effects, branches, children."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from simengine.errors import KernelError, UnitFailed
from simengine.kernel.draft import Draft, Note
from simengine.kernel.event import CHAIN, Agent, Event, Lookahead, Order
from simengine.kernel.execute import Call, Executor
from simengine.kernel.issue import Issuer
from simengine.kernel.state import UNCOMMITTED, Blocker, State, Version, since_written
from simengine.kernel.streams import stream
from simengine.kernel.visibility import Calendar
from simengine.kernel.window import Entry, Window

T = TypeVar("T")


class Outcome(Generic[T]):
    """How a unit ended: with a value, or with a recorded failure."""

    __slots__ = ("_value", "failure")

    def __init__(self, value: T | None, failure: UnitFailed | None) -> None:
        self._value = value
        self.failure = failure

    @property
    def ok(self) -> bool:
        """Whether the unit succeeded."""
        return self.failure is None

    @property
    def value(self) -> T:
        """The unit's value; raises its failure where it has none."""
        if self.failure is not None:
            raise self.failure
        return self._value  # type: ignore[return-value]


class Branch(msgspec.Struct, Generic[T], frozen=True):
    """A unit to run beside others: its name, the agents that it alone may write meanwhile, and what it does."""

    name: str
    writes: tuple[Agent, ...]
    run: Callable[[Context], Coroutine[Any, Any, T]]


class Services(msgspec.Struct, frozen=True):
    """The parts of the kernel that a context speaks to."""

    seed: int
    state: State
    calendar: Calendar
    issuer: Issuer
    window: Window
    executor: Executor
    fail: Callable[[Event, BaseException], None]


_FOOTPRINT = "declare the agent in the event's footprint, and write it no more once it is released"
_PROMISE = "let the event's lookahead promise the least delay, and every agent, of all its descendants"
_NAMES = "give each unit and each call of an event a name of its own"
_CHAIN = "let an event itself go on, once: what else it schedules it spawns"
_BRANCHES = "inside a branch use the context that the branch is given"


class Context:
    """The face of the kernel towards one branch of one event. It sees the event as of the branch's opening.

    What breaks a promise of the kernel raises :class:`KernelError`, and stops the run even if the handler swallows it.
    """

    __slots__ = ("_draft", "_entry", "_forked", "_outer", "_services", "_writes", "event")

    def __init__(
        self, services: Services, entry: Entry, draft: Draft, writes: Sequence[Agent], outer: Context | None
    ) -> None:
        self._services = services
        self._entry = entry
        self._draft = draft
        self._writes = writes
        self._outer = outer
        self._forked = False
        self.event: Event = entry.event

    # -- memory ---------------------------------------------------------------------------------------------------

    async def read(self, agent: Agent, slot: str, *, by: Agent) -> Version:
        """The current value of a slot as ``by`` sees it: an agent sees itself at latest, others as published.

        Raises :class:`KernelError` outside the footprint, or where the slot has no value yet.
        """
        services = self._services
        while True:
            as_of = self._as_of(agent, by)
            if isinstance(as_of, Blocker):
                await as_of
                continue
            if self._draft.writes or self._outer is not None:
                own = self._own(agent, slot, by)
                if own:
                    return own[-1]
            found = services.state.look(agent, slot, as_of)
            if isinstance(found, Version):
                return found
            if found is None:
                remedy = "give the agent an initial value for it, or read it with entries(), which may be empty"
                raise self._fault(f"read the slot {slot!r}, which has no value yet", remedy, agent)
            await found

    async def entries(self, agent: Agent, slot: str, *, by: Agent) -> list[Version]:
        """All entries of a slot that is appended to, oldest first; one value where it was written; may be empty."""
        while True:
            as_of = self._as_of(agent, by)
            if isinstance(as_of, Blocker):
                await as_of
                continue
            found = self._services.state.look_all(agent, slot, as_of)
            if not isinstance(found, Blocker):
                return since_written([*found, *self._own(agent, slot, by)])
            await found

    async def settled(self, *agents: Agent) -> None:
        """Wait until every earlier event that may write one of ``agents`` has been issued (graph queries need it)."""
        for agent in agents:
            while (blocker := self._services.issuer.blocking(agent, self._entry.order)) is not None:
                await blocker

    def write(self, agent: Agent, slot: str, value: Any, *, because: Sequence[str | Version] = ()) -> Version:
        """Give a slot a new value. Others see it once the event has ended, or when the agent is released."""
        version = Version(agent, slot, UNCOMMITTED, value, self._draft.path, because)
        self._writable(agent).append(version)
        return version

    def append(self, agent: Agent, slot: str, value: Any, *, because: Sequence[str | Version] = ()) -> Version:
        """Add one entry to a slot that keeps all of its entries; needs no read, and never overwrites another's."""
        version = Version(agent, slot, UNCOMMITTED, value, self._draft.path, because, True)
        self._writable(agent).append(version)
        return version

    def release(self, agent: Agent) -> None:
        """Declare the agent's update final: whoever waits for it goes on, though this event has not ended.

        The event must not write the agent afterwards; what was released stands, even if the branch fails later.
        """
        self._mine()
        entry = self._entry
        if not entry.cells:
            self._services.issuer.register(entry)
        cell = entry.cells.get(agent)
        if cell is None or agent not in self._writes or cell.versions is not None:
            raise self._fault("released an agent that it may not write, or twice", _FOOTPRINT, agent)
        cell.versions = self._written(agent)
        self._services.executor.wake(cell)

    # -- what the log keeps, randomness, effects ------------------------------------------------------------------

    def note(self, body: Any, *, because: Sequence[str | Version] = ()) -> str:
        """Put something into the log (a message, for instance); returns its id, which goes by branch path."""
        draft = self._mine()
        note = Note(f"{self.event.id}#{draft.path}.{len(draft.notes)}", body, because)
        draft.notes.append(note)
        return note.id

    def random(self, name: str = "") -> random.Random:
        """The stream of this name: a function of seed, event, branch and name alone."""
        return stream(self._services.seed, self.event.id, self._draft.path, name)

    async def effect(self, run: Callable[[Call], Awaitable[tuple[T, str]]], name: str = "") -> T:
        """Do something outside the simulation, a model call for instance.

        ``run`` is given the call's id, made from event, branch and ``name``, and its priority; it returns the value
        and what the log keeps of it. A :class:`UnitFailed` from it is a recorded outcome and is raised here; any other
        error stops the run before this event, whatever the handler makes of it.
        """
        path = self._name(name)
        call = Call(f"{self.event.id}#{path}", float(self._services.window.height(self._entry)))
        pending = self._services.executor.effect(self.event.order, call, run)
        await pending
        error = pending.error
        if error is not None:
            if isinstance(error, UnitFailed):
                self._draft.calls.append((path, f"failed: {error.reason}"))
            else:
                self._services.fail(self.event, error)
            raise error
        self._draft.calls.append((path, pending.stamp))
        value: T = pending.value
        return value

    # -- units, branches, children --------------------------------------------------------------------------------

    async def unit(self, name: str, run: Callable[[Context], Coroutine[Any, Any, T]]) -> Outcome[T]:
        """Run a unit of the event. If it fails, its outcome is recorded and what it wrote is undone."""
        branch = self._open(name, self._writes)
        outcome = await _settle(branch, run)
        self._close(branch, outcome)
        return outcome

    async def together(self, *branches: Branch[T]) -> list[Outcome[T]]:
        """Run units side by side and settle them all. None sees what another writes; no two may write one agent."""
        claimed: set[Agent] = set()
        for branch in branches:
            for agent in branch.writes:
                if agent in claimed or agent not in self._writes:
                    problem = f"let the branch {branch.name!r} write an agent that is not its to write, or another's"
                    raise self._fault(problem, _FOOTPRINT, agent)
                claimed.add(agent)
        opened = [self._open(branch.name, branch.writes) for branch in branches]
        runs = [_settle(context, branch.run) for context, branch in zip(opened, branches, strict=True)]
        self._forked = True
        join = self._services.executor.fork(runs, lambda error: self._services.fail(self.event, error))
        while join.left:
            await join
        self._forked = False
        outcomes: list[Outcome[T]] = join.results
        for context, outcome in zip(opened, outcomes, strict=True):
            self._close(context, outcome)
        return outcomes

    def spawn(
        self,
        kind: str,
        *,
        delay: int | float,
        writes: tuple[Agent, ...] = (),
        reads: tuple[Agent, ...] = (),
        data: Any = None,
        facts: tuple[Any, ...] = (),
        lookahead: Lookahead | None = None,
    ) -> str:
        """Schedule a child ``delay`` after this event; it is issued when this event has ended. Returns its id."""
        draft, parent = self._mine(), self.event
        self._promised(delay, (*writes, *(lookahead.writes if lookahead else ())))
        path, number = draft.path, len(draft.children)
        child = Event(
            id=f"{parent.id}>{path}.{number}",
            kind=kind,
            order=(parent.order[0], parent.time + delay, *parent.order[2:], path, number),
            time=parent.time + delay,
            writes=writes,
            reads=reads,
            data=data,
            facts=facts,
            parent=parent.id,
            lookahead=lookahead,
        )
        draft.children.append(child)
        return child.id

    def go_on(self, *, delay: int | float, data: Any = None) -> str:
        """Schedule the next event of a chain, of this one's kind, footprint and lookahead. Returns its id.

        The k-th event of a chain has the id of the first with ``+k``. An event goes on once, and in no unit.
        """
        draft, event = self._mine(), self.event
        if self._outer is not None or any(child.order[-2] == CHAIN for child in draft.children):
            raise self._fault("went on inside a unit, or twice", _CHAIN)
        self._promised(delay, (*event.writes, *(event.lookahead.writes if event.lookahead else ())))
        first, tie, number = event.id, event.order[2:], 2
        if event.order[-2] == CHAIN:
            first, tie, number = event.id.rpartition(CHAIN)[0], event.order[2:-2], event.order[-1] + 1
        time = event.time + delay
        order = (event.order[0], time, *tie, CHAIN, number)
        later = msgspec.structs.replace(
            event,
            id=f"{first}{CHAIN}{number}",
            order=order,
            time=time,
            data=data,
            facts=(),
            source=False,
            parent=event.id,
        )
        draft.children.append(later)
        return later.id

    # -- inside ---------------------------------------------------------------------------------------------------

    def _promised(self, delay: int | float, writes: Sequence[Agent]) -> None:
        """Refuse a child that the event's lookahead does not promise."""
        promise = self.event.lookahead
        if promise is None or not delay >= promise.delay:
            raise self._fault(f"scheduled a child after {delay}, sooner than its lookahead says", _PROMISE)
        for agent in writes:
            if agent not in promise.writes:
                raise self._fault("scheduled a child that may write what its lookahead leaves out", _PROMISE, agent)

    def _as_of(self, agent: Agent, by: Agent) -> Order | Blocker:
        """The place as of which ``by`` sees ``agent``, or the reservation that may still change what stands there."""
        services, event, as_of = self._services, self.event, self._entry.as_of
        if agent not in event.writes and agent not in event.reads:
            raise self._fault("read an agent outside its footprint", _FOOTPRINT, agent)
        if by != agent and not services.calendar.latest_only:
            published = services.calendar.published(agent, event.order)
            if published is not None:
                as_of = min(as_of, published)
        if services.issuer.reserved:
            return services.issuer.blocking(agent, as_of) or as_of
        return as_of

    def _own(self, agent: Agent, slot: str, by: Agent) -> list[Version]:
        """What this event has written to the slot, as this branch sees it; unpublished, others see none."""
        if by != agent and self._services.calendar.publishes(agent):
            return []
        return [version for version in self._written(agent) if version.slot == slot]

    def _written(self, agent: Agent) -> Sequence[Version]:
        mine = self._draft.writes.get(agent, ())
        return [*self._outer._written(agent), *mine] if self._outer is not None else mine

    def _writable(self, agent: Agent) -> list[Version]:
        """Where this branch keeps what it writes to the agent."""
        writes = self._mine().writes
        cells = self._entry.cells
        if agent not in self._writes or (cells and cells[agent].versions is not None):
            raise self._fault("wrote an agent that is outside its footprint, or already released", _FOOTPRINT, agent)
        return writes.setdefault(agent, [])

    def _mine(self) -> Draft:
        """What this branch may add to: nothing while branches of it run, or the order would go by their arrival."""
        if self._forked:
            raise self._fault("used the context around a branch inside it", _BRANCHES)
        return self._draft

    def _name(self, name: str) -> str:
        """The path of a unit or call of this name. No two of an event are equal, in whatever branch they are."""
        draft = self._mine()
        path = "/".join(part for part in (draft.path, name) if part)
        claim = path if name else f"{path}/"
        if claim in draft.names:
            raise self._fault(f"used the name {path!r} twice", _NAMES)
        draft.names.add(claim)
        return path

    def _open(self, name: str, writes: Sequence[Agent]) -> Context:
        if name in ("", CHAIN):
            raise self._fault(f"opened a unit without a name, or called {CHAIN!r}", _NAMES)
        return Context(self._services, self._entry, Draft(self._name(name), names=self._draft.names), writes, self)

    def _close(self, branch: Context, outcome: Outcome[Any]) -> None:
        failure = None if outcome.failure is None else outcome.failure.reason
        self._draft.absorb(branch._draft, failure, self._entry.released())

    def _fault(self, problem: str, remedy: str, agent: Agent | None = None) -> KernelError:
        event = self.event
        error = KernelError(f"the handler of {event.kind!r} {problem}", remedy=remedy, event=event.id, agent=agent)
        self._services.fail(event, error)
        return error


async def _settle(branch: Context, run: Callable[[Context], Coroutine[Any, Any, T]]) -> Outcome[T]:
    try:
        return Outcome(await run(branch), None)
    except UnitFailed as failure:
        return Outcome(None, failure)
