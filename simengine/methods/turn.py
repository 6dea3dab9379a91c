"""How an agent acts: it asks the model, tells others, remembers. Here, and only here, a reply becomes a memory."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar, cast

import msgspec
import structlog

from simengine.errors import CallFailed, UnitFailed
from simengine.kernel import Call, Context, Version
from simengine.llm.layers.local import LOCAL
from simengine.llm.prompts import PromptBook, Rendered, Slot
from simengine.llm.replies import Unreadable, require_whole
from simengine.llm.request import Completion, LanguageModel, Message, Request, Sampling
from simengine.llm.task import Json, Task
from simengine.world import Message as Said

log = structlog.get_logger("simengine")

T = TypeVar("T")
Causes = Sequence[str | Version]
NEAREST, CLUSTERS = f"{LOCAL}embed", f"{LOCAL}kmeans"
"""The local models that tell which texts are near, and which belong together."""
OverLimit = Literal["keep", "reask", "cut"]
_CUTTABLE = ("memory", "fused", "separate", "others", "views", "retrieved", "history", "options")


class Fit(Generic[T]):
    """How long an answer of one or several texts may be, and what happens to a longer one.

    ``keep`` takes it as it is, ``reask`` asks once for a shorter one and takes what comes, ``cut`` drops the words
    behind the limit.
    """

    def __init__(self, words: int, over: OverLimit) -> None:
        self.words = words
        self.over = over

    def longest(self, answer: T) -> int:
        """The number of words of the longest text."""
        return max(len(text.split()) for text in _texts(answer))

    def cut(self, answer: T) -> T:
        """The first words of each text, with their spaces and line breaks."""
        texts = tuple(self._cut(text) for text in _texts(answer))
        return cast(T, texts if isinstance(answer, tuple) else texts[0])

    def _cut(self, text: str) -> str:
        return _first_words(text, self.words)


@dataclass
class _Asked(Generic[T]):
    """A task under way: the slots that are shown and the prompt made of them; ``cut`` once they were shortened."""

    task: Task[T]
    slots: Mapping[str, Slot]
    prompt: Rendered
    json: Json[T] | None
    cut: bool = False

    def read(self, completion: Completion) -> T:
        require_whole(completion.text, completion.finish_reason)
        return (self.json or self.task).read(completion.text, self.slots)


class Asker:
    """Asks a model for tasks: renders, calls, reads; asks once more where the reply is unreadable or was cut short.

    ``sampling`` gives model and parameters for a task's name, ``json`` says whether its answer is asked for as JSON. A
    reply that cannot be read twice is a :class:`UnitFailed` with the parser's reason: no guess is ever taken for an
    answer. A prompt that is longer than the model's context is shortened once, see :func:`shortened`.
    """

    def __init__(
        self,
        model: LanguageModel,
        prompts: PromptBook,
        noun: str,
        sampling: Callable[[str], tuple[str, Sampling]],
        json: Callable[[str], bool],
    ) -> None:
        self._model = model
        self._prompts = prompts
        self._noun = noun
        self._sampling = sampling
        self._json = json

    def text(self, template: str, slots: Mapping[str, str]) -> str:
        """A plain text from a template, an agent's first memory for instance."""
        return self._prompts.text(template, slots, self._noun)

    async def ask(self, context: Context, task: Task[T], slots: Mapping[str, Slot], fit: Fit[T] | None = None) -> T:
        """The model's answer to a task, in the branch of ``context``, whose name is the call's name.

        ``fit`` bounds the words of an answer that is text; see :class:`Fit`.
        """
        json = task.json if self._json(task.name) else None
        asked = _Asked(task, slots, self._render(task, slots, json), json)
        completion = await self._call(context, asked, "")
        try:
            answer = asked.read(completion)
        except Unreadable as unreadable:
            completion = await self._again(context, asked, completion, unreadable)
            try:
                answer = asked.read(completion)
            except Unreadable as again:
                raise UnitFailed(
                    f"the reply to {task.name} cannot be read: {again.detail}",
                    reason=again.reason,
                    event=context.event.id,
                ) from again
        if fit is None or fit.longest(answer) <= fit.words or fit.over == "keep":
            return answer
        if fit.over == "cut":
            return fit.cut(answer)
        limit = {"limit": str(fit.words)}
        correction = self.text("shorter", {"words": str(fit.longest(answer)), **limit})
        asked.prompt = replace(asked.prompt, slots={**asked.prompt.slots, **limit})  # the correction says it at least
        completion = await self._call(context, asked, "shorter", (completion.text, correction))
        try:
            return asked.read(completion)
        except Unreadable:
            return answer  # it was readable before, and only too long

    def _render(self, task: Task[T], slots: Mapping[str, Slot], json: Json[T] | None) -> Rendered:
        return self._prompts.render(task.template, slots, self._noun, json.form.ask if json else "")

    async def nearest(self, context: Context, query: str, pool: Sequence[str], name: str = "nearest") -> list[int]:
        """Positions in ``pool``, the text nearest to ``query`` first, by the scenario's embeddings.

        The outcome is recorded as a call's is, so that a replay on another machine goes by the same order.
        """
        return await self._computed(context, name, "nearest", NEAREST, {"query": query, "pool": tuple(pool)})

    async def clusters(self, context: Context, pool: Sequence[str], count: int, name: str = "cluster") -> list[int]:
        """For each text of ``pool`` the number of its cluster, of at most ``count``, by the scenario's embeddings.

        The outcome is recorded as that of :meth:`nearest` is.
        """
        return await self._computed(context, name, "cluster", CLUSTERS, {"pool": tuple(pool), "count": str(count)})

    async def compute(self, context: Context, name: str, task: str, model: str, slots: Mapping[str, Slot]) -> str:
        """The answer of a local model, which :mod:`simengine.llm.layers.local` tells of; recorded as a call's is."""

        def run(call: Call) -> Awaitable[tuple[Completion, str]]:
            sampling = Sampling(temperature=0.0)
            return self._complete(Request(task, model, (), sampling, slots, call.id, 0, call.priority))

        return (await context.effect(run, name)).text

    async def _computed(
        self, context: Context, name: str, task: str, model: str, slots: Mapping[str, Slot]
    ) -> list[int]:
        numbers: list[int] = msgspec.json.decode(await self.compute(context, name, task, model, slots), type=list[int])
        return numbers

    async def _again(
        self, context: Context, asked: _Asked[T], completion: Completion, unreadable: Unreadable
    ) -> Completion:
        """The second try: with twice the tokens where the reply ended at its limit, else with a correction."""
        _, sampling = self._sampling(asked.task.name)
        if unreadable.reason == "truncated" and sampling.max_tokens is not None:
            return await self._call(context, asked, "longer", max_tokens=2 * sampling.max_tokens)
        correction = self.text("reask", {"reason": unreadable.reason, "detail": unreadable.detail})
        return await self._call(context, asked, "reask", (completion.text, correction))

    async def _call(
        self,
        context: Context,
        asked: _Asked[T],
        name: str,
        said: tuple[str, str] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """One call, or two where the first ends at the model's context: the second asks with what is shown cut.

        ``said`` are a reply that the prompt has had already and what is to be corrected about it.
        """
        try:
            return await self._send(context, asked, name, said, max_tokens)
        except CallFailed as failed:
            if failed.reason != "context" or asked.cut or not self._cut(context, asked):
                raise
        return await self._send(context, asked, "/".join(filter(None, (name, "cut"))), said, max_tokens)

    def _cut(self, context: Context, asked: _Asked[T]) -> bool:
        """Shorten what is shown, for this and all further calls of the task; whether there was anything to shorten."""
        slots, slot = shortened(asked.slots)
        if not slot:
            return False
        before, after = _words(asked.slots[slot]), _words(slots[slot])
        log.warning("prompt cut", where=context.event.id, task=asked.task.name, slot=slot, words=before, kept=after)
        asked.slots, asked.prompt, asked.cut = slots, self._render(asked.task, slots, asked.json), True
        return True

    async def _send(
        self, context: Context, asked: _Asked[T], name: str, said: tuple[str, str] | None, max_tokens: int | None
    ) -> Completion:
        model, sampling = self._sampling(asked.task.name)
        if max_tokens is not None:
            sampling = msgspec.structs.replace(sampling, max_tokens=max_tokens)
        task, prompt = asked.task.name, asked.prompt
        messages = prompt.messages if said is None else _corrected(prompt.messages, *said)
        schema = asked.json.form.schema if asked.json else ""

        def run(call: Call) -> Awaitable[tuple[Completion, str]]:
            slots = prompt.slots
            return self._complete(Request(task, model, messages, sampling, slots, call.id, 0, call.priority, schema))

        return await context.effect(run, name)

    async def _complete(self, request: Request) -> tuple[Completion, str]:
        completion = await self._model.complete(request)
        reply = hashlib.blake2b(completion.text.encode(), digest_size=8).hexdigest()
        return completion, f"{request.key()} {reply}"


def tell(context: Context, sender: str, recipient: str, kind: str, body: object, because: Causes) -> str:
    """Send a message; returns its id, which others may name as a cause."""
    return context.note(Said(sender, recipient, kind, body), because=because)


def remember(context: Context, agent: str, slot: str, value: object, because: Causes) -> Version:
    """Replace what an agent keeps in a slot: a text, or plain data."""
    return context.write(agent, slot, value, because=because)


def keep(context: Context, agent: str, slot: str, text: str, because: Causes) -> Version:
    """Add an entry to a slot in which an agent keeps everything."""
    return context.append(agent, slot, text, because=because)


def shortened(slots: Mapping[str, Slot]) -> tuple[dict[str, Slot], str]:
    """The slots with the longest part of what agents remember cut to its half, and the name of the slot that was cut.

    Cut is the one with the most words (the first named of equals) of the memories, ``views``, ``retrieved``,
    ``history``, ``options`` that can be: of ``history`` the older half of the entries, of each text of the others the
    second half of its words, since what is newest comes first, and descriptions begin with what an item is. Titles and
    instructions are never cut. The name is empty where nothing could be cut.
    """
    there = [name for name in _CUTTABLE if name in slots]
    for name in sorted(there, key=lambda name: -_words(slots[name])):
        if (cut := _halved(name, slots[name])) != slots[name]:
            return {**slots, name: cut}, name
    return dict(slots), ""


def _halved(name: str, value: Slot) -> Slot:
    if isinstance(value, str):
        return _first_words(value, math.ceil(_words(value) / 2))
    if name == "history":
        return value[len(value) // 2 :]
    return tuple(_first_words(text, math.ceil(_words(text) / 2)) for text in value)


def _words(value: Slot) -> int:
    return sum(len(text.split()) for text in _texts(value))


def _first_words(text: str, count: int) -> str:
    """The beginning of a text, with its spaces and line breaks; all of it where it has no more words."""
    ends = [found.end() for found in re.finditer(r"\S+", text)]
    return text[: ends[count - 1]] if 0 < count < len(ends) else text


def _texts(answer: object) -> tuple[str, ...]:
    return answer if isinstance(answer, tuple) else (str(answer),)


def _corrected(messages: tuple[Message, ...], reply: str, correction: str) -> tuple[Message, ...]:
    """The prompt, the reply and the correction; an empty reply is left out, since servers refuse empty messages."""
    if reply.strip():
        return (*messages, Message("assistant", reply), Message("user", correction))
    last = messages[-1]
    return (*messages[:-1], Message(last.role, f"{last.content}\n\n{correction}"))
