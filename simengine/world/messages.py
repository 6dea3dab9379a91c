"""What agents say to one another."""

from __future__ import annotations

from typing import Any

import msgspec


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message. The kernel gives it its id, its event its time; its causes stand beside it in the log.

    ``body`` is text, or plain data where that is what is said (a ranking is a list of item ids). It is left out where
    the message only shows a memory that its causes name, so that a log does not hold the same text many times.
    """

    sender: str
    recipient: str
    kind: str
    body: Any = None
