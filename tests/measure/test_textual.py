"""Naming by text, as InteRecAgent's authors count it: what it is known to get wrong, it gets wrong here too."""

from __future__ import annotations

import pytest

from simengine.measure.textual import named


@pytest.mark.parametrize(
    ("text", "title", "said"),
    [
        ("You may like: Portal 2; Terraria.", "Portal", True),  # another game
        ("You may like: Half-Life 2.", "Half-Life", True),  # another game
        ("You may like: anything but that.", "b", True),  # a letter
        ("You may like: 原神.", "原神", False),  # no ASCII letter
        ("You may like: Мор. Утопия.", "Мор. Утопия", False),
        ("You may like: The Witcher III Wild Hunt.", "The Witcher 3: Wild Hunt", True),  # nearly
        ("You may like: Terraria.", "Stardew Valley", False),
        ("", "Portal", False),
    ],
)
def test_the_rule_of_texts(text: str, title: str, said: bool) -> None:
    assert named(text, title) == said
