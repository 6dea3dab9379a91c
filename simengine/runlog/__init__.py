"""The history of a run on disk: its lines, the one writer, the verifying reader, and the comparison of two."""

from simengine.runlog.diff import ABSENT, Comparer, Difference, first_difference
from simengine.runlog.reader import Reader
from simengine.runlog.records import SCHEMA, EventLine, Header, MessageLine, Provenance, event_line
from simengine.runlog.writer import Writer

__all__ = [
    "ABSENT",
    "SCHEMA",
    "Comparer",
    "Difference",
    "EventLine",
    "Header",
    "MessageLine",
    "Provenance",
    "Reader",
    "Writer",
    "event_line",
    "first_difference",
]
