"""The command chat as a person meets it: piped lines, a terminal, Ctrl-C, and taking a talk up again."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runs

from simengine.cli.terminal import YOU

SCENARIO = """
name: talk
seed: 5
data: {format: market, users: 8, items: 24, interests: 3, interactions: 6, seed: 4, noun: album}
method: {kind: interec}
stages: [{converse: {}}]
variants: {quick: {method: {reflection: 0}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "talk.yaml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path


def _environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(runs.ROOT), "COLUMNS": "120"}


def _chat(folder: Path, said: str, *arguments: str) -> tuple[int, list[str], str]:
    """The program, with lines piped in: exit status, the lines that it printed, and stderr."""
    done = subprocess.run(
        [sys.executable, "-c", runs.PROGRAM, "chat", *arguments],
        cwd=folder,
        env=_environ(),
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_a_piped_talk_is_printed_whole(folder: Path) -> None:
    status, out, err = _chat(
        folder, "What is popular?\n/why\n/profile\n/what\nthanks\n/quit\nnever said\n", "talk.yaml"
    )
    assert (status, err) == (0, "")
    assert out[0] == "You talk with a recommender that knows 24 albums. It is rule-based text, not a language model."
    assert "/quit" in out[1]
    assert out[2] == "you> What is popular?"
    assert out[3].startswith("recommender: You may like: ")
    assert [line[:5] for line in out[4:9]] == [f"  {place}. " for place in range(1, 6)]
    assert out[9:11] == ["you> /why", "  attempt 1: I go by what the user has told."]
    assert out[11] == '    rank "by": "popularity"  24 -> 24  ok'
    assert out[12] == '    fetch "n": 5  24 -> 24  ok'
    assert out[13] == f"    reply: {out[3].partition(': ')[2]}"
    assert out[14] == "    the critic accepts it: The reply meets what was said."
    assert out[15:18] == ["you> /profile", "Nothing is known of you yet.", "you> /what"]
    assert out[18].startswith("/why tells")
    assert out[19] == "you> thanks"
    assert out[20].startswith("recommender: You are welcome.")
    assert out[21] == "you> /quit"
    assert out[22].startswith("2 turns, 6 model calls, hash ")
    assert out[23:] == ["run: replays/talk-chat"]
    assert runs.replay(folder / "replays" / "talk-chat").finished


@pytest.mark.parametrize("end", ["", "\n\n", "/quit\n"])
def test_a_talk_ends_by_the_end_of_the_input_two_empty_lines_or_a_command(end: str, folder: Path) -> None:
    status, out, _ = _chat(folder, f"thanks\n{end}", "talk.yaml", "--out", "run")
    assert status == 0
    assert out[-2].startswith("1 turn, ")


def test_steps_are_shown_with_each_answer_of_a_variant(folder: Path) -> None:
    status, out, _ = _chat(folder, "What is popular?", "talk.yaml", "--steps", "--variant", "quick")
    assert status == 0
    assert "  attempt 1: I go by what the user has told." in out
    assert not any("critic" in line for line in out)  # of which the variant has none


def test_a_run_of_such_a_talk_says_who_can_answer(folder: Path) -> None:
    assert _chat(folder, "", "talk.yaml")[0] == 0
    process = runs.start("run", "replays/talk-chat/scenario.yaml", cwd=folder)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "nobody is asked here\n  talk in the terminal: simengine chat SCENARIO" in err
    status, _, err = _chat(folder, "", "replays/talk-chat")
    assert (status, "this run is finished" in err) == (2, True)


class _Terminal:
    """The program in a terminal of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", runs.PROGRAM, "chat", *arguments],
            cwd=folder,
            env={**_environ(), "TERM": "dumb"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_controlling,
        )
        os.close(slave)
        self.said = ""
        self._seen = 0  # characters up to the last prompt that was answered

    def __enter__(self) -> _Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def answer(self, line: bytes) -> None:
        """Wait for the next prompt, then type."""
        limit = time.monotonic() + 60
        while YOU not in self.said[self._seen :]:
            ready, _, _ = select.select([self._master], [], [], max(0.0, limit - time.monotonic()))
            assert ready, f"no prompt in {self.said[self._seen :]!r}"
            self.said += os.read(self._master, 4096).decode()
        self._seen = self.said.index(YOU, self._seen) + len(YOU)
        os.write(self._master, line)

    def left(self) -> int:
        """The exit status, once it has said the rest."""
        while True:
            try:
                piece = os.read(self._master, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            self.said += piece.decode()
        os.close(self._master)
        return self.process.wait(timeout=30)


def _controlling() -> None:
    """Make the terminal on standard input that of the session, so that it sends signals."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_ctrl_c_stops_the_talk_at_once_and_it_is_taken_up_where_it_was(folder: Path) -> None:
    with _Terminal(folder, "talk.yaml", "--out", "run") as first:
        first.answer(b"What is popular?\n")
        first.answer(b"\x03")
        began = time.monotonic()
        assert first.left() == 130
        assert time.monotonic() - began < 8.0  # not the ten seconds that calls under way are given
    assert "Go on with: simengine chat run" in first.said

    with _Terminal(folder, "run") as second:
        second.answer(b"")  # what is printed of the talk so far
        second.answer(b"thanks\n")
        second.answer(b"\x04")
        assert second.left() == 0
    assert (
        second.said.index("What is popular?")
        < second.said.index("recommender: You may like")
        < second.said.index("thanks")
    )
    assert [turn.said for turn in runs.report(folder / "run").talks["chat"]] == ["What is popular?", "thanks"]


def test_a_trace_tells_who_said_what(folder: Path) -> None:
    assert _chat(folder, "What is popular?\n", "talk.yaml", "--out", "run")[0] == 0
    out, _ = runs.start("trace", "run", cwd=folder).communicate(timeout=60)
    assert "  user:person -> venue:chat/1, say: What is popular?\n" in out
    assert "  venue:chat/1 -> venue:chat/1, reply: You may like: " in out
    assert '  venue:chat/1 -> user:person, end: {"how":"farewell","turns":1}\n' in out
