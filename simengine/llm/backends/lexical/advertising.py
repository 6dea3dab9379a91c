"""How the lexical backend advertises: a draft of what an item is, then whom it suits, where critics miss it."""

from __future__ import annotations

import re
from collections.abc import Callable

from simengine.llm.backends.lexical import text as lt
from simengine.llm.backends.lexical.score import Option
from simengine.llm.backends.lexical.shown import Shown
from simengine.llm.replies.headed import ADVERTISEMENT, SUGGESTIONS

DRAFT_LIMIT, CRITIQUE_LIMIT, REFINED_LIMIT = 150, 40, 200
"""Word limits where the prompt states none."""
_DISCOVER = re.compile(r'\ADiscover "(.+?)"[:.]')


def _draft(shown: Shown) -> str:
    """The title and the phrases of the item's identity."""
    title = shown.text("title")
    phrases = lt.distinct(lt.own_phrases(shown.text("memory"), title), without=(title, shown.noun))
    text = f'Discover "{title}": {"; ".join(phrases)}.' if phrases else f'Discover "{title}".'
    return ADVERTISEMENT.write(_cut(text, shown.limit(DRAFT_LIMIT)), json=shown.json)


def _criticise(shown: Shown) -> str:
    """What adopters like, by the description, and the draft does not say; critics of all kinds see the same."""
    missing = lt.distinct(lt.gathered_phrases(shown.text("memory")), without=_said(shown))
    about = "Say whom it suits." if missing else "Nothing is missing."
    return SUGGESTIONS.write(lt.write_description(about, missing, shown.limit(CRITIQUE_LIMIT)), json=shown.json)


def _refine(shown: Shown) -> str:
    """The draft, and what critics suggest, as far as the description bears it out."""
    draft = shown.text("draft")
    true = {lt.terms(phrase) for phrase in lt.gathered_phrases(shown.text("memory"))}
    asked = (phrase for text in shown.texts("suggestions") for phrase in lt.gathered_phrases(text))
    added = lt.distinct((phrase for phrase in asked if lt.terms(phrase) in true), without=_said(shown))
    text = lt.write_description(lt.identity(draft), (*lt.gathered_phrases(draft), *added), shown.limit(REFINED_LIMIT))
    return ADVERTISEMENT.write(text, json=shown.json)


def claims(shown: Shown) -> tuple[Option, ...]:
    """What each advertisement that is shown says: of the item itself, and of those whom it suits."""
    titles = (named[1] if (named := _DISCOVER.match(text)) else "" for text in shown.descriptions)
    return tuple(map(shown.option, shown.descriptions, titles))


def _said(shown: Shown) -> tuple[str, ...]:
    """The phrases of the draft."""
    draft = shown.text("draft")
    return (*lt.own_phrases(draft, shown.text("title")), *lt.gathered_phrases(draft))


def _cut(text: str, limit: int) -> str:
    return " ".join(text.split()[:limit])


ANSWERS: dict[str, Callable[[Shown], str]] = {
    "advertising.draft": _draft,
    "advertising.critique": _criticise,
    "advertising.refine": _refine,
}
"""All but those of judges, who choose between advertisements as between items."""
