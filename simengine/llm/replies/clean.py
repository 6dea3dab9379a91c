"""Takes off a reply what is not part of the answer: reasoning blocks, code fences, emphasis, invisible characters.

The raw reply stays with the caller, whose journal keeps it; what is returned here is only what the parsers look at.
"""

from __future__ import annotations

import re

from simengine.llm.replies.unreadable import Unreadable

_TAG = r"(?:think|thinking|thought|reasoning)"
_REASONING = re.compile(rf"<{_TAG}>.*?(?:</{_TAG}>|\Z)", re.IGNORECASE | re.DOTALL)
# Some chat templates put the opening tag into the prompt, so that the reply holds only the closing one.
_REASONING_TAIL = re.compile(rf"\A.*</{_TAG}>", re.IGNORECASE | re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$\n?", re.MULTILINE)
# Markers inside a word belong to it (``M*A*S*H``, ``snake_case``).
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|_{1,3}|`)(?=\S)([^\n]+?)(?<=\S)\1(?![\w*])")
_HASHES = re.compile(r"^#{1,6}[ \t]+(?=\S)", re.MULTILINE)
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200e\u200f\u2060\ufeff"))


def clean(raw: str) -> str:
    """The answer part of ``raw``, or :class:`Unreadable` (``empty``, ``reasoning_only``) where there is none."""
    text = _FENCE.sub("", without_reasoning(raw))
    for _ in range(3):  # emphasis nests at most bold, italic, code
        text = _EMPHASIS.sub(r"\2", text)
    text = _HASHES.sub("", text).strip()
    if not text:
        raise Unreadable("empty", "the reply held only markup")
    return text


def without_reasoning(raw: str) -> str:
    """``raw`` without reasoning blocks and invisible characters; raises :class:`Unreadable` where nothing is left."""
    visible = raw.translate(_INVISIBLE).replace("\r\n", "\n").replace("\r", "\n")
    if not visible.strip():
        raise Unreadable("empty", "the reply was empty")
    answer = _REASONING_TAIL.sub("", _REASONING.sub("", visible))
    if not answer.strip():
        raise Unreadable("reasoning_only", "the reply held only reasoning and no answer")
    return answer


def require_whole(raw: str, finish_reason: str) -> None:
    """Raise :class:`Unreadable` (``truncated``) where the server says that the token limit cut the reply."""
    if finish_reason == "length":
        end = " ".join(raw.split())[-60:]
        raise Unreadable("truncated", f"the reply was cut at the token limit, after: {end!r}")


def first_words(text: str, count: int = 12) -> str:
    """The beginning of ``text`` on one line, to quote it in a detail."""
    words = text.split()
    return repr(" ".join(words[:count]) + (" ..." if len(words) > count else ""))
