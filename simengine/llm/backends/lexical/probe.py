"""How the lexical backend answers whether it holds a preference: by the phrases that it likes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from simengine.llm.backends.lexical import text as lt
from simengine.llm.backends.lexical.shown import Shown
from simengine.llm.replies import decision

SHARE = 2 / 3
"""How many of the words of a preference one liked phrase must have for the preference to be held."""


def _probe(shown: Shown) -> str:
    taste = shown.taste
    asked = lt.read_taste(shown.text("preference"), shown.noun)
    wanted = [set(lt.terms(phrase)) for phrase in (*asked.loves, *asked.likes)]
    held = [
        phrase
        for phrase in (*taste.loves, *taste.likes)
        if any(words and len(words & set(lt.terms(phrase))) >= SHARE * len(words) for words in wanted)
    ]
    why = f"I say that I like: {'; '.join(held)}." if held else "I say nothing of the kind of myself."
    return decision.write(bool(held), why, json=shown.json)


ANSWERS: Mapping[str, Callable[[Shown], str]] = {"probe": _probe}
"""The task of a probe."""
