"""Reads replies of the OpenAI protocol (chat, text completions, embeddings) from whatever fields a server filled.

What a reply cannot be read for is :class:`CallFailed` with a reason of its own; missing counts are unknown, not zero.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Sequence
from typing import Any

from simengine.errors import CallFailed
from simengine.llm.request import Completion, Usage


def read_chat(raw: dict[str, Any], sent: str, reasoning_as_answer: bool) -> Completion:
    """The completion in the reply to a chat request."""
    choices = raw.get("choices")
    choice = _mapping(choices[0] if isinstance(choices, list) and choices else None)
    message = _mapping(choice.get("message"))
    text = _text(message.get("content"))
    reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    finish = _text(choice.get("finish_reason")) or "unknown"
    if finish == "content_filter" and not text:
        raise CallFailed("the server's content filter withheld the answer", reason="filtered")
    if message.get("tool_calls") and not text:
        finish = "tool_calls"  # some servers say "stop" of an answer that is nothing but a call of a tool
    if reasoning_as_answer and not text:
        text = reasoning
    model = _text(raw.get("model"))
    return Completion(text, finish, _usage(raw), reasoning, model, sent=sent)


def read_completions(raw: dict[str, Any], prompts: Sequence[str], sent: Sequence[str]) -> tuple[Completion, ...]:
    """The completions of some prompts, in their order. The reply's one count of tokens is shared out by length."""
    texts, finishes = [], []
    for choice in _in_order(raw.get("choices"), len(prompts), "choices"):
        texts.append(_text(choice.get("text")))
        finishes.append(_text(choice.get("finish_reason")) or "unknown")
    model, usages = _text(raw.get("model")), _shares(_usage(raw), prompts, texts)
    whole = zip(texts, finishes, usages, sent, strict=True)
    answers = tuple(Completion(text, finish, usage, "", model, sent=body) for text, finish, usage, body in whole)
    if len(answers) == 1 and finishes[0] == "content_filter" and not texts[0]:
        raise CallFailed("the server's content filter withheld the answer", reason="filtered")
    return answers


def read_embeddings(raw: dict[str, Any], texts: Sequence[str], sent: Sequence[str]) -> tuple[Completion, ...]:
    """The embeddings of some texts, in their order, each packed (see :func:`pack`) as a completion's text."""
    vectors = [_vector(item.get("embedding")) for item in _in_order(raw.get("data"), len(texts), "embeddings")]
    if len({len(vector) for vector in vectors}) > 1:
        raise _no_embedding("embeddings of one reply differ in width")
    model, usages = _text(raw.get("model")), _shares(_usage(raw), texts, [""] * len(texts))
    whole = zip(vectors, usages, sent, strict=True)
    return tuple(Completion(pack(vector), "stop", usage, "", model, sent=body) for vector, usage, body in whole)


def pack(vector: Sequence[float]) -> str:
    """A vector as text: base64 of its 32-bit floats, little-endian."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def unpack(text: str) -> tuple[float, ...]:
    """The vector that :func:`pack` wrote. Raises :class:`ValueError` for anything else."""
    try:
        raw = base64.b64decode(text, validate=True)
        return struct.unpack(f"<{len(raw) // 4}f", raw)
    except (binascii.Error, struct.error) as error:
        raise ValueError(f"no packed vector: {error}") from error


def _vector(said: object) -> tuple[float, ...]:
    """An embedding from numbers or from packed text: some servers send the one where they are asked for the other."""
    try:
        if isinstance(said, str):
            vector = unpack(said)
        else:
            vector = tuple(float(number) for number in said) if isinstance(said, list) else ()
    except (ValueError, TypeError) as error:
        raise _no_embedding(f"an embedding cannot be read: {error}") from None
    if not vector:
        raise _no_embedding("an embedding is empty")
    if not any(vector) or not all(map(math.isfinite, vector)):
        raise _no_embedding("an embedding is all zeros, or holds what is no number")
    return vector


def _no_embedding(problem: str) -> CallFailed:
    return CallFailed(problem, reason="embedding", remedy="see whether the model that is served makes embeddings")


def _in_order(items: object, count: int, what: str) -> list[dict[str, Any]]:
    """The items of a reply by their ``index`` (by position, where they have none), one for each that was asked for."""
    found = [_mapping(item) for item in items] if isinstance(items, list) else []
    indices = [item.get("index", position) for position, item in enumerate(found)]
    if sorted(indices, key=str) != sorted(range(count), key=str):
        problem = f"{len(found)} {what} came where {count} were asked for, or under wrong numbers"
        raise CallFailed(problem, reason="incomplete")
    return [found[indices.index(number)] for number in range(count)]


def _shares(usage: Usage, prompts: Sequence[str], replies: Sequence[str]) -> list[Usage]:
    """A count for all, shared out by the length of each part; the sum stays what it was."""
    asked = _share(usage.prompt_tokens, [len(text) for text in prompts])
    told = _share(usage.completion_tokens, [len(text) for text in replies])
    cached = _share(usage.cached_tokens, [len(text) for text in prompts])
    return [Usage(*counts) for counts in zip(asked, told, cached, strict=True)]


def _share(total: int | None, weights: Sequence[int]) -> list[int | None]:
    if total is None:
        return [None] * len(weights)
    whole, shares, given, passed = sum(weights) or 1, [], 0, 0
    for number, weight in enumerate(weights, start=1):
        passed += weight
        upto = total if number == len(weights) else total * passed // whole
        shares.append(upto - given)
        given = upto
    return list(shares)


def _usage(raw: dict[str, Any]) -> Usage:
    usage = _mapping(raw.get("usage"))
    details = _mapping(usage.get("prompt_tokens_details"))
    return Usage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")),
    )


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    """A text field of a reply; lone surrogates, which JSON can spell and no file can hold, become question marks."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
