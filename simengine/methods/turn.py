"""How an agent acts: it asks the model, tells others, remembers. Here, and only here, a reply becomes a memory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, Literal, TypeVar, cast

import msgspec

from simengine.errors import UnitFailed
from simengine.kernel import Call, Context, Version
from simengine.llm.prompts import PromptBook, Rendered, Slot
from simengine.llm.replies import Unreadable, require_whole
from simengine.llm.request import Completion, LanguageModel, Message, Request, Sampling
from simengine.llm.task import Task
from simengine.world import Message as Said

T = TypeVar("T")
Causes = Sequence[str | Version]
OverLimit = Literal["keep", "reask", "cut"]


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
        ends = [found.end() for found in re.finditer(r"\S+", text)]
        return text[: ends[self.words - 1]] if len(ends) > self.words else text


class Asker:
    """Asks a model for tasks: renders, calls, reads; asks once more where the reply is unreadable or was cut short.

    ``sampling`` gives model and parameters for a task's name. A reply that cannot be read twice is a
    :class:`UnitFailed` with the parser's reason: no guess is ever taken for an answer.
    """

    def __init__(
        self, model: LanguageModel, prompts: PromptBook, noun: str, sampling: Callable[[str], tuple[str, Sampling]]
    ) -> None:
        self._model = model
        self._prompts = prompts
        self._noun = noun
        self._sampling = sampling

    def text(self, template: str, slots: Mapping[str, str]) -> str:
        """A plain text from a template, an agent's first memory for instance."""
        return self._prompts.text(template, slots, self._noun)

    async def ask(self, context: Context, task: Task[T], slots: Mapping[str, Slot], fit: Fit[T] | None = None) -> T:
        """The model's answer to a task, in the branch of ``context``, whose name is the call's name.

        ``fit`` bounds the words of an answer that is text; see :class:`Fit`.
        """
        prompt = self._prompts.render(task.template, slots, self._noun)
        completion = await self._call(context, task, prompt.messages, prompt.slots, "")
        try:
            answer = _read(task, completion, slots)
        except Unreadable as unreadable:
            completion = await self._again(context, task, prompt, completion, unreadable)
            try:
                answer = _read(task, completion, slots)
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
        correction = self.text("shorter", {"words": str(fit.longest(answer)), "limit": str(fit.words)})
        messages = _corrected(prompt.messages, completion.text, correction)
        completion = await self._call(context, task, messages, prompt.slots, "shorter")
        try:
            return _read(task, completion, slots)
        except Unreadable:
            return answer  # it was readable before, and only too long

    async def _again(
        self, context: Context, task: Task[T], prompt: Rendered, completion: Completion, unreadable: Unreadable
    ) -> Completion:
        """The second try: with twice the tokens where the reply ended at its limit, else with a correction."""
        _, sampling = self._sampling(task.name)
        if unreadable.reason == "truncated" and sampling.max_tokens is not None:
            return await self._call(context, task, prompt.messages, prompt.slots, "longer", 2 * sampling.max_tokens)
        correction = self.text("reask", {"reason": unreadable.reason, "detail": unreadable.detail})
        messages = _corrected(prompt.messages, completion.text, correction)
        return await self._call(context, task, messages, prompt.slots, "reask")

    async def _call(
        self,
        context: Context,
        task: Task[T],
        messages: tuple[Message, ...],
        slots: Mapping[str, Slot],
        name: str,
        max_tokens: int | None = None,
    ) -> Completion:
        model, sampling = self._sampling(task.name)
        if max_tokens is not None:
            sampling = msgspec.structs.replace(sampling, max_tokens=max_tokens)

        def run(call: Call) -> Awaitable[tuple[Completion, str]]:
            return self._complete(Request(task.name, model, messages, sampling, slots, call.id, 0, call.priority))

        return await context.effect(run, name)

    async def _complete(self, request: Request) -> tuple[Completion, str]:
        completion = await self._model.complete(request)
        reply = hashlib.blake2b(completion.text.encode(), digest_size=8).hexdigest()
        return completion, f"{request.key()} {reply}"


def tell(context: Context, sender: str, recipient: str, kind: str, body: object, because: Causes) -> str:
    """Send a message; returns its id, which others may name as a cause."""
    return context.note(Said(sender, recipient, kind, body), because=because)


def remember(context: Context, agent: str, slot: str, text: str, because: Causes) -> Version:
    """Replace what an agent keeps in a slot."""
    return context.write(agent, slot, text, because=because)


def keep(context: Context, agent: str, slot: str, text: str, because: Causes) -> Version:
    """Add an entry to a slot in which an agent keeps everything."""
    return context.append(agent, slot, text, because=because)


def _texts(answer: object) -> tuple[str, ...]:
    return answer if isinstance(answer, tuple) else (str(answer),)


def _read(task: Task[T], completion: Completion, slots: Mapping[str, Slot]) -> T:
    require_whole(completion.text, completion.finish_reason)
    return task.read(completion.text, slots)


def _corrected(messages: tuple[Message, ...], reply: str, correction: str) -> tuple[Message, ...]:
    """The prompt, the reply and the correction; an empty reply is left out, since servers refuse empty messages."""
    if reply.strip():
        return (*messages, Message("assistant", reply), Message("user", correction))
    last = messages[-1]
    return (*messages[:-1], Message(last.role, f"{last.content}\n\n{correction}"))
