"""Looks into texts that agents keep: their phrases, whether a text holds a phrase, and what changed between two."""

from __future__ import annotations

import difflib
import re
from typing import Literal, NamedTuple, TypeAlias

# A line may begin with a few words and a colon (``I like: ...``) that say what its phrases are.
_LABEL = re.compile(r"([^\W\d_][\w'’-]*(?: [\w'’-]+){0,5}):\s+(?=\S)")
# Sentences end at a mark behind a word (not behind an initial, as in ``J. S. Bach``), entries of a list at a semicolon.
_ENDS = re.compile(r"(?<=\w\w[.!?])\s+|(?<=\w[.!?][\"”'’)])\s+|\s*;\s*")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

Sign: TypeAlias = Literal["=", "+", "-"]


class Phrase(NamedTuple):
    """A sentence, or an entry of a list; ``label`` is what its line begins with (``I like``), or empty."""

    label: str
    text: str


class Change(NamedTuple):
    """A run of words that two texts share (``=``), or that only the new (``+``) or the old one (``-``) has."""

    sign: Sign
    text: str


def find_phrases(text: str) -> list[Phrase]:
    """The phrases of a text in their order, each once, without the marks at their ends."""
    found: dict[Phrase, None] = {}
    for line in text.splitlines():
        label = _LABEL.match(line.strip())
        rest = line.strip()[label.end() :] if label else line.strip()
        for part in _ENDS.split(rest):
            if _WORD.search(part):
                found.setdefault(Phrase(label[1] if label else "", part.strip(" .,;")))
    return list(found)


def holds(text: str, phrase: str) -> bool:
    """Whether the words of a phrase stand in a text, in their order and side by side; case and marks do not count."""
    return f" {_words(phrase)} " in f" {_words(text)} "


def keeps(text: str, phrase: Phrase) -> bool:
    """Whether a text holds a phrase under the same label: what was disliked and now is liked was not kept."""
    if not phrase.label:
        return holds(text, phrase.text)
    return any(found.label == phrase.label and holds(found.text, phrase.text) for found in find_phrases(text))


def find_changes(old: str, new: str) -> list[Change]:
    """How the new text comes out of the old one, word by word; what is removed stands before what takes its place."""
    before, after = old.split(), new.split()
    changes: list[Change] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for operation, start, stop, new_start, new_stop in matcher.get_opcodes():
        if operation == "equal":
            changes.append(Change("=", " ".join(before[start:stop])))
            continue
        if start < stop:
            changes.append(Change("-", " ".join(before[start:stop])))
        if new_start < new_stop:
            changes.append(Change("+", " ".join(after[new_start:new_stop])))
    return changes


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
