"""How many tokens a request will take: a rule before anything is known, and what was learned from usage after."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simengine.llm.request import Request, Usage

CHARACTERS = 4.0
"""Characters of a prompt that are taken for one token while nothing is known of a model's tokens."""

REPLY = 256
"""Tokens of a reply where neither the request limits them nor an earlier reply tells."""

EMBED = "embed"
"""The task of a request for the embedding of its one message, which has a prompt and no reply."""

_STEP = 0.1  # weight of the newest observation
_DOUBT_OF_RULE = 2.0  # as a part of what is estimated: some scripts have more tokens than half their characters
_LEAST_PROMPT = 500  # tokens: the estimate of a shorter prompt is too rough to accuse a server of cutting it
_FAR_FEWER = 0.5
_FEWER = 0.8


@dataclass(frozen=True)
class Need:
    """Tokens of one attempt. ``reserved`` counts the whole reply that was asked for, ``used`` the one to be expected.

    Servers differ in which of the two they hold against a limit. Both may be off by ``doubt``.
    """

    reserved: float
    used: float
    doubt: float = 0.0

    def __add__(self, other: Need) -> Need:
        return Need(self.reserved + other.reserved, self.used + other.used, self.doubt + other.doubt)

    def __sub__(self, other: Need) -> Need:
        return Need(self.reserved - other.reserved, self.used - other.used, self.doubt - other.doubt)


class _Level:
    """A running mean and mean deviation, as in TCP's estimate of round-trip times; ``high`` is rarely exceeded."""

    def __init__(self, first: float) -> None:
        self._mean = first
        self._deviation = first / 4

    def see(self, value: float) -> None:
        self._deviation += _STEP * (abs(value - self._mean) - self._deviation)
        self._mean += _STEP * (value - self._mean)

    @property
    def spread(self) -> float:
        return 2 * self._deviation

    @property
    def high(self) -> float:
        return self._mean + self.spread


class Estimator:
    """Estimates the need of requests, by model and task.

    The rule: a prompt has one token for each four characters, a reply has ``max_tokens``, or 256 where that is not
    asked for. Once a server has reported usage, both follow what it reported (mean and twice the mean deviation), and
    ``max_tokens`` remains the reply's ceiling.
    """

    def __init__(self) -> None:
        self._prompts: dict[tuple[str, str], _Level] = {}
        self._replies: dict[tuple[str, str], _Level] = {}

    def prompt(self, request: Request) -> int:
        """Tokens of the prompt alone."""
        kind, size = (request.model, request.task), characters(request)
        return math.ceil(size * self._prompts[kind].high if kind in self._prompts else size / CHARACTERS)

    def need(self, request: Request) -> Need:
        """What an attempt at this request will take."""
        kind, prompt = (request.model, request.task), self.prompt(request)
        ceiling = None if request.task == EMBED else request.sampling.max_tokens
        reply, doubt = 0, _DOUBT_OF_RULE * prompt
        if request.task != EMBED:
            reply = math.ceil(self._replies[kind].high) if kind in self._replies else ceiling or REPLY
        if kind in self._prompts:
            doubt = characters(request) * self._prompts[kind].spread
        doubt += self._replies[kind].spread if kind in self._replies else _DOUBT_OF_RULE * reply
        return Need(prompt + (ceiling or reply), prompt + min(reply, ceiling or reply), doubt)

    def learn(self, request: Request, usage: Usage) -> Need:
        """Take in what the server reported; the need as it is known now (where it said nothing: as estimated)."""
        kind, size, need = (request.model, request.task), characters(request), self.need(request)
        prompt, reply = usage.prompt_tokens, usage.completion_tokens
        if prompt is None or (reply is None and request.task != EMBED):
            return need
        _see(self._prompts, kind, prompt / max(size, 1))
        if request.task == EMBED:
            return Need(prompt, prompt)
        reply = reply or 0
        _see(self._replies, kind, reply)
        ceiling = request.sampling.max_tokens
        return Need(prompt + max(reply, ceiling or 0), prompt + reply)


def _see(levels: dict[tuple[str, str], _Level], kind: tuple[str, str], value: float) -> None:
    if kind in levels:
        levels[kind].see(value)
    else:
        levels[kind] = _Level(value)


def characters(request: Request) -> int:
    """Characters of all messages."""
    return sum(len(message.content) for message in request.messages)


def was_cut(request: Request, usage: Usage) -> bool:
    """True where a server reports so few prompt tokens that it must have cut the prompt without a word.

    That is: fewer than half of one for each four characters; or fewer than four fifths, where prompt (with or without
    reply) makes exactly a power of two, as a context that is full does.
    """
    told, expected = usage.prompt_tokens, characters(request) / CHARACTERS
    if not told or expected < _LEAST_PROMPT:
        return False
    full = _is_power(told) or _is_power(told + (usage.completion_tokens or 0))
    return told < expected * (_FEWER if full else _FAR_FEWER)


def _is_power(number: int) -> bool:
    return number >= 256 and number & (number - 1) == 0
