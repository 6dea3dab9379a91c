"""Which option a text names: spellings that are the same, titles that are not, and what stays unclear."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.llm.replies.titles import TitleIndex

FILMS = ("Matrix, The (1999)", "Heat (1995)", "Sabrina (1954)", "Sabrina (1995)")
CDS = ("4", "25", "Prince: The Hits 2", "Rocky II", "Rocky III", "Greatest Hits", "Greatest Hits, Vol. 1", "!!!")
ODD = ("Seals &amp; Crofts' Greatest Hits", "Honky Château", '<span class="a-size-medium"', "30 #1 Hits", "Up!")


@pytest.mark.parametrize(
    ("titles", "text", "index"),
    [
        (FILMS, "**The Matrix**", 0),
        (FILMS, "the matrix (1999).", 0),
        (FILMS, "Matrix, The", 0),
        (FILMS, "The Matrix 1999", 0),
        (FILMS, "The Matrx", 0),
        (FILMS, "“The Matrix”", 0),
        (FILMS, "我选择 The Matrix", 0),
        (FILMS, "I choose Heat because it is tense", 1),
        (FILMS, "Heat: I like Pacino", 1),
        (FILMS, "Heat by Michael Mann", 1),
        (FILMS, "Sabrina (1954)", 2),
        (FILMS, "I take Sabrina (1995), since Sabrina is dear to me", 3),
        (CDS, "4", 0),
        (CDS, "25.", 1),
        (CDS, "Prince", 2),
        (CDS, "Rocky II", 3),
        (CDS, "greatest hits", 5),
        (CDS, "Greatest Hits, Vol. 1", 6),
        (CDS, "I prefer Greatest Hits, Vol. 1 to all others", 6),
        (CDS, "!!!", 7),
        (ODD, "Seals and Crofts Greatest Hits", 0),
        (ODD, "Seals & Crofts’ Greatest Hits", 0),
        (ODD, "Honky Chateau", 1),
        (ODD, '<span class="a-size-medium"', 2),
        (ODD, "30 #1 Hits: '30 #1 Hits' is a collection", 3),
    ],
)
def test_a_title_is_found(titles: tuple[str, ...], text: str, index: int) -> None:
    assert TitleIndex(titles).match(text).index == index


@pytest.mark.parametrize(
    ("titles", "text", "reason"),
    [
        (FILMS, "Sabrina", "ambiguous"),
        (FILMS, "Heat 2", "unmatched"),
        (FILMS, "I choose Heat 2", "unmatched"),
        (FILMS, "Heat Wave", "unmatched"),
        (FILMS, "heat wave", "unmatched"),
        (FILMS, "Red Heat", "unmatched"),
        (FILMS, "Heat and Dust", "unmatched"),
        (FILMS, "Heat (1996)", "unmatched"),
        (FILMS, "Sabrina (1960)", "unmatched"),
        (FILMS, "Heat, not The Matrix", "both"),
        (FILMS, "Heat Wave or else The Matrix", "ambiguous"),
        (FILMS, "", "unmatched"),
        (FILMS, "是", "unmatched"),
        (CDS, "Rocky", "unmatched"),
        (CDS, "Rocky IV", "unmatched"),
        (CDS, "Greatest Hits, Vol. 2", "unmatched"),
        (CDS, "4 and 25", "ambiguous"),
        (("Sabrina", "sabrina."), "Sabrina", "ambiguous"),
    ],
)
def test_what_is_unclear_is_not_guessed(titles: tuple[str, ...], text: str, reason: str) -> None:
    match = TitleIndex(titles).match(text)
    assert (match.index, match.reason) == (None, reason)


def test_an_ambiguity_names_what_it_may_mean() -> None:
    assert TitleIndex(FILMS).match("Sabrina").named == (2, 3)


def test_near_spellings_of_two_options_are_within_the_margin() -> None:
    titles = ("Goodbye Yellow Brick Road", "Goodbye Yellow Brick Roads")
    assert TitleIndex(titles).match("Goodbye Yelow Brick Road").reason == "ambiguous"


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=6), st.data())
def test_a_title_as_shown_is_found_or_ambiguous(titles: list[str], data: st.DataObject) -> None:
    """The text of an option is never taken for another option and, where it has visible text, never unmatched."""
    at = data.draw(st.integers(0, len(titles) - 1))
    match = TitleIndex(titles).match(titles[at])
    assert match.index in (at, None)
    if titles[at].strip(". \t\n").isalnum() and match.index is None:
        assert match.reason == "ambiguous" and at in match.named
