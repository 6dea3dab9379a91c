"""Shows how an answer of InteRecAgent came about, attempt by attempt: the plan, what each tool did, the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from simengine.scenario.attempts import Attempt, Used

_WIDTH = 120  # characters of a tool's input


def lines(attempts: Iterable[Attempt]) -> Iterator[Text]:
    """The attempts of one turn, in lines."""
    for number, attempt in enumerate(attempts, 1):
        yield Text.assemble((f"  attempt {number}: ", "bold"), attempt.thought or "no plan")
        yield from map(_use, attempt.used)
        if not attempt.used:
            yield Text("    no tool was used")
        if attempt.reply:
            yield Text.assemble(("    reply: ", "bold"), attempt.reply)
        if attempt.accepted is not None:
            verdict = "accepts" if attempt.accepted else "rejects"
            yield Text.assemble((f"    the critic {verdict} it: ", "bold"), attempt.advice)


def _use(used: Used) -> Text:
    given = used.given if len(used.given) <= _WIDTH else f"{used.given[: _WIDTH - 1]}…"
    kept = {"first": ", the first of more", "sample": ", a sample of more"}.get(used.cut, "")
    came = (f"error {used.code}", "red") if used.code else ("ok", "green")
    return Text.assemble("    ", (used.tool, "cyan"), f" {given}  {used.before} -> {used.after}{kept}  ", came)
