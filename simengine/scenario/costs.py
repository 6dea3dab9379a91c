"""What a run's model calls came to, read from its journal: tokens, dollars, what was cut, what prefixes share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import takewhile
from operator import eq

import msgspec

from simengine.llm import CallStore, Completion, LLMSettings, Request, Stats
from simengine.llm.backends.refuse import Refuse
from simengine.llm.calls import Row
from simengine.llm.layers.budget import Budget, Spending
from simengine.llm.layers.local import LOCAL
from simengine.llm.tokens import Estimator, characters, was_cut


class Costs(msgspec.Struct, frozen=True):
    """What the journal holds: calls by task, attempts, tokens as far as servers reported them.

    ``computed`` ones were no calls of a model but computations done here. ``reused`` calls were answered from the
    journals of other runs; their tokens are not counted again. ``unmetered`` answers came without a full report of
    tokens. ``spending`` is what language models were paid for, tokens that were not reported estimated, dollars of
    models with a price; the embedded rules cost nothing. ``cached_tokens`` of the prompts came from a server's cache,
    as far as servers say so. ``cut`` prompts must have been cut by the server. ``shared_prefix`` is, by task, the part
    of all prompts' characters that a cache of prefixes could have served: that stand in the beginning which all prompts
    of one task and system text share, and were there before (for tasks that were asked more than once). ``refused``
    attempts met a limit of the server (status 429) and ``resent`` ones were sent again at once, both since the run was
    last taken up.
    """

    calls: dict[str, int]
    reused: int
    attempts: int
    prompt_tokens: int
    completion_tokens: int
    unmetered: int
    spending: Spending = Spending()
    cached_tokens: int = 0
    cut: int = 0
    shared_prefix: dict[str, float] = {}
    refused: int = 0
    resent: int = 0
    computed: int = 0


class _Prefix:
    """The beginning that all prompts of a task and system text share, over the prompts seen so far."""

    def __init__(self, request: Request) -> None:
        self._shared = _text(request)
        self.characters = 0
        self.prompts = 0

    def see(self, request: Request) -> None:
        text = _text(request)
        if not text.startswith(self._shared):
            same = takewhile(bool, map(eq, self._shared, text))
            self._shared = text[: sum(same)]
        self.characters += characters(request)
        self.prompts += 1

    @property
    def served(self) -> int:
        """Characters that a cache could have served: those of the beginning, for all prompts but the first."""
        return len(self._shared) * (self.prompts - 1)


def costs_of(store: CallStore, settings: LLMSettings, stats: Stats) -> Costs:
    """Sum up a journal. ``settings`` give the prices, ``stats`` what no journal holds."""
    calls: Counter[str] = Counter()
    prefixes: dict[str, dict[str, _Prefix]] = {}
    attempts = reused = prompt = completion = cached = unmetered = cut = computed = 0
    for row in store:
        if row.request.model.startswith(LOCAL):
            computed += 1
            continue
        task = row.request.task
        calls[task] += 1
        system = "".join(message.content for message in row.request.messages if message.role == "system")
        prefixes.setdefault(task, {}).setdefault(system, _Prefix(row.request)).see(row.request)
        attempts += row.outcome.attempts
        if row.outcome.attempts == 0:
            reused += 1
        elif isinstance(row.outcome, Completion):
            usage = row.outcome.usage
            unmetered += usage.prompt_tokens is None or usage.completion_tokens is None
            prompt += usage.prompt_tokens or 0
            completion += usage.completion_tokens or 0
            cached += usage.cached_tokens or 0
            cut += was_cut(row.request, usage)
    paid = (row for row in store if not _is_embedded(row))
    return Costs(
        calls=dict(sorted(calls.items())),
        reused=reused,
        attempts=attempts,
        prompt_tokens=prompt,
        completion_tokens=completion,
        unmetered=unmetered,
        spending=Budget(Refuse(), settings.budget, settings.prices, Estimator(), paid).spent,
        cached_tokens=cached,
        cut=cut,
        shared_prefix={task: _shared(found.values()) for task, found in sorted(prefixes.items()) if calls[task] > 1},
        refused=stats.refused,
        resent=stats.resent,
        computed=computed,
    )


def _shared(prefixes: Collection[_Prefix]) -> float:
    whole = sum(prefix.characters for prefix in prefixes)
    return round(sum(prefix.served for prefix in prefixes) / max(whole, 1), 3)


def _is_embedded(row: Row) -> bool:
    return isinstance(row.outcome, Completion) and row.outcome.model == "lexical"


def _text(request: Request) -> str:
    return "".join(message.content for message in request.messages)
