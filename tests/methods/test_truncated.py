"""A reply that ended at its token limit is asked for once more with twice the tokens, in a call of its own name."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs

from simengine.llm.backends.lexical import Lexical
from simengine.llm.request import Completion, Request


class Terse(Lexical):
    """Cuts every choice that is given fewer tokens than it takes."""

    def __init__(self, needs: int) -> None:
        self.needs = needs
        self.asked: list[tuple[str, int | None]] = []

    async def complete(self, request: Request) -> Completion:
        whole = await super().complete(request)
        if request.task != "choose":
            return whole
        self.asked.append((request.call.rpartition("#")[2], request.sampling.max_tokens))
        if (request.sampling.max_tokens or 0) >= self.needs:
            return whole
        return Completion(text=whole.text[:20], finish_reason="length")


def test_twice_the_tokens_suffice(tmp_path: Path) -> None:
    model = Terse(needs=60)
    report = runs.run(tmp_path / "run", "llm.max_tokens=40", "method.rounds=1", backend=model).report
    assert report.failures == {}
    assert report.asked_again == {"choose": 24}
    assert {name for name, _ in model.asked} == {"choose/r1", "choose/r1/longer"}
    assert {tokens for _, tokens in model.asked} == {40, 80}


@pytest.mark.parametrize(("limit", "second"), [("llm.max_tokens=40", "longer"), ("llm.max_tokens=null", "reask")])
def test_what_stays_cut_is_a_failure_with_its_reason(limit: str, second: str, tmp_path: Path) -> None:
    """Without a limit of its own there is none to raise: the reply is asked for again with a correction."""
    model = Terse(needs=10**6)
    report = runs.run(tmp_path / "run", limit, "method.rounds=1", backend=model).report
    assert report.failures == {"choose: truncated": 24}
    assert {name.rpartition("/")[2] for name, _ in model.asked} == {"r1", second}
