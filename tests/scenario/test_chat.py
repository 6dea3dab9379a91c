"""A person's talk as a run: what is logged, resumed, replayed, forked and reported, and where nobody can answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine.errors import InputError, RunStopped
from simengine.llm import LanguageModel
from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Completion, Request
from simengine.runlog.trace import Trace
from simengine.scenario import Setup, fork, read, resume
from simengine.scenario.check import plan
from simengine.scenario.estimate import estimate
from simengine.scenario.person import Seen, read_chat

CHAT = """
name: talk
seed: 5
data: {format: market, users: 8, items: 24, interests: 3, interactions: 6, seed: 4}
method: {kind: interec}
stages: [{chat: {turns: 3, k: 2}}]
"""


class Speaker:
    """Says one line after the other, then nothing; with ``stop``, the run is to stop where the lines end."""

    def __init__(self, *lines: str, stop: bool = False) -> None:
        self._lines: Iterator[str] = iter(lines)
        self._stop = stop
        self.seen: list[Seen] = []

    async def speak(self, seen: Seen) -> str:
        self.seen.append(seen)
        line = next(self._lines, None)
        if line is None and self._stop:
            raise RunStopped("he left")
        return line or ""

    def leave(self) -> None: ...


def _titles(count: int) -> list[str]:
    scenario = read("talk.yaml", text=CHAT)[0]
    return [item.title for item in list(Setup.of(scenario).dataset.items.values())[:count]]


def _talk(out: Path, person: Speaker, *sets: str, backend: LanguageModel | None = None) -> Any:
    return runs.run(out, *sets, text=CHAT, person=person, backend=backend)


def test_what_is_said_and_answered_is_in_log_report_and_what_the_person_sees(tmp_path: Path) -> None:
    (title,) = _titles(1)
    person = Speaker(f"I liked {title}", "thank you")
    report = _talk(tmp_path / "run", person).report
    first, second, third = person.seen
    assert (first.size, first.talk, first.items, first.attempts, first.left) == (24, (), (), (), 3)
    assert second.talk[0] == f"User: I liked {title}"
    assert second.talk[1].startswith("Recommender: You may like: ")
    assert (len(second.items), second.left) == (2, 2)
    assert second.profile == f"likes: {title}"
    (attempt,) = second.attempts
    assert [(used.tool, used.before, used.after, used.code) for used in attempt.used] == [
        ("look_up", 24, 24, ""),
        ("rank", 24, 23, ""),  # without the one that is liked
        ("fetch", 23, 24, ""),
    ]
    assert attempt.accepted and attempt.reply in second.talk[1]
    assert [used.tool for used in third.attempts[0].used] == []
    spoken = report.talks["chat"]
    assert [(turn.turn, turn.said, turn.tools) for turn in spoken] == [
        (1, f"I liked {title}", ["look_up", "rank", "fetch"]),
        (2, "thank you", []),
    ]
    assert spoken[0].items == list(second.items)
    assert report.results == []
    memories = Trace(tmp_path / "run" / "events.jsonl").memories("venue:chat/1")
    assert [record.text for record in memories if record.slot == "talk"] == list(third.talk)


def test_talks_before_his_own_are_not_told_to_the_person(tmp_path: Path) -> None:
    """What others' answers came about by, while they still talk, does not stand for how his own did."""
    person = Speaker("What is popular?", "thanks")
    _talk(tmp_path / "run", person, "stages=[{converse: {turns: 2}}, {chat: {turns: 3, k: 2}}]")
    for seen in person.seen:
        for attempt in seen.attempts:
            assert seen.talk[-1] == f"Recommender: {attempt.reply}"
    assert person.seen[0].attempts == ()


def test_a_replay_needs_nobody(tmp_path: Path) -> None:
    _talk(tmp_path / "run", Speaker("What is popular?", "thanks"))
    assert runs.replay(tmp_path / "run").finished


def test_the_last_reply_is_heard_and_the_talk_ends_at_its_limit(tmp_path: Path) -> None:
    person = Speaker(*(f"What is popular, {word}?" for word in ("one", "two", "three", "four")))
    report = _talk(tmp_path / "run", person).report
    assert [seen.left for seen in person.seen] == [3, 2, 1, 0]
    assert len(report.talks["chat"]) == 3
    assert report.notes[-1] == "chat: turns of the talk: 3; it ended at the limit of turns"


def test_a_stopped_talk_goes_on_where_it_stopped_and_ends_as_if_it_had_not(tmp_path: Path) -> None:
    lines = ("What is popular?", "What else?", "thanks")
    whole = _talk(tmp_path / "whole", Speaker(*lines)).report
    with pytest.raises(RunStopped, match=r"simengine chat \S+/run"):
        _talk(tmp_path / "run", Speaker(*lines[:2], stop=True))
    with pytest.raises(RunStopped, match="nobody is asked"):
        runs.resume(tmp_path / "run")
    person = Speaker(*lines[2:])
    finished = asyncio.run(resume(tmp_path / "run", person=person))
    assert len(person.seen[0].talk) == 4  # all that was said before
    assert person.seen[0].attempts == ()
    assert finished.report.hash == whole.hash


def test_what_was_typed_before_a_kill_is_not_asked_for_again(tmp_path: Path) -> None:
    """The answer is in the journal, though the turn is in no log."""

    def fails(request: Request) -> Completion:
        raise RunStopped("the machine died")

    with pytest.raises(RunStopped):
        _talk(tmp_path / "run", Speaker("What is popular?"), backend=Scripted(fails))
    person = Speaker()
    finished = asyncio.run(resume(tmp_path / "run", person=person))
    assert [turn.said for turn in finished.report.talks["chat"]] == ["What is popular?"]
    assert person.seen[0].talk[0] == "User: What is popular?"


def test_a_reply_that_cannot_be_had_does_not_end_the_talk(tmp_path: Path) -> None:
    async def mute(request: Request) -> Completion:
        if request.task == "converse.reply" and "first" in str(request.slots["request"]):
            return Completion("...")
        return await Lexical().complete(request)

    person = Speaker("the first?", "the second?")
    report = _talk(tmp_path / "run", person, backend=Scripted(mute)).report
    assert person.seen[1].talk == ("User: the first?",)
    assert [(bool(turn.reply), turn.failure) for turn in report.talks["chat"]] == [
        (False, "reply/1: no_heading"),
        (True, ""),
    ]


def test_a_fork_asks_anew_from_where_the_person_would_see_something_else(tmp_path: Path) -> None:
    (title,) = _titles(1)
    _talk(tmp_path / "run", Speaker("What is popular?", f"I liked {title}", "thanks"))
    same = asyncio.run(fork(tmp_path / "run", ["llm.limits.concurrency=3"], out=tmp_path / "same"))
    assert same.report.hash == runs.report(tmp_path / "run").hash
    with pytest.raises(RunStopped, match=r"simengine chat \S+/other"):
        asyncio.run(fork(tmp_path / "run", ["stages=[{chat: {turns: 3, k: 1}}]"], out=tmp_path / "other"))
    person = Speaker("something else?")
    finished = asyncio.run(resume(tmp_path / "other", person=person))
    assert [turn.said for turn in finished.report.talks["chat"]] == ["What is popular?", "something else?"]
    assert len(person.seen[0].items) == 1


def test_where_nobody_can_answer_a_run_does_not_begin(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="simengine chat SCENARIO"):
        runs.run(tmp_path / "run", text=CHAT)
    assert not (tmp_path / "run").exists()


def test_a_check_and_an_estimate_say_what_a_talk_may_come_to() -> None:
    scenario = read("talk.yaml", text=CHAT)[0]
    found = plan(scenario)
    (stage,) = found.stages
    assert (stage.events, stage.least_calls, stage.most_calls) == (1, 0, 3 * 12)
    assert "`simengine chat` runs this scenario" in found.notes[-1]
    assert {task.task for task in estimate(scenario).tasks} == {"converse.plan", "converse.reply", "converse.critic"}


CONVERSE = CHAT.replace("chat: {turns: 3, k: 2}", "converse: {}") + "variants: {a: {}, b: {method: {reflection: 0}}}\n"


def test_a_scenario_becomes_a_talk(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(CONVERSE, encoding="utf-8")
    base, plain = read_chat(file)
    assert (base.name, plain["name"], plain["stages"]) == ("talk-chat", "talk-chat", [{"chat": {}}])
    assert base.method.model_dump()["reflection"] == 3
    assert read_chat(file, variant="b")[0].method.model_dump()["reflection"] == 0
    mine = read_chat(file, ["stages=[{chat: {turns: 9}}]", "name=mine"])[0]
    assert (mine.name, mine.stages[0].chat.turns if mine.stages[0].chat else None) == ("mine", 9)


def test_wrong_scenarios_for_a_talk(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(CONVERSE, encoding="utf-8")
    with pytest.raises(InputError, match="its variants: a, b"):
        read_chat(file, variant="c")
    file.write_text(runs.SMALL, encoding="utf-8")
    with pytest.raises(InputError, match="the method agentcf does not converse"):
        read_chat(file)
