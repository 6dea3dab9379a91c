"""The filter by novelty: ROUGE-L by its definition, and what is kept whatever the texts are."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.methods.interec.novelty import THRESHOLD, novel, rouge_l

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8).map(" ".join)
TEXTS = st.lists(WORDS, max_size=12)


def longest(one: list[str], other: list[str]) -> int:
    """The longest common subsequence, by trying all of the first."""
    for size in range(min(len(one), len(other)), 0, -1):
        for part in itertools.combinations(one, size):
            rest = iter(other)
            if all(word in rest for word in part):
                return size
    return 0


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        ("police killed the gunman", "police kill the gunman", 3 / 4),  # Lin (2004), section 3.1
        ("police killed the gunman", "the gunman kill police", 2 / 4),
        ("Show me films, please!", "show me: FILMS please", 1),
        ("a b c", "a b c d e f", 2 * 3 / 9),
        ("a", "b", 0),
        ("", "a", 0),
        ("", "?!", 1),
        ("原神 пример", "原神 другой", 1 / 2),
    ],
)
def test_rouge_l_is_the_share_of_common_words_in_order(one: str, other: str, value: float) -> None:
    assert rouge_l(one, other) == pytest.approx(value)
    assert rouge_l(other, one) == pytest.approx(value)


@given(WORDS, WORDS)
def test_rouge_l_is_the_f_measure_of_the_longest_common_subsequence(one: str, other: str) -> None:
    first, second = one.split(), other.split()
    size = len(first) + len(second)
    assert rouge_l(one, other) == pytest.approx(2 * longest(first, second) / size if size else 1)


def test_at_the_threshold_a_text_is_not_new() -> None:
    five = "one two three four five"
    assert rouge_l(five, "one two three four six") == 0.8
    assert novel([five, "one two three four six", "one two three six seven"]) == [0, 2]


def test_what_is_known_goes_before_what_is_made() -> None:
    made = ["Show me films.", "Which films are new?", "Which films are new"]
    assert novel(made) == [0, 1]
    assert novel(made, ["show me FILMS"]) == [1]


@given(TEXTS, TEXTS)
def test_what_is_kept_is_new_and_what_is_not_has_a_reason(texts: list[str], known: list[str]) -> None:
    kept = novel(texts, known)
    assert kept == sorted(set(kept)), "in the order of the texts, each once"
    for at, text in enumerate(texts):
        before = [*known, *(texts[other] for other in kept if other < at)]
        assert (at in kept) == all(rouge_l(text, other) < THRESHOLD for other in before)


@given(TEXTS, TEXTS)
def test_what_comes_later_changes_nothing(texts: list[str], more: list[str]) -> None:
    kept = novel([*texts, *more])
    assert [at for at in kept if at < len(texts)] == novel(texts)
    assert novel([texts[at] for at in novel(texts)]) == list(range(len(novel(texts))))
