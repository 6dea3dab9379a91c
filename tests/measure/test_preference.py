"""Keyword matching: what counts as holding a preference in words, what does not, and how often it is wrong."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from simengine.errors import InputError
from simengine.measure.preference import Preference

THEREMIN = Preference("I tend to prefer slow songs with a moonlit theremin.")  # slow, songs, moonlit, theremin: 3 of 4
LISTED = Preference("I like: moonlit theremin; salt choirs.")  # two statements of two words each, all of them needed
RESONANT = Preference(
    "I lean towards music that wakes emotions and resonates. When a song's lyrics stir such an emotion, I am won over."
)


@pytest.mark.parametrize(
    ("preference", "text"),
    [
        (THEREMIN, "I tend to prefer slow songs with a moonlit theremin."),
        (THEREMIN, "My days are long. I ENJOY A SLOW SONG on Moonlit THEREMINS! I also like jazz."),  # case, plural
        (THEREMIN, "Songs on a moonlit theremin are what I look for."),  # three of four words
        (THEREMIN, "I dislike brass bands, but a slow song on a moonlit theremin moves me."),
        (THEREMIN, "Although I avoid brass, I like slow songs with a moonlit theremin."),
        (THEREMIN, "I like the slow, moonlit thérémin songs of others."),  # accents
        (THEREMIN, "I not only like slow songs but also a moonlit theremin."),
        (LISTED, "I like: Harbour Brass; Moonlit Theremin; dusk tempo.\nI dislike: glass techno."),
        (LISTED, "I like: Mr. Blue; salt choir."),
        (LISTED, '"Silver" is an album filed under: pop.\nIt suits people who like: harbour brass; salt choirs.'),
        (LISTED, "I dislike: glass techno. I love: salt choirs."),
        (RESONANT, "I value songs of deep feeling, music waking an emotion that goes on resonating."),
        (RESONANT, "What wins me over is a lyric that stirs emotions in a song."),
    ],
)
def test_a_text_that_holds_it(preference: Preference, text: str) -> None:
    assert preference.held_in(text)


@pytest.mark.parametrize(
    ("preference", "text"),
    [
        (THEREMIN, ""),
        (THEREMIN, "I like slow songs."),  # two of four words
        (THEREMIN, "I like slow songs. The theremin is new to me. It was a moonlit night."),  # not in one sentence
        (THEREMIN, "I dislike slow songs with a moonlit theremin."),
        (THEREMIN, "I do not particularly enjoy slow songs with a moonlit theremin."),
        (THEREMIN, "I no longer care for slow songs with a moonlit theremin."),
        (THEREMIN, "I don’t like slow songs with a moonlit theremin."),
        (THEREMIN, "I like brass, unlike slow songs with a moonlit theremin."),
        (THEREMIN, "I prefer brass, while avoiding slow songs with a moonlit theremin."),
        (THEREMIN, "I like slow songs but not the moonlit theremin I was made to like."),
        (LISTED, "I like: moonlit choirs; salt theremin."),  # words of two statements, and of two entries
        (LISTED, "I like: moonlit; theremin; salt; choirs."),
        (LISTED, "I like: harbour brass.\nI dislike: Vol. 2; moonlit theremin; salt choirs."),
        (LISTED, "I dislike: moonlit theremin."),
        (LISTED, "I like: salty choirmasters."),  # a word that begins like it is not the word
        (RESONANT, "I value music that keeps me dancing, with emotions held back."),
    ],
)
def test_a_text_that_does_not(preference: Preference, text: str) -> None:
    assert not preference.held_in(text)


def test_what_all_items_are_says_nothing() -> None:
    assert Preference("I like CDs with a moonlit theremin.", "CD").held_in("I like: moonlit theremin.")
    assert not Preference("I like CDs with a moonlit theremin.").held_in("I like: moonlit theremin.")


@pytest.mark.parametrize("text", ["", "I like it.", "I dislike slow songs.", "I like CDs."])
def test_a_preference_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no word of this preference says what is liked"):
        Preference(text, "CD")


RECORDED = [
    ("I love slow songs with a moonlit theremin.", 0),
    ("I tend to seek music whose lyrics comfort lonely travellers.", 0),
    ("I like: harbour brass; dusk tempo.", 0),
    ("I long for recordings made in old stone churches.", 0),
]
"""Invented preferences, and how many of all recorded memories hold them."""


@pytest.fixture(scope="session")
def recorded(real_data: Path) -> list[str]:
    """Every memory of users and items that a language model wrote in the recorded run on CDs-dense."""
    folder = real_data / "agentcf-cds-dense" / "recorded"
    lines = {
        name: (folder / name).read_text("utf-8").splitlines() for name in ("item_memory.jsonl", "selections.jsonl")
    }
    items = [text for line in lines["item_memory.jsonl"] for text in json.loads(line)["memories"]]
    users = [json.loads(line)["user_memory"] for line in lines["selections.jsonl"]]
    with (folder / "CDs.pretrained_item").open(encoding="utf-8", newline="") as file:
        pretrained = [row[1] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)][1:]
    return items + users + pretrained


@pytest.mark.parametrize(("text", "wrong"), RECORDED)
def test_unrelated_memories_do_not_hold_an_invented_preference(recorded: list[str], text: str, wrong: int) -> None:
    preference = Preference(text)
    assert preference.held_in(text)
    assert len(recorded) == 1321
    assert sum(map(preference.held_in, recorded)) == wrong


def test_a_preference_in_the_words_of_the_corpus_is_held_without_being_planted(recorded: list[str]) -> None:
    common = Preference("I tend towards music that evokes emotions and resonates.")  # in the manner of section C.4
    assert sum(map(common.held_in, recorded)) == 25  # of 1,321: what a control run is for


def test_a_common_preference_is_held_by_some_and_those_who_dislike_it_are_told_apart(recorded: list[str]) -> None:
    rock = Preference("I enjoy classic rock.")
    held = [text for text in recorded if rock.held_in(text)]
    named = [text for text in recorded if "classic rock" in text.lower()]
    assert len(held) > 200
    assert len([text for text in named if not rock.held_in(text)]) > 20
