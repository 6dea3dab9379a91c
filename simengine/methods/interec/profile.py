"""What is known of a user within one talk: what he likes, what he does not want, what he expects (section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from simengine.llm.replies import Unreadable
from simengine.llm.replies.objects import JsonForm
from simengine.llm.replies.scan import Scan
from simengine.methods.interec.plan import Plan, Step
from simengine.methods.interec.table import ItemTable

MOST = 20
"""Entries that each side of a profile keeps: the newest."""

_LONGEST = 300  # characters of an entry, as of a title that a tool is given
_FORM = JsonForm({"like": ["..."], "dislike": ["..."], "expect": ["..."]})


class Profile(msgspec.Struct, frozen=True):
    """Titles and categories, oldest first. ``expect`` is what is asked for now, and says nothing of taste."""

    like: tuple[str, ...] = ()
    dislike: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()

    def __str__(self) -> str:
        sides = (("likes", self.like), ("does not want", self.dislike), ("expects", self.expect))
        return "\n".join(f"{what}: {'; '.join(entries)}" for what, entries in sides if entries)

    def merged(self, newer: Profile) -> Profile:
        """With what a newer one says: where the two conflict the newer holds, and its expectations alone."""
        return Profile(
            _newest([*_but(self.like, newer.dislike), *newer.like]),
            _newest([*_but(self.dislike, newer.like), *newer.dislike]),
            _newest(newer.expect),
        )


def profile_of(found: Scan) -> Profile:
    """The profile that is in the JSON of a planner's reply; an empty one where there is none that can be read."""
    try:
        fields = _FORM.of(found)
    except Unreadable:
        return Profile()
    like, dislike, expect = (fields.get(name, ()) for name in _FORM.fields)
    return Profile(_newest(like), _newest(dislike), _newest(expect))


def with_profile(plan: Plan, profile: Profile, table: ItemTable) -> Plan:
    """The plan, its rankings told of the items that the user likes and does not want, beside what they say themselves.

    Likes are told to rankings by preference alone, since they would make any other one; categories to none.
    """
    return msgspec.structs.replace(plan, steps=tuple(_told(step, profile, table) for step in plan.steps))


def _told(step: Step, profile: Profile, table: ItemTable) -> Step:
    if step.tool != "rank":
        return step
    given = msgspec.json.decode(step.input)
    like, dislike = ([it for it in side if table.by_title.find(it).named] for side in (profile.like, profile.dislike))
    if given["by"] == "preference" or given["liked"]:
        out = {at for it in dislike for at in table.by_title.find(it).named}
        given["liked"] = [
            it for it in _newest([*like, *given["liked"]]) if out.isdisjoint(table.by_title.find(it).named)
        ]
    given["unwanted"] = _newest([*dislike, *given["unwanted"]])
    return Step(step.tool, msgspec.json.encode(given).decode())


def _but(entries: Iterable[str], others: Iterable[str]) -> Iterator[str]:
    """The entries that are none of the others, whatever the case."""
    known = {it.casefold() for it in others}
    return (it for it in entries if it.casefold() not in known)


def _newest(entries: Iterable[str]) -> tuple[str, ...]:
    """The entries that can be given to a tool, each once, the last of those that are too many."""
    last = dict.fromkeys(reversed([it for it in entries if 0 < len(it) <= _LONGEST]))
    return tuple(reversed(list(last)[:MOST]))
