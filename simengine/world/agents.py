"""The names of agents: a kind and an id, as in ``user:12``, ``item:B00X``, ``group:jazz``."""

from __future__ import annotations


def user(ident: str) -> str:
    """The agent of a user."""
    return f"user:{ident}"


def item(ident: str) -> str:
    """The agent of an item."""
    return f"item:{ident}"


def kind(agent: str) -> str:
    """What stands before the colon."""
    return agent.partition(":")[0]


def ident(agent: str) -> str:
    """What stands behind the colon: the id in the data."""
    return agent.partition(":")[2]
