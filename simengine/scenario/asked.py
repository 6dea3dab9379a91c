"""What an event asked of the model: the prompt and the answer of each of its calls, from the run's journal."""

from __future__ import annotations

from pathlib import Path

import msgspec

from simengine.llm import CallStore, Completion, Message
from simengine.llm.calls import Outcome, Row
from simengine.runlog import EventLine
from simengine.scenario.folder import Folder


class Asked(msgspec.Struct, frozen=True):
    """One call of an event, by its name there. ``failed`` tells that ``answer`` says why there is none."""

    call: str
    model: str
    prompt: tuple[Message, ...]
    answer: str
    failed: bool = False


def asked(folder: Path, line: EventLine) -> list[Asked]:
    """The calls of an event of this run, in the order of its log.

    An answer stands in the journal under the key that the log tells, a call that failed under its own name; not,
    where it shared the failure of an equal one. Raises :class:`~simengine.errors.LogError` where there is no journal.
    """
    names = {call: (stamp.partition(" ")[0], f"{line.event}#{call}") for call, stamp in line.calls.items()}
    wanted = {name for pair in names.values() for name in pair}
    rows: dict[str, Row] = {}
    with CallStore(Folder.of(folder).calls, read_only=True) as store:
        for row in store:
            rows.update((name, row) for name in (row.key, row.request.call) if name in wanted)
    found = []
    for call, (key, name) in names.items():
        row_of = rows.get(key) or rows.get(name)
        if row_of is None:
            why = f"the journal does not hold this call; the log says: {line.calls[call]}"
            found.append(Asked(call, "", (), why, failed=True))
        else:
            found.append(Asked(call, row_of.request.model, row_of.request.messages, *_answer(row_of.outcome)))
    return found


def _answer(outcome: Outcome) -> tuple[str, bool]:
    return (outcome.text, False) if isinstance(outcome, Completion) else (outcome.problem, True)
