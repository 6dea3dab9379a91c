"""How the lexical backend reviews, talks and decides: by what a prompt shows, like-minded voices counting for more."""

from __future__ import annotations

import asyncio
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.llm import task
from simengine.llm.backends.lexical import Lexical
from simengine.llm.prompts import PromptBook, Slot
from simengine.llm.replies.decision import Decision
from simengine.llm.request import Request
from simengine.llm.task import DECIDE, DECIDE_DISCUSSED, DECIDE_REVIEWED, REVIEW, TALK_BUYER, TALK_OWNER, Task

BOOK = PromptBook([files("simengine") / "methods" / "prompts" / "opinions"])
TITLE = "Blue Hours"
ITEM = f'"{TITLE}" is a CD filed under: Jazz; Swing; Brass; Vocal.'
HALF = "I love: Opera; Cabaret.\nI like: Jazz; Waltz.\nI dislike: Polka."
"""Who likes one of the item's six words, so that it alone is not enough."""


def ask(what: Task[task.T], memory: str, **more: Slot) -> task.T:
    slots: dict[str, Slot] = {"memory": memory, "options": (ITEM,), "titles": (TITLE,), **more}
    rendered = BOOK.render(what.template, slots, "CD")
    request = Request(what.name, "lexical", rendered.messages, slots=rendered.slots)
    return what.read(asyncio.run(Lexical().complete(request)).text, slots)


def review(memory: str, verdict: str, limit: int = 50) -> str:
    return ask(REVIEW, memory, verdict=verdict, limit=str(limit))


def after(memory: str, *reviews: str) -> Decision:
    return ask(DECIDE_REVIEWED, memory, former="No", explanation="why", side="similar", reviews=reviews)


def test_it_buys_what_it_likes_enough() -> None:
    assert ask(DECIDE, "I like: Jazz; Swing; Brass; Vocal; Blue Hours.").yes
    assert ask(DECIDE, HALF) == Decision(False, "It has what I like: Jazz.")
    assert ask(DECIDE, "I like CDs.") == Decision(False, "I know nothing that speaks for it.")
    assert not ask(DECIDE, "I like: Jazz; Swing; Brass; Vocal.\nI dislike: Blue; Hours; Swing; Brass; Vocal.").yes


def test_a_review_names_what_it_likes_or_dislikes_in_the_item_and_what_else_it_loves() -> None:
    memory = "I love: Opera; Swing.\nI like: Jazz; Waltz.\nI dislike: Brass; Polka."
    assert review(memory, "like") == "I like: Blue Hours; Jazz; Swing. I love: Opera."
    assert review(memory, "dislike") == "I dislike: Blue Hours; Brass. I love: Opera."


def test_a_review_of_an_item_that_taste_knows_nothing_of_invents_nothing() -> None:
    assert review("I like CDs.", "like") == "I like: Blue Hours; Jazz; Swing; Brass; Vocal."
    assert review("I like: Jazz.", "dislike") == "I dislike: Blue Hours; Swing; Brass; Vocal."


def test_a_review_that_has_no_room_for_the_title_says_at_least_its_verdict() -> None:
    assert review("I like: Jazz.", "like", 3) == "I like it."
    assert review("I like: Jazz.", "dislike", 3) == "I dislike it."


@given(st.integers(8, 60))
def test_a_review_keeps_its_limit_and_its_verdict(limit: int) -> None:
    memory = f"I love: {'; '.join(f'thing {at}' for at in range(40))}.\nI like: Jazz; Swing.\nI dislike: Brass."
    for verdict in ("like", "dislike"):
        text = review(memory, verdict, limit)
        assert len(text.split()) <= limit
        assert text.startswith(f"I {verdict}: Blue Hours;")


LOVES_OPERA = "I love: Opera.\nI like: Jazz."
LOVES_POLKA = "I love: Polka.\nI like: Jazz."


@pytest.mark.parametrize("writer", [LOVES_OPERA, LOVES_POLKA])
def test_praise_and_blame_move_an_undecided_reader_whoever_writes(writer: str) -> None:
    """Of the item's six words four are liked, which is just enough, or three, which is not quite."""
    enough, short = "I like: Jazz; Swing; Brass; Vocal.", "I like: Jazz; Swing; Brass."
    assert ask(DECIDE, enough).yes and not ask(DECIDE, short).yes
    assert not after(enough, review(writer, "dislike")).yes
    assert after(short, review(writer, "like")).yes


def test_who_loves_what_the_reader_loves_is_believed_more() -> None:
    assert not ask(DECIDE, HALF).yes
    alike, other = (review(writer, "like") for writer in (LOVES_OPERA, LOVES_POLKA))
    assert after(HALF, alike) == Decision(
        True, "It has what I like: Jazz. Others speak for it, who love what I love: Opera."
    )
    assert after(HALF, other) == Decision(False, "It has what I like: Jazz. Others speak for it.")

    fond = "I love: Opera.\nI like: Swing; Jazz; Brass; Blue Hours; Vocal."
    alike, other = (review(writer, "dislike") for writer in (LOVES_OPERA, LOVES_POLKA))
    assert after(fond, other).yes
    told = after(fond, alike)
    assert not told.yes and told.explanation.endswith("Others speak against it, who love what I love: Opera.")


def test_several_reviews_count_by_their_mean_and_in_any_order() -> None:
    alike, other = review(LOVES_OPERA, "like"), review(LOVES_POLKA, "dislike")
    assert after(HALF, alike, alike) == after(HALF, alike)
    assert after(HALF, alike, other).yes == after(HALF, other, alike).yes


def test_a_voice_that_speaks_of_something_else_moves_nothing() -> None:
    assert after(HALF, "I like: Opera; Waltz. I love: Cabaret.") == ask(DECIDE, HALF)


def test_former_decision_and_side_are_no_reasons() -> None:
    """Only what the reviews say counts, so that a contrast between sides cannot come from the name of a side."""
    slots: dict[str, Slot] = {"reviews": (review(LOVES_POLKA, "like"),)}
    found = {
        ask(DECIDE_REVIEWED, HALF, former=former, explanation="why", side=side, **slots)
        for former in ("Yes", "No")
        for side in ("similar", "dissimilar")
    }
    assert len(found) == 1


def talk(who: Task[task.T], memory: str, *dialogue: str, **more: Slot) -> task.T:
    return ask(who, memory, dialogue=dialogue, limit="80", **more)


def test_a_talk_asks_answers_and_ends() -> None:
    opening = talk(TALK_BUYER, HALF)
    assert not opening.goodbye
    assert opening.text.endswith("I love: Opera; Cabaret. I like: Jazz; Waltz. I dislike: Polka.")
    said = review(LOVES_OPERA, "like")
    answer = talk(TALK_OWNER, LOVES_OPERA, f"Buyer: {opening.text}", review=said)
    assert answer.text == said and not answer.goodbye
    last = talk(TALK_BUYER, HALF, f"Buyer: {opening.text}", f"Owner: {answer.text}")
    assert last.goodbye


def test_an_owner_warns_of_what_the_buyer_dislikes() -> None:
    said = review(LOVES_OPERA, "like")
    answer = talk(TALK_OWNER, LOVES_OPERA, "Buyer: Is it for me? I like: Jazz. I dislike: Brass; Waltz.", review=said)
    assert answer.text == f"You may not like Brass. {said}"


@pytest.mark.parametrize(("speaker", "yes"), [("Owner", True), ("Buyer", False)])
def test_in_a_talk_only_the_other_counts(speaker: str, yes: bool) -> None:
    line = f"{speaker}: {review(LOVES_OPERA, 'like')}"
    assert ask(DECIDE_DISCUSSED, HALF, former="No", explanation="why", dialogue=(line,)).yes is yes
