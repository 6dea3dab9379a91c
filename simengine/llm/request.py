"""What goes to a language model and what comes back: plain, frozen values and the one seam between them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Protocol

import msgspec


class Message(msgspec.Struct, frozen=True):
    """One chat message."""

    role: str
    content: str


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sampling parameters as asked for. ``None`` means *not sent*, which is not the same as any value."""

    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None

    @property
    def deterministic(self) -> bool:
        """True where equal requests may share one answer: temperature asked for and exactly zero."""
        return self.temperature == 0


class Request(msgspec.Struct, frozen=True):
    """One call to a model.

    ``task`` names what is asked (``choose``, ``reflect.user``, ``reflect.item``, ``rank``); ``slots`` are the neutral
    values that the messages were rendered from, as far as they appear in the rendered text: a text or a list of texts
    each. ``call`` is the call's stable id inside the run, ``repeat`` numbers the samples of one call, ``priority``
    orders waiting calls (greater first). These three are not what is asked, but who asks. ``schema`` is the JSON schema
    that the answer is to keep to, as text; it is empty where the answer is asked for as plain text.
    """

    task: str
    model: str
    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    slots: Mapping[str, str | tuple[str, ...]] = {}
    call: str = ""
    repeat: int = 0
    priority: float = 0.0
    schema: str = ""

    def key(self) -> str:
        """The journal key: a digest of the logical request, and of the asker where sampling is not deterministic."""
        asker = () if self.sampling.deterministic else (self.call, self.repeat)
        logical = [self.task, self.model, self.messages, self.sampling, sorted(self.slots.items()), asker]
        if self.schema:  # not otherwise, so that journals from before there were schemas keep their keys
            logical.append(self.schema)
        return hashlib.blake2b(msgspec.json.encode(logical), digest_size=16).hexdigest()


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one call as the server reported them; ``None`` where it did not."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


class Completion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's answer. ``reasoning`` is kept apart from ``text`` and is never taken for the answer."""

    text: str
    finish_reason: str = "stop"
    usage: Usage = Usage()
    reasoning: str = ""
    model: str = ""
    attempts: int = 1
    sent: str = ""


class LanguageModel(Protocol):
    """The only seam to language models.

    ``complete`` returns a :class:`Completion`, raises :class:`~simengine.errors.CallFailed` for a terminal outcome of
    this call (it is recorded and repeated on replay), or :class:`~simengine.errors.RunStopped` where the run must end.
    """

    async def complete(self, request: Request) -> Completion: ...
