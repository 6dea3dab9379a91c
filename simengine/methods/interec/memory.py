"""What a recommender still knows of a talk: what its window holds, and of what came before a profile (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import msgspec

from simengine.kernel import Agent, Context, Version
from simengine.llm.tokens import CHARACTERS
from simengine.methods.interec.profile import Profile
from simengine.methods.interec.tasks import DISTIL
from simengine.methods.turn import Asker, keep, remember

DIALOGUE, PROFILE, LONG_TERM = "dialogue", "profile", "long_term"
"""Slots of a conversation's venue: accepted exchanges, two lines each; what was learnt of the user in each of them; and
what is left of those that are out of the window."""
USER, RECOMMENDER = "User: ", "Recommender: "
"""How the lines of a dialogue begin."""
PIECES = 3
"""Parts that are distilled in one turn, at most: the first ones."""
LINES = 2
"""Lines of an exchange: what the user said, and the reply."""


def accept(
    context: Context, venue: Agent, exchange: tuple[str, str], because: tuple[str, str], learnt: Profile | None = None
) -> None:
    """Keep an exchange, what the user said and the reply, with what was ``learnt`` of the user in it."""
    for speaker, text, cause in zip((USER, RECOMMENDER), exchange, because, strict=True):
        keep(context, venue, DIALOGUE, f"{speaker}{text}", because=[cause])
    keep(context, venue, PROFILE, msgspec.to_builtins(learnt or Profile()), because=because)


class LongTerm(msgspec.Struct, frozen=True):
    """What the first ``exchanges`` of a talk have told of the user."""

    profile: Profile = Profile()
    exchanges: int = 0


class Recalled(msgspec.Struct, frozen=True):
    """The lines that fit the window, oldest first; what is known of the user by now; the versions that say so."""

    lines: tuple[str, ...]
    profile: Profile
    versions: tuple[Version, ...]


class Memory:
    """What one method's recommenders recall.

    ``window`` is the number of tokens that a prompt has for the dialogue, at four characters each. What does not fit is
    forgotten, the oldest exchange first. With ``long_term``, the dialogue is parted when it overflows: the model is
    asked what the older part tells of the user, piece by piece where it is longer than the window, and that is merged
    with what was known, the newer holding where two conflict. The newest half of a window is left.
    """

    def __init__(self, asker: Asker, window: int, *, long_term: bool) -> None:
        self._asker = asker
        self._window = window
        self._long_term = long_term

    async def recall(self, context: Context, venue: Agent) -> Recalled:
        """What is recalled at this turn. Of what no model can make a profile, it is asked again in the next turn."""
        said = await context.entries(venue, DIALOGUE, by=venue)
        learnt = await context.entries(venue, PROFILE, by=venue)
        lines = [str(entry.value) for entry in said]
        kept, long = await self._older(context, venue, said)
        first = max(long.exchanges, _first(lines, self._window))
        known = [msgspec.convert(entry.value, Profile) for entry in learnt[first:]]
        profile = reduce(Profile.merged, known, long.profile)
        return Recalled(tuple(lines[LINES * first :]), profile, (*kept, *learnt[first:], *said[LINES * first :]))

    async def _older(self, context: Context, venue: Agent, said: Sequence[Version]) -> tuple[list[Version], LongTerm]:
        """What is known of the exchanges that are out of the window, and the version that holds it."""
        if not self._long_term:
            return [], LongTerm()
        kept = (await context.entries(venue, LONG_TERM, by=venue))[-1:]
        long = msgspec.convert(kept[-1].value, LongTerm) if kept else LongTerm()
        lines = [str(entry.value) for entry in said]
        for piece, (first, end) in enumerate(_pieces(lines, long.exchanges, self._window), 1):
            asked = await context.unit(
                f"distil/{piece}", partial(self._distil, lines=lines[LINES * first : LINES * end])
            )
            if not asked.ok:
                break
            long = LongTerm(long.profile.merged(asked.value), end)
            because = [*kept, *said[LINES * first : LINES * end]]
            kept = [remember(context, venue, LONG_TERM, msgspec.to_builtins(long), because=because)]
        return kept, long

    async def _distil(self, context: Context, lines: Sequence[str]) -> Profile:
        return await self._asker.ask(context, DISTIL, {"dialogue": tuple(lines)})


def _first(lines: Sequence[str], window: int) -> int:
    """The first of the newest exchanges that fit the window together; the last one is always kept."""
    exchanges, tokens = len(lines) // LINES, 0.0
    for at in reversed(range(exchanges)):
        tokens += _tokens(lines, at)
        if tokens > window and at < exchanges - 1:
            return at + 1
    return 0


def _pieces(lines: Sequence[str], first: int, window: int) -> list[tuple[int, int]]:
    """The parts to be distilled, none longer than the window where its exchanges are not; none where all fits."""
    if sum(_tokens(lines, at) for at in range(first, len(lines) // LINES)) <= window:
        return []
    end, pieces, tokens = max(first, _first(lines, window // 2)), [], 0.0
    for at in range(first, end):
        size = _tokens(lines, at)
        if tokens and tokens + size > window:
            pieces.append((first, at))
            first, tokens = at, 0.0
        tokens += size
    return [*pieces, (first, end)][:PIECES] if first < end else pieces[:PIECES]


def _tokens(lines: Sequence[str], exchange: int) -> float:
    return sum(len(line) for line in lines[LINES * exchange : LINES * exchange + LINES]) / CHARACTERS
