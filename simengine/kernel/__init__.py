"""The kernel: events in a total order, executed out of order, committed in order. It knows no recommender and no file.

An event's life follows the files: event, streams, state, visibility, draft, window, issue, execute, context, commit;
engine is the loop, and the place to start reading.
"""

from simengine.kernel.commit import Sink
from simengine.kernel.context import Branch, Context, Outcome
from simengine.kernel.draft import Committed, Note
from simengine.kernel.engine import Engine, Program, Restored, Rules
from simengine.kernel.event import Agent, Event, Lookahead, Order, Period
from simengine.kernel.execute import Call
from simengine.kernel.state import Version
from simengine.kernel.streams import stream

__all__ = [
    "Agent",
    "Branch",
    "Call",
    "Committed",
    "Context",
    "Engine",
    "Event",
    "Lookahead",
    "Note",
    "Order",
    "Outcome",
    "Period",
    "Program",
    "Restored",
    "Rules",
    "Sink",
    "Version",
    "stream",
]
