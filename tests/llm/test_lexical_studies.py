"""How the lexical backend lets a new item learn and advertises: by the phrases that a prompt shows, and no others."""

from __future__ import annotations

import asyncio
from importlib.resources import files

import pytest

from simengine.llm.backends.lexical import Lexical
from simengine.llm.prompts import PromptBook, Slot
from simengine.llm.request import Request
from simengine.llm.task import (
    ADVERTISING_CRITIQUE,
    ADVERTISING_DRAFT,
    ADVERTISING_JUDGE,
    ADVERTISING_REFINE,
    COLD_START_ADAPT,
    Task,
)

_PROMPTS = files("simengine") / "methods" / "prompts"
BOOK = PromptBook([_PROMPTS / name for name in ("agentcf", "cold_start", "advertising")])
JAZZ = '"Blue Hours" is a CD filed under: Jazz; Swing.'
SUITS = "It suits people who like: "


def ask(what: Task[str], **slots: Slot) -> str:
    return what.read(_reply(what, slots), slots)


def _reply(what: Task[object], slots: dict[str, Slot]) -> str:
    rendered = BOOK.render(what.template, slots, "CD")
    request = Request(what.name, "lexical", rendered.messages, slots=rendered.slots)
    return asyncio.run(Lexical().complete(request)).text


def adapt(*options: str, limit: int = 50) -> str:
    return ask(COLD_START_ADAPT, memory=JAZZ, options=options, limit=str(limit))


def test_a_new_item_suits_by_turns_whom_the_others_suit() -> None:
    others = (
        f'"A" is a CD filed under: Jazz.\n{SUITS}bop; brass.',
        f'"B" is a CD filed under: Folk.\n{SUITS}sax; bop; Swing.',
    )
    assert adapt(*others) == f"{JAZZ}\n{SUITS}bop; sax; brass."


def test_a_new_item_takes_nothing_that_the_others_say_of_themselves() -> None:
    assert adapt('"A" is a CD filed under: Polka; Waltz.') == JAZZ


def test_a_new_item_keeps_its_identity_and_the_word_limit() -> None:
    many = "; ".join(f"phrase number {at}" for at in range(40))
    text = adapt(f'"A" is a CD filed under: Jazz.\n{SUITS}{many}.', limit=25)
    assert text.startswith(JAZZ) and len(text.split()) <= 25
    assert "phrase number 0" in text and "phrase number 39" not in text


MEMORY = f"{JAZZ}\n{SUITS}late nights; brass."
DRAFT = 'Discover "Blue Hours": Jazz; Swing.'


def item(**more: Slot) -> dict[str, Slot]:
    return {"title": "Blue Hours", "memory": MEMORY, **more}


def test_a_draft_says_what_the_item_is() -> None:
    assert ask(ADVERTISING_DRAFT, **item(limit="150")) == DRAFT
    assert ask(ADVERTISING_DRAFT, title="4", memory='"4" is a CD.', limit="150") == 'Discover "4".'
    assert ask(ADVERTISING_DRAFT, **item(limit="4")) == 'Discover "Blue Hours": Jazz;'


@pytest.mark.parametrize("aspect", ["personal", "creative", "attractive"])
def test_critics_point_at_what_adopters_like_and_the_draft_leaves_out(aspect: str) -> None:
    def criticise(draft: str, limit: int = 40) -> str:
        return ask(ADVERTISING_CRITIQUE, **item(draft=draft, aspect=aspect, limit=str(limit)))

    assert criticise(DRAFT) == f"Say whom it suits.\n{SUITS}late nights; brass."
    assert criticise(f"{DRAFT}\n{SUITS}late nights.") == f"Say whom it suits.\n{SUITS}brass."
    assert criticise(f"{DRAFT}\n{SUITS}late nights; brass.") == "Nothing is missing."
    assert len(criticise(DRAFT, 11).split()) <= 11


def refine(*suggestions: str) -> str:
    return ask(ADVERTISING_REFINE, **item(draft=DRAFT, suggestions=suggestions, limit="200"))


def test_a_refinement_adds_what_is_suggested_and_true() -> None:
    assert (
        refine(f"Say it.\n{SUITS}late nights.", f"{SUITS}brass; late nights.") == f"{DRAFT}\n{SUITS}late nights; brass."
    )
    assert refine(f"{SUITS}free beer; brass.") == f"{DRAFT}\n{SUITS}brass.", "the description knows of no free beer"
    assert refine("Be bold!", "Nothing is missing.") == DRAFT


@pytest.mark.parametrize("refined_first", [True, False])
@pytest.mark.parametrize(
    ("taste", "prefers"),
    [
        ("I like: brass; late nights.", "refined"),
        ("I dislike: brass; late nights.", "draft"),
        ("I like: Jazz; Swing.", "what is first"),
        ("I like CDs and am curious about new ones.", "what is first"),
        ("I like: Number 2; Advertisements.", "what is first"),
    ],
)
def test_judges_prefer_by_their_taste_and_else_by_place(taste: str, prefers: str, refined_first: bool) -> None:
    """What both advertisements say tells nothing between them, and neither does what they are called."""
    texts = {"draft": DRAFT, "refined": f"{DRAFT}\n{SUITS}late nights; brass."}
    order = ("refined", "draft") if refined_first else ("draft", "refined")
    slots: dict[str, Slot] = {"memory": taste, "titles": ("Advertisement 1", "Advertisement 2")}
    slots["options"] = tuple(texts[name] for name in order)
    choice = ADVERTISING_JUDGE.read(_reply(ADVERTISING_JUDGE, slots), slots)
    assert order[choice.index] == (order[0] if prefers == "what is first" else prefers)


def test_a_judge_says_what_an_advertisement_has() -> None:
    texts = (f"{DRAFT}\n{SUITS}late nights; brass.", DRAFT)
    slots: dict[str, Slot] = {"memory": "I like: brass; Blue Hours; Swing.", "options": texts}
    slots["titles"] = ("Advertisement 1", "Advertisement 2")
    why = ADVERTISING_JUDGE.read(_reply(ADVERTISING_JUDGE, slots), slots).explanation
    assert why == "It meets what I like: Blue Hours; Swing. Those who took it share what I like: brass."
