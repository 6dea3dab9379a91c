"""Says what a run will come to before it is made: calls, tokens and dollars, from a sample of its real prompts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from operator import attrgetter

import msgspec

from simengine.embed import EmbedSettings, make_embedder
from simengine.kernel import Committed, Engine, Event, stream
from simengine.llm import Completion, Request
from simengine.llm.backends.lexical import Lexical
from simengine.llm.layers.local import Local
from simengine.llm.settings import Price
from simengine.llm.tokens import CHARACTERS, characters
from simengine.methods import corpora, tools
from simengine.methods.studies.chat import SPEAK
from simengine.scenario.cast import Cast
from simengine.scenario.check import Plan, PlannedStage, plan
from simengine.scenario.drive import Program
from simengine.scenario.schema import Scenario
from simengine.scenario.setup import Setup
from simengine.scenario.tools import nearing, searching
from simengine.world import Graph, kind

SAMPLE = 300
"""Events that are played out, at least, where the scenario has as many."""
WORD = 6.2
"""Characters of an English word with the space behind it, as language models write them in these memories."""

_TALKERS = 2  # an event with more users than can talk with one another is about all of them
_MILLION = 1e6


class TaskEstimate(msgspec.Struct, frozen=True):
    """What one task of a stage is expected to come to; ``usd`` is ``None`` where its model has no price."""

    stage: str
    task: str
    model: str
    calls: float
    prompt_tokens: float
    completion_tokens: float
    usd: float | None


class Estimate(msgspec.Struct, frozen=True):
    """What a run is expected to come to.

    ``sampled`` events were played out, in ``failed`` of which the rules that stand in for a model could not go on.
    ``unpriced`` are the models of which no price is known. ``assumptions`` say what the numbers rest on.
    """

    plan: Plan
    tasks: list[TaskEstimate]
    sampled: int
    failed: int
    unpriced: list[str]
    assumptions: list[str]

    @property
    def calls(self) -> tuple[int, int]:
        """The fewest and the most calls, where every reply can be read."""
        stages = self.plan.stages
        return sum(stage.least_calls for stage in stages), sum(stage.most_calls for stage in stages)

    @property
    def usd(self) -> tuple[float, float, float] | None:
        """Dollars with the fewest calls, as expected, and with the most; ``None`` where no model has a price."""
        if all(task.usd is None for task in self.tasks):
            return None
        least = expected = most = 0.0
        for stage in self.plan.stages:
            tasks = [task for task in self.tasks if task.stage == stage.name]
            calls, usd = sum(task.calls for task in tasks), sum(task.usd or 0.0 for task in tasks)
            expected += usd
            if calls:
                least += usd * stage.least_calls / calls
                most += usd * stage.most_calls / calls
        return least, expected, most


class _Counting:
    """The embedded rules in a model's place; keeps requests with replies, by key: what is equal is asked once."""

    def __init__(self) -> None:
        self._lexical = Lexical()
        self.asked: dict[str, tuple[Request, str]] = {}

    async def complete(self, request: Request) -> Completion:
        completion = await self._lexical.complete(request)
        self.asked.setdefault(request.key(), (request, completion.text))
        return completion


class _Texts:
    """The sink of the sample: keeps the texts that agents wrote shorter than they were asked to, and who wrote them.

    ``missing`` are the characters up to the limit, by text; ``written`` the texts by event; ``stages`` the stage of
    each event, which what it schedules inherits.
    """

    def __init__(self, limits: Mapping[tuple[str, str], int], stages: dict[str, str]) -> None:
        self._limits = limits
        self.stages = stages
        self.missing: dict[str, float] = {}
        self.written: dict[str, list[str]] = {}

    def commit(self, record: Committed) -> None:
        event = record.event.id
        self.stages.update((child.id, self.stages[event]) for child in record.children)
        for version in record.versions:
            limit = self._limits.get((kind(version.agent), version.slot))
            if limit is not None:
                self.missing[version.value] = max(0.0, limit * WORD - len(version.value))
                self.written.setdefault(event, []).append(version.value)

    def prompt(self, request: Request) -> float:
        """Characters of a prompt whose limited texts are as long as they may be."""
        shown = (text for slot in request.slots.values() for text in ((slot,) if isinstance(slot, str) else slot))
        return characters(request) + sum(self.missing.get(text, 0.0) for text in shown)

    def reply(self, event: str, reply: str) -> float:
        """Characters of a reply, likewise."""
        written = dict.fromkeys(self.written.get(event, ()))  # two rounds may have written the same
        return len(reply) + sum(self.missing[text] for text in written if text in reply)


def estimate(scenario: Scenario) -> Estimate:
    """Play out a sample of a scenario's events and scale up. Raises :class:`~simengine.errors.InputError`.

    The sample is drawn by the scenario's seed, whole users at a time, so that their memories grow as they would.
    """
    planned, setup, model = plan(scenario), Setup.of(scenario), _Counting()
    own = tools(setup.scenario.method, setup.dataset, setup.scenario.seed)
    # words are compared where embeddings would cost something: what is found is about as long
    embedder = make_embedder(EmbedSettings())
    search = searching(embedder, corpora(scenario.method, setup.dataset))
    found = {"nearest": nearing(embedder), "cluster": _as_listed, "search": search, SPEAK: _speaking}
    cast = Cast(setup, Local({**found, **own}, model))
    sample = _sample(setup, cast, planned.stages)
    texts, failed = asyncio.run(_play(setup, cast, sample))
    scale = {stage.name: stage.events / max(len(sample[stage.name]), 1) for stage in planned.stages}
    sums: dict[tuple[str, str, str], list[float]] = {}
    for request, reply in model.asked.values():
        event = request.call.partition("#")[0]
        stage = texts.stages[event]
        total = sums.setdefault((stage, request.task, request.model), [0.0, 0.0, 0.0])
        for at, amount in enumerate((1.0, texts.prompt(request) / CHARACTERS, texts.reply(event, reply) / CHARACTERS)):
            total[at] += amount * scale[stage]
    prices = scenario.llm.prices
    order = {stage.name: at for at, stage in enumerate(planned.stages)}
    tasks = [
        TaskEstimate(*named, calls, prompt, reply, _usd(prices.get(named[2]), prompt, reply))
        for named, (calls, prompt, reply) in sorted(sums.items(), key=lambda entry: (order[entry[0][0]], entry[0]))
    ]
    unpriced = list(dict.fromkeys(task.model for task in tasks if task.usd is None))
    sampled = sum(map(len, sample.values()))
    return Estimate(planned, tasks, sampled, failed, unpriced, _assumptions(sampled, planned))


def _sample(setup: Setup, cast: Cast, stages: list[PlannedStage]) -> dict[str, list[Event]]:
    """The events of users drawn one by one until there are enough of them, and some of every stage."""
    counts: dict[str, Counter[str]] = {}
    for placed in setup.stages():
        for event in cast.events(placed):
            counts.setdefault(_drawn_by(event), Counter())[placed.name] += 1
    names = list(counts)
    stream(setup.scenario.seed, "estimate").shuffle(names)
    drawn: set[str] = set()
    have: Counter[str] = Counter()
    wanted = {stage.name for stage in stages if stage.events}
    for name in names:
        if have.total() >= SAMPLE and wanted <= have.keys():
            break
        drawn.add(name)
        have += counts[name]
    return {
        placed.name: [event for event in cast.events(placed) if _drawn_by(event) in drawn] for placed in setup.stages()
    }


def _drawn_by(event: Event) -> str:
    """The user in an event's footprint; an event without one, or with a crowd of them, is drawn by itself."""
    users = [agent for agent in (*event.writes, *event.reads) if kind(agent) == "user"]
    return users[0] if 0 < len(users) <= _TALKERS else event.id


async def _play(setup: Setup, cast: Cast, sample: Mapping[str, list[Event]]) -> tuple[_Texts, int]:
    """Run the sample through the engine; what was written, and how many events have failures."""
    texts = _Texts(cast.method.word_limits, {event.id: name for name, events in sample.items() for event in events})
    source: Iterator[Event] = iter(sorted((e for events in sample.values() for e in events), key=attrgetter("order")))
    rules = msgspec.structs.replace(setup.rules, stop_on_error=False)
    engine = Engine(Program(cast, Graph()), source, texts, rules)
    await engine.run(())
    return texts, engine.progress["failed"]


async def _speaking(request: Request) -> str:
    """What a person says, in a few words, as long as he may speak."""
    return "What do you recommend?"


async def _as_listed(request: Request) -> str:
    """The texts as they stand: which belong together changes no cost by much."""
    return msgspec.json.encode(list(range(len(request.slots["pool"])))).decode()


def _usd(price: Price | None, prompt: float, reply: float) -> float | None:
    return None if price is None else (prompt * price.input + reply * price.output) / _MILLION


def _assumptions(sampled: int, planned: Plan) -> list[str]:
    events = sum(stage.events for stage in planned.stages)
    return [
        f"{sampled} of {events} events were played out with rules in the model's place, and scaled up by stage",
        f"a token is {CHARACTERS:g} characters",
        f"a text with a word limit is as long as it may be, at {WORD:g} characters a word; any other text, such as an "
        "explanation, is as long as the rules write it, and a talkative model writes more",
        "every reply can be read at once: no reasoning tokens, and no call that is asked again",
    ]
