"""The names of agents, taken apart and put together."""

from __future__ import annotations

import pytest

from simengine.world import ident, item, kind, user


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (user("12"), ("user", "12")),
        (item("B00X"), ("item", "B00X")),
        (item("a:b"), ("item", "a:b")),
        (user(""), ("user", "")),
        ("group:jazz", ("group", "jazz")),
    ],
)
def test_a_name_is_a_kind_and_an_id(name: str, parts: tuple[str, str]) -> None:
    assert (kind(name), ident(name)) == parts
    assert name == ":".join(parts)


def test_users_and_items_with_one_id_are_two_agents() -> None:
    assert user("1") != item("1")
