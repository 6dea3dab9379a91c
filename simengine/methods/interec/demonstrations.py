"""Requests with the plans that serve them, of our own writing, to be shown beside requests like them (section 3.3).

A plan says by its tools and inputs what to do; the names in it are made up, and no catalogue holds them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from simengine.kernel import Context
from simengine.methods.interec import reply
from simengine.methods.interec.plan import Plan
from simengine.methods.turn import Asker


class Pair(msgspec.Struct, frozen=True):
    """A request and the plan that serves it."""

    request: str
    plan: Plan


_SEED: tuple[tuple[str, list[tuple[str, dict[str, Any]]]], ...] = (
    ("Thank you very much, that is all for now.", []),
    ("Hello! How are you today?", []),
    (
        "I have enjoyed Iron Tide and Lantern Road. What would you recommend to me?",
        [
            ("rank", {"by": "preference", "liked": ["Iron Tide", "Lantern Road"]}),
            ("fetch", {"n": 5}),
        ],
    ),
    (
        "I have enjoyed Iron Tide and Lantern Road. I am looking for something with: Sea Stories.",
        [
            ("hard_filter", {"sql": "SELECT id FROM candidates WHERE tags LIKE '%|Sea Stories|%'"}),
            ("rank", {"by": "preference", "liked": ["Iron Tide", "Lantern Road"]}),
            ("fetch", {"n": 5}),
        ],
    ),
    (
        "None of these. I am looking for something with: Sea Stories and quiet music.",
        [
            (
                "hard_filter",
                {"sql": "SELECT id FROM candidates WHERE tags LIKE '%|Sea Stories|%' AND tags LIKE '%|Quiet Music|%'"},
            ),
            ("rank", {"by": "popularity", "unwanted": ["Iron Tide"]}),
            ("fetch", {"n": 5}),
        ],
    ),
    (
        "Something like Iron Tide, please, but not Iron Tide itself.",
        [
            ("soft_filter", {"titles": ["Iron Tide"]}),
            ("rank", {"by": "similarity", "unwanted": ["Iron Tide"]}),
            ("fetch", {"n": 5}),
        ],
    ),
    (
        "Which are the most popular ones that came out after 2015?",
        [
            ("hard_filter", {"sql": "SELECT id FROM candidates WHERE release_date > '2015'"}),
            ("rank", {"by": "popularity"}),
            ("fetch", {"n": 5}),
        ],
    ),
    (
        "How much is Lantern Road, and when did it come out?",
        [("look_up", {"sql": "SELECT title, price, release_date FROM items WHERE title = 'Lantern Road'"})],
    ),
    (
        "I want something that came out before Lantern Road, for less than ten.",
        [
            ("look_up", {"sql": "SELECT release_date FROM items WHERE title = 'Lantern Road'"}),
            ("hard_filter", {"sql": "SELECT id FROM candidates WHERE release_date < $1.release_date AND price < 10"}),
            ("rank", {"by": "popularity"}),
            ("fetch", {"n": 5}),
        ],
    ),
    (
        "Here is my list: Iron Tide, Lantern Road, Paper Moon. Which of them should I take first?",
        [
            ("store", {"titles": ["Iron Tide", "Lantern Road", "Paper Moon"]}),
            ("rank", {"by": "popularity"}),
            ("fetch", {"n": 3}),
        ],
    ),
    (
        "I do not like Paper Moon. Show me something cheap that others take.",
        [
            ("hard_filter", {"sql": "SELECT id FROM candidates WHERE price < 5"}),
            ("rank", {"by": "popularity", "unwanted": ["Paper Moon"]}),
            ("fetch", {"n": 5}),
        ],
    ),
)  # fmt: skip


def _pair(request: str, steps: Sequence[tuple[str, dict[str, Any]]]) -> Pair:
    written = [{"tool": tool, "input": given} for tool, given in steps]
    return Pair(request, reply.read(json.dumps({"thought": "", "steps": written})))


SEED: tuple[Pair, ...] = tuple(_pair(request, steps) for request, steps in _SEED)
"""The pairs of our own writing."""


class Demonstrations:
    """The pairs that can be shown: the seed set, and behind it ``more``. ``requests`` are theirs, to be found by."""

    def __init__(self, more: Sequence[Pair] = ()) -> None:
        self._pairs = (*SEED, *more)
        self.requests = tuple(pair.request for pair in self._pairs)

    async def near(self, context: Context, asker: Asker, request: str, count: int) -> tuple[str, ...]:
        """The pairs nearest to a request, as prompts show them; none where the nearest cannot be told."""
        if not count:
            return ()

        async def find(inner: Context) -> list[int]:
            return await asker.nearest(inner, request, self.requests)

        found = await context.unit("nearest", find)
        return self.shown(found.value[:count]) if found.ok else ()

    def shown(self, at: Sequence[int]) -> tuple[str, ...]:
        """The pairs at these places, as a prompt shows them: the request, then the plan as a reply holds it."""
        return tuple(f"Request: {self._pairs[it].request}\nPlan: {reply.write(self._pairs[it].plan)}" for it in at)
