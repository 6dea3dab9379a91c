"""How many tokens a request will need, and how a prompt that a server cut is found out."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from simengine.llm.backends.scripted import Scripted
from simengine.llm.calls import CallStore
from simengine.llm.layers.journal import Journal
from simengine.llm.request import Completion, Message, Request, Sampling, Usage
from simengine.llm.tokens import EMBED, Estimator, Need, was_cut


def ask(characters: int, *, task: str = "choose", model: str = "m", max_tokens: int | None = None) -> Request:
    halves = "x" * (characters // 2), "y" * (characters - characters // 2)
    messages = tuple(Message(role, text) for role, text in zip(("system", "user"), halves, strict=True))
    return Request(task, model, messages, Sampling(0.0, max_tokens=max_tokens), call="e1/choose")


@pytest.mark.parametrize(
    ("request_", "right"),
    [
        (ask(400, max_tokens=30), Need(130, 130, 260)),
        (ask(401), Need(101 + 256, 101 + 256, 2 * 357)),
        (ask(400, task=EMBED), Need(100, 100, 200)),
    ],
)
def test_the_rule_before_anything_is_known(request_: Request, right: Need) -> None:
    """A token for each four characters, and the whole reply that is asked for, or 256 tokens."""
    assert Estimator().need(request_) == right


def test_what_was_reported_is_followed_closely_and_rarely_exceeded() -> None:
    estimator = Estimator()
    for reply in [40, 60] * 200:
        estimator.learn(ask(1000, max_tokens=300), Usage(200, reply))
    need = estimator.need(ask(2000, max_tokens=300))
    # 400 of prompt; replies have a mean of 50 and a mean deviation of 10.
    assert need.used == pytest.approx(400 + 70, abs=5)
    assert need.reserved == pytest.approx(400 + 300, abs=5)
    assert need.doubt == pytest.approx(20, abs=5)  # all prompts were alike


def test_a_reply_cannot_exceed_what_is_asked_for() -> None:
    estimator = Estimator()
    estimator.learn(ask(400), Usage(100, 500))
    assert estimator.need(ask(400, max_tokens=30)).used <= 150 + 30


def test_tasks_and_models_are_learned_apart() -> None:
    estimator = Estimator()
    estimator.learn(ask(400), Usage(400, 10))
    assert estimator.need(ask(400)).used < 800
    for other in (ask(400, task="rank"), ask(400, model="n")):
        assert estimator.need(other) == Estimator().need(other)


@pytest.mark.parametrize("usage", [Usage(), Usage(100, None), Usage(None, 5)])
def test_half_a_report_teaches_nothing(usage: Usage) -> None:
    estimator = Estimator()
    assert estimator.learn(ask(400), usage) == Estimator().need(ask(400))
    assert estimator.need(ask(400)) == Estimator().need(ask(400))


def test_what_is_known_at_the_end() -> None:
    estimator = Estimator()
    assert estimator.learn(ask(400, max_tokens=30), Usage(90, 20)) == Need(120, 110)
    assert estimator.learn(ask(400), Usage(90, 20)) == Need(110, 110)
    assert estimator.learn(ask(400, task=EMBED), Usage(90)) == Need(90, 90)


@pytest.mark.parametrize(
    ("characters", "usage", "cut"),
    [
        (24_000, Usage(2048, 50), True),  # field case 26: about 6,000 tokens, of which 2,048 arrived
        (24_000, Usage(3996, 100), True),  # prompt and reply fill a context of 4,096
        (24_000, Usage(4096, 100), True),
        (24_000, Usage(3997, 100), False),  # fewer than expected, but by no more than words are long
        (24_000, Usage(5900, 100), False),
        (24_000, Usage(9000, 100), False),
        (24_000, Usage(), False),
        (24_000, Usage(0, 0), False),
        (1_200, Usage(100, 10), False),  # too short to tell
        (16_600, Usage(4096, 10), False),  # a power of two, but about what was expected
    ],
)
def test_a_prompt_that_was_cut(characters: int, usage: Usage, cut: bool) -> None:
    assert was_cut(ask(characters), usage) is cut


async def test_it_is_counted_and_told_with_the_call(tmp_path: Path) -> None:
    with CallStore(tmp_path / "calls.sqlite") as store, capture_logs() as logs:
        journal = Journal(store, Scripted(lambda request: Completion("yes", usage=Usage(2048, 5))))
        for _ in range(2):
            await journal.complete(ask(24_000))
    assert journal.cut == 1
    assert [(e["log_level"], e["call"], e["expected_tokens"], e["reported_tokens"]) for e in logs] == [
        ("warning", "e1/choose", 6000, 2048)
    ]
