"""Faults of test cases that can be counted: in candidates, in titles, in time, in who and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from simengine.data import Case, Dataset, Interactions
from simengine.data.columns import Numbers
from simengine.measure.trivial import training_counts

EXAMPLES = 5
"""How many user ids a finding names."""

_NEVER: Numbers = np.zeros(0)


class Finding(msgspec.Struct, frozen=True):
    """One thing that was found: a stable ``code``, and ``text`` that says what, how many, who, and why it matters.

    It concerns ``count`` of ``of``: test cases, or users or rankers where the text says so. ``examples`` are the first
    user ids, or all rankers, that it concerns.
    """

    code: str
    text: str
    count: int
    of: int
    examples: tuple[str, ...]


def can_be_scored(case: Case) -> bool:
    """Whether the case has its target among its candidates."""
    return case.target in (case.candidates or ())


def faults(dataset: Dataset, cases: Sequence[Case]) -> Iterator[Finding]:
    """All that is wrong with the cases, in a fixed order."""
    yield from _lists(cases)
    yield from _known(dataset, cases)
    yield from _titles(dataset, cases)
    yield from _time(dataset, cases)
    yield from _leaks(dataset, cases)
    yield from _unseen(dataset, cases)
    yield from _missing(dataset, cases)


def unchecked(dataset: Dataset) -> Iterator[str]:
    """What cannot be looked at in these data, and why."""
    if dataset.unit == "step":
        yield (
            "whether training knows other users' future: times are steps of each user's own, so users share no clock"
        )


def _finding(code: str, cases: Sequence[Case], marks: Iterable[object], what: str, rest: str) -> Iterator[Finding]:
    """``what`` in so many of the test cases (so and so), then the rest of the sentence; nothing without a mark."""
    found = [case for case, mark in zip(cases, marks, strict=True) if mark]
    if found:
        users = list(dict.fromkeys(case.user for case in found))
        text = f"{what} in {len(found)} of {len(cases)} test cases ({_names(users)}){rest}"
        yield Finding(code, text, len(found), len(cases), tuple(users[:EXAMPLES]))


def _names(users: Sequence[str]) -> str:
    more = ", ..." if len(users) > EXAMPLES else ""
    return f"{'user' if len(users) == 1 else 'users'} {', '.join(users[:EXAMPLES])}{more}"


def _lists(cases: Sequence[Case]) -> Iterator[Finding]:
    """What is wrong with lists of candidates: without them, without the target, with the target or another twice."""
    counts = [Counter(case.candidates or ()) for case in cases]
    targets = [count[case.target] for case, count in zip(cases, counts, strict=True)]
    yield from _finding(
        "no-candidates",
        cases,
        (not count for count in counts),
        "There are no candidates",
        ": nobody can rank them, so no mean holds them.",
    )
    yield from _finding(
        "target-missing",
        cases,
        (count and not target for count, target in zip(counts, targets, strict=True)),
        "The target is not among the candidates",
        ": no ranker can find it there.",
    )
    yield from _finding(
        "target-among-negatives",
        cases,
        (target > 1 for target in targets),
        "The target is among its own negatives",
        ": it competes with itself, and what is right counts as wrong.",
    )
    repeats = [count.total() - len(count) - max(target - 1, 0) for count, target in zip(counts, targets, strict=True)]
    yield from _finding(
        "repeated-candidates",
        cases,
        repeats,
        "A negative is listed more than once",
        f", {sum(repeats)} times too often in all: the list is shorter than it looks, and an answer that names the "
        "item once leaves a place of the ranking empty.",
    )
    yield from _sizes(cases, [len(count) for count in counts])


def _sizes(cases: Sequence[Case], sizes: Sequence[int]) -> Iterator[Finding]:
    """What is wrong with numbers of different candidates, where there are any."""
    most, least = max(sizes, default=0), min(filter(None, sizes), default=0)
    yield from _finding(
        "candidate-counts",
        cases,
        (0 < size < most for size in sizes),
        f"There are fewer than the {most} different candidates of the others",
        f", down to {least}: the fewer there are, the better chance does, and a mean mixes them.",
    )
    yield from _finding(
        "no-negatives",
        cases,
        (set(case.candidates or ()) == {case.target} for case in cases),
        "The target is the only candidate",
        ": every ranker puts it first.",
    )


def _known(dataset: Dataset, cases: Sequence[Case]) -> Iterator[Finding]:
    """What the user is known to have taken, among negatives and as the target."""
    own = [
        ({*dataset.own.get(case.user, ()), *case.history} & set(case.candidates or ())) - {case.target}
        for case in cases
    ]
    yield from _finding(
        "own-negatives",
        cases,
        own,
        "Items that the user himself has taken are among the negatives",
        f", {sum(map(len, own))} items in all: a ranker that knows what he liked is punished for it, and one that "
        "leaves out what he has had gains.",
    )
    taken: dict[str, set[str]] = {}
    for table in (dataset.train, dataset.history):
        for user, item in zip(table.user.tolist(), table.item.tolist(), strict=True):
            taken.setdefault(table.users[user], set()).add(table.items[item])
    yield from _finding(
        "target-in-history",
        cases,
        (case.target in case.history or case.target in taken.get(case.user, ()) for case in cases),
        "The target is an item that the user's own history or training holds",
        ": whoever remembers the past has the answer, and a ranker that leaves out what the user has had cannot "
        "find it.",
    )


def _titles(dataset: Dataset, cases: Sequence[Case]) -> Iterator[Finding]:
    """Titles that do not tell candidates apart, as they are read or as they stand in the file.

    An item without a title of its own, called by its id, is left out.
    """
    shared, within = [], []
    for case in cases:
        listed = [dataset.items[item] for item in dict.fromkeys(case.candidates or ()) if item in dataset.items]
        items = [item for item in listed if item.title not in ("", item.id)]
        read, written = Counter(item.title for item in items), Counter(item.raw_title for item in items)
        shared.append([it.id for it in items if read[it.title] > 1 or (it.raw_title and written[it.raw_title] > 1)])
        within.append(_one_within_another(list(read)))
    of_target = sum(case.target in items for case, items in zip(cases, shared, strict=True))
    yield from _finding(
        "equal-titles",
        cases,
        shared,
        "Different candidates have equal titles",
        f", and {of_target or 'none'} of these {'is' if of_target == 1 else 'are'} about the target's: an answer that "
        "names the title does not say which is meant.",
    )
    yield from _finding(
        "title-within-title",
        cases,
        within,
        "A candidate's title is part of another's",
        ": an answer that is matched by parts of titles may be taken for the wrong item.",
    )


def _one_within_another(titles: Sequence[str]) -> bool:
    """Whether one of these different titles is a part of another; each occurs once in the joined text by itself."""
    joined = "\n".join(titles)
    return any(joined.count(title) > 1 for title in titles)


def _time(dataset: Dataset, cases: Sequence[Case]) -> Iterator[Finding]:
    """The future of the user himself. What is of the target's very time is no future, and stands apart."""
    own = _times_by_user(dataset.train, dataset.history)
    mine = [own.get(case.user, _NEVER) for case in cases]
    later = [_after(times, case.time) for case, times in zip(cases, mine, strict=True)]
    yield from _finding(
        "future-in-history",
        cases,
        later,
        "The user's own history or training holds interactions from after the target's time",
        f", {sum(later)} in all: what is to be predicted lies in the past of what is known.",
    )
    yield from _finding(
        "same-time-history",
        cases,
        ((times == case.time).any() for case, times in zip(cases, mine, strict=True)),
        "The user's own history or training holds interactions from the very time of the target",
        ": which came first is a rule of the data set, not an observation.",
    )


def _leaks(dataset: Dataset, cases: Sequence[Case]) -> Iterator[Finding]:
    """The future of others, where users share a clock."""
    if dataset.unit == "step":
        return
    trained = _times_by_user(dataset.training_part)
    every = np.sort(dataset.training_part.time)
    ahead = [_after(every, case.time) - _after(trained.get(case.user, _NEVER), case.time) for case in cases]
    leaking = [count / len(every) for count in ahead if count]
    share = sum(leaking) / len(leaking) if leaking else 0
    yield from _finding(
        "future-of-others",
        cases,
        ahead,
        "The training part holds interactions of other users from after the target's time",
        f", on average {share:.0%} of it: popularity, item memories and whatever is learnt from others know the "
        "future there. A split on the global time line does not leak.",
    )


def _after(times: Numbers, time: float) -> int:
    """How many of the sorted times are strictly after this one."""
    return len(times) - int(times.searchsorted(time, "right"))


def _times_by_user(*tables: Interactions) -> dict[str, Numbers]:
    """The times of each user's interactions, sorted."""
    times: dict[str, list[int | float]] = {}
    for table in tables:
        for user, time in zip(table.user.tolist(), table.time.tolist(), strict=True):
            times.setdefault(table.users[user], []).append(time)
    return {user: np.sort(np.array(own)) for user, own in times.items()}


def _unseen(dataset: Dataset, cases: Sequence[Case]) -> Iterator[Finding]:
    """Targets that training has never seen, beside how many of the negatives it has not seen."""
    seen = training_counts(dataset)
    negatives = [item for case in cases for item in case.candidates or () if item != case.target]
    unseen = sum(not seen[item] for item in negatives)
    beside = f", as do {unseen} of {len(negatives)} negatives ({unseen / len(negatives):.0%})" if negatives else ""
    yield from _finding(
        "unseen-targets",
        cases,
        (not seen[case.target] for case in cases),
        "The target occurs nowhere in the training part",
        f"{beside}: nothing can be learnt of it from others, and where the shares of targets and negatives differ, "
        "having been seen or not gives the target away.",
    )


def _missing(dataset: Dataset, cases: Sequence[Case]) -> Iterator[Finding]:
    """Users of the data set who are not tested."""
    tested = {case.user for case in cases}
    without = [user for user in dataset.users if user not in tested]
    if without:
        text = (
            f"{len(without)} of {len(dataset.users)} users have no test case ({_names(without)}): others learn from "
            "them, but no mean holds them."
        )
        yield Finding("users-without-case", text, len(without), len(dataset.users), tuple(without[:EXAMPLES]))
