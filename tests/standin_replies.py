"""What the stand-in server answers: the protocol's objects, and texts in the formats that prompts ask for."""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from typing import Any

Body = dict[str, Any]


def chat(text: str, body: Body) -> Body:
    """A response object as servers send it, with token counts of one for each word."""
    asked = sum(len(str(message["content"]).split()) for message in body["messages"])
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, **_counted(body, [choice], asked, [text])}


def completions(text: str, body: Body) -> Body:
    """The same for text completions: each prompt of the list is answered with ``text`` and the prompt's last word."""
    prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
    texts = [f"{text} {prompt.split()[-1]}" for prompt in prompts]
    choices = [{"index": at, "text": text, "finish_reason": "stop"} for at, text in enumerate(texts)]
    asked = sum(len(prompt.split()) for prompt in prompts)
    return {"id": "cmpl-1", "object": "text_completion", "created": 0, **_counted(body, choices, asked, texts)}


def _counted(body: Body, choices: list[Body], asked: int, texts: list[str]) -> Body:
    told = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told}
    return {"model": body.get("model", ""), "choices": choices, "usage": usage}


def embeddings(body: Body) -> Body:
    """Eight numbers for each text, from its digest, in the encoding that is asked for."""
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    vectors: list[Any] = [vector_of(text) for text in texts]
    if body.get("encoding_format", "base64") == "base64":
        vectors = [base64.b64encode(struct.pack("<8f", *vector)).decode() for vector in vectors]
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    asked = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": asked, "total_tokens": asked}
    return {"object": "list", "model": body.get("model", ""), "data": data, "usage": usage}


def vector_of(text: str) -> list[float]:
    """The embedding of a text; all its numbers are exact as 32-bit floats."""
    return [byte / 256 + 1 for byte in hashlib.blake2b(text.encode(), digest_size=8).digest()]


_TITLES = re.compile(r"^Their titles:\n((?:(?:\d+\.|-) .+\n?)+)", re.MULTILINE)
_TITLE = re.compile(r"^(?:\d+\.|-) (.+)$", re.MULTILINE)
_CHOICE = re.compile(r"^Chosen (.+?): <", re.MULTILINE)
_DESCRIPTION = re.compile(r"^The updated description of the first (.+?) is:", re.MULTILINE)
_SELF_INTRODUCTION = re.compile(r"^My updated self-introduction:", re.MULTILINE)
_RANK = re.compile(r"^Rank:", re.MULTILINE)


def agentcf_reply(body: Body) -> str:
    """An answer to an AgentCF prompt in the format that it asks for, drawn by a digest of all that the prompt says."""
    told = "\n".join(str(message["content"]) for message in body["messages"])
    digest = hashlib.blake2b(told.encode(), digest_size=8).hexdigest()
    shown = _TITLES.search(str(body["messages"][-1]["content"]))
    titles = _TITLE.findall(shown[1]) if shown else []
    if choice := _CHOICE.search(told):
        at = int(digest, 16) % len(titles)
        return f"Chosen {choice[1]}: {at + 1}. {titles[at]}\nExplanation: It has the features of pattern {digest}."
    if _SELF_INTRODUCTION.search(told):
        return f"My updated self-introduction: I like features of pattern {digest}. I dislike plain ones."
    if described := _DESCRIPTION.search(told):
        return "\n".join(
            f"The updated description of the {which} {described[1]} is: It suits people who like {which} {digest}."
            for which in ("first", "second")
        )
    if _RANK.search(told):
        turn = int(digest, 16) % len(titles)
        order = titles[turn:] + titles[:turn]
        return "\n".join(["Rank:", *(f"{place}. {title}" for place, title in enumerate(order, start=1))])
    raise AssertionError(f"a prompt of no known format: {told[:200]}")
