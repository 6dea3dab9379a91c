"""Formats of one free text behind a heading of its own, such as ``My advertisement:``; or in JSON."""

from __future__ import annotations

import re

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lapses import explain, refuse_lapse
from simengine.llm.replies.lines import unwrap
from simengine.llm.replies.objects import JsonForm, text_of
from simengine.llm.replies.unreadable import Unreadable

_BEFORE = r"^\W*(?:here\s+is\s+)?(?:(?:my|the|our|your)\s+)?(?:(?:new|updated|revised|refined|adapted|draft|final)\s+)?"
_AFTER = r"(?:\s+(?:is|are))?\W*[:：]"


class Headed:
    """A text that is called ``name``: it stands after ``My <name>:``, or in the JSON field of that name.

    ``alike`` is a pattern of what models call it instead.
    """

    def __init__(self, name: str, alike: str) -> None:
        self._name = name
        self._heading = re.compile(f"{_BEFORE}(?:{alike}){_AFTER}", re.IGNORECASE | re.MULTILINE)
        self.json = JsonForm({name: "<text>"})

    def write(self, text: str, *, json: bool = False) -> str:
        """The reply in the format asked for."""
        return self.json.write(text) if json else f"My {self._name}: {text}"

    def read(self, text: str, shown: str) -> str:
        """The text; ``shown`` is what the model was given, by whose writing systems the language is judged.

        Raises :class:`Unreadable`: ``no_heading``, ``empty``, ``repeated`` where the heading comes back with another
        text, or a lapse. A word limit is not looked at here.
        """
        answer = clean(text)
        parts = [unwrap(part) for part in self._heading.split(answer)[1:]]
        if not parts:
            raise explain(
                answer, shown, "no_heading", f"the heading is missing; the reply begins {first_words(answer)}"
            )
        return self._one(parts, shown)

    def read_json(self, text: str, shown: str) -> str:
        """The same from a reply in JSON; one that holds no JSON is read as text. Raises like :meth:`read`."""
        fields = self.json.read(text)
        if fields is None:
            return self.read(text, shown)
        before, *parts = map(unwrap, self._heading.split(text_of(fields, self._name)))
        return self._one([before, *parts] if before else parts, shown)

    def _one(self, parts: list[str], shown: str) -> str:
        """The one text that all parts are."""
        if not parts[0]:
            raise Unreadable("empty", "nothing stands after the heading")
        if any(part != parts[0] for part in parts[1:]):
            raise Unreadable("repeated", "the heading comes several times, with different texts")
        refuse_lapse(parts[0], shown)
        return parts[0]


DESCRIPTION = Headed("description", "(?:self[- ])?description")
ADVERTISEMENT = Headed("advertisement", "advert(?:isement)?|ad")
SUGGESTIONS = Headed("suggestions", "(?:suggested\\s+)?(?:suggestions?|revisions?)")
REVIEW_TEXT = Headed("review", "(?:positive\\s+|negative\\s+)?review(?:\\s+(?:of|for)\\s+[^\n:：]{1,80})?")
PREFERENCES = Headed("preferences", "(?:extracted\\s+|relevant\\s+)*(?:preferences?|tastes?)")
REQUEST = Headed("request", "(?:users?['’]?s?\\s+)?(?:request|message)")
GROUP_NAME = Headed(
    "group name", "(?:interest\\s+)?(?:group(?:['’]s)?\\s+)?name(?:\\s+of\\s+the(?:\\s+interest)?\\s+group)?"
)
