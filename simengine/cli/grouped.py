"""What the command trace tells of an interest group: its members, how it was formed anew, and what it showed when."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from simengine.cli import told
from simengine.runlog.groups import Stage, find_group
from simengine.runlog.trace import Trace


def of_group(traced: Trace, name: str) -> Iterator[told.Part]:
    """Each stage of a group."""
    for stage in find_group(traced, name):
        yield told.Part(stage, _lines(stage))


def _lines(stage: Stage) -> Iterator[Text]:
    formed = stage.formed
    yield Text.assemble((formed.id, "bold cyan"), f"  {formed.event}, time {formed.time}, {formed.version}")
    if formed.tags:
        yield Text(f"  tags: {'; '.join(formed.tags)}")
    yield Text(f"  members: {', '.join(formed.members)}")
    for sign, users in (("+", stage.joined), ("-", stage.left)):
        if users:
            yield Text(f"  {sign} {', '.join(users)}", style="green" if sign == "+" else "red")
    for shown in stage.shown:
        yield Text(f"  shown to {shown.user} at {shown.time} ({shown.event}): {'; '.join(shown.titles)}")
