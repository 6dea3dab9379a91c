"""Somebody at the terminal, or the lines that are piped in: reads what the recommender says, and answers."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from functools import partial

from rich.console import Console
from rich.text import Text

from simengine.cli import work
from simengine.errors import RunStopped
from simengine.scenario.person import Seen
from simengine.scenario.wording import counted

YOU, THEY = "you> ", "recommender: "
HELP = (
    "/why tells how the last answer came about, /profile what was learnt of you; /quit, Ctrl-D, or two empty lines end "
    "the talk, Ctrl-C stops it for another time."
)
_LEAVE = ("/quit", "/exit", "/q")
_PIECE = 1 << 16  # bytes that are read at once, at most


class Lines:
    """The lines of a file descriptor. Each is waited for in a thread of its own, which no end of a program waits for.

    Nothing is read before it is asked for, so that what was typed too early is not lost with a run that stops.
    """

    def __init__(self, source: int) -> None:
        self._source = source
        self._rest = b""
        self._ended = False

    async def next(self) -> str | None:
        """The next line, without its end; none behind the last."""
        while b"\n" not in self._rest and not self._ended:
            piece = await self._read()
            self._ended = not piece
            self._rest += piece
        if not self._rest:
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        came: asyncio.Future[bytes] = loop.create_future()

        def wait() -> None:
            piece = b""  # a terminal that is gone has ended
            with suppress(OSError):
                piece = os.read(self._source, _PIECE)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(partial(_give, came, piece))

        threading.Thread(target=wait, daemon=True).start()
        return await came


def _give(came: asyncio.Future[bytes], piece: bytes) -> None:
    if not came.done():
        came.set_result(piece)


class Terminal:
    """The person of a talk, on standard input and output. ``model`` is what he is told that he talks with.

    With ``steps`` he is shown how each answer came about, else when he asks. What is no terminal is not prompted, but
    what it says is printed, so that the output tells the talk.
    """

    def __init__(self, model: str, *, steps: bool, source: int = 0, console: Console | None = None) -> None:
        self._model = model
        self._steps = steps
        self._source = source
        self._lines = Lines(source)
        self._console = console or Console(soft_wrap=True, highlight=False, markup=False)
        self._stopped = asyncio.Event()
        self._greeted = False

    def leave(self) -> None:
        """Wait for nothing more."""
        self._stopped.set()

    async def speak(self, seen: Seen) -> str:
        """Show what has been said, and take what he says to it; empty where he ends the talk, or has no turn left."""
        if not self._greeted:
            self._greet(seen)
        if _replied(seen):
            self._say(seen.talk[-1], "green")
            for place, title in enumerate(seen.items, 1):
                self._print(Text(f"  {place}. {title}"))
        elif seen.talk:
            self._print(Text("(No reply could be had of the model. Say it in other words, or ask /why.)", style="red"))
        if self._steps and seen.talk:
            self._why(seen)
        if not seen.left:
            self._print(Text("(The talk has come to its last turn.)"))
            return ""
        return await self._answer(seen)

    def _greet(self, seen: Seen) -> None:
        self._greeted = True
        known = counted(seen.size, seen.noun)
        self._print(Text(f"You talk with a recommender that knows {known}. It is {self._model}."))
        self._print(Text(f"Say what you have enjoyed, or what you look for. {HELP}"))
        for line in seen.talk[:-1] if _replied(seen) else seen.talk:
            self._say(line, "dim")

    async def _answer(self, seen: Seen) -> str:
        """The next line that is said to the recommender; commands are carried out here."""
        empty = 0
        while (line := await self._line()) is not None and line.strip() not in _LEAVE:
            said = line.strip()
            empty = 0 if said else empty + 1
            if empty == 2:
                break
            match said:
                case "":
                    continue
                case "/why":
                    self._why(seen)
                case "/profile":
                    self._print(Text(seen.profile or "Nothing is known of you yet."))
                case _ if said.startswith("/"):
                    self._print(Text(HELP))
                case _:
                    return said
        return ""

    async def _line(self) -> str | None:
        """The next line; raises :class:`RunStopped` where the run is being stopped meanwhile."""
        typed = os.isatty(self._source)
        if typed:
            self._console.print(Text(YOU, style="bold"), end="")
        line, stop = asyncio.ensure_future(self._lines.next()), asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait((line, stop), return_when=asyncio.FIRST_COMPLETED)
            if not line.done():
                self._print(Text())
                raise RunStopped("the talk was stopped")
            said = line.result()
        finally:
            line.cancel()
            stop.cancel()
        if said is None and typed:
            self._print(Text())
        elif said is not None and not typed:
            self._say(f"User: {said}", "")
        return said

    def _why(self, seen: Seen) -> None:
        for line in work.lines(seen.attempts):
            self._print(line)
        if not seen.attempts:
            self._print(Text("Nothing was answered since the talk was begun, or taken up."))

    def _say(self, line: str, style: str) -> None:
        """A line of the talk, under the names that stand in the terminal."""
        speaker, _, said = line.partition(": ")
        self._print(Text.assemble((YOU if speaker == "User" else THEY, "bold"), (said, style)))

    def _print(self, text: Text) -> None:
        self._console.print(text)


def _replied(seen: Seen) -> bool:
    return bool(seen.talk) and seen.talk[-1].startswith("Recommender: ")
