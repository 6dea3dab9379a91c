"""What a scenario may say of AgentCF++, and which variants of the paper its settings make (arXiv 2502.13843)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, NonNegativeInt, PositiveInt, model_validator

from simengine.data import Unit
from simengine.errors import InputError
from simengine.methods.method import Settings
from simengine.methods.turn import OverLimit

_PERIOD = re.compile(r"(\d+(?:\.\d+)?) ?(steps?|s|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def _known_every(every: int | str) -> int | str:
    if (every <= 0) if isinstance(every, int) else not ((found := _PERIOD.fullmatch(every)) and float(found[1])):
        raise ValueError("say a number of interactions, or a period as `1w`, `12h`, `2 steps`")
    return every


class AgentCFppSettings(Settings):
    """AgentCF++ as the paper has it, but for what ``dual`` and ``shared`` take out (section 4.1.3).

    ``dual``: a separate and a fused memory for each domain; without it a user has one memory for all (AgentCF +
    shared). ``shared``: interest groups and what their members took lately; without it there are none (AgentCF + dual).
    ``groups_by: history`` groups users by what they have taken instead of by their interests (AgentCF++ w/o group).

    ``user_words`` and ``item_words`` are the lengths that the prompts ask for, each memory of a user by itself;
    ``over_limit`` says what becomes of longer texts: ``keep`` them (the report counts them), ``reask`` once, ``cut``.
    ``rounds`` is how often a user chooses and reflects in one step, at most, while the choice is wrong.

    Groups are formed anew behind every ``every`` training interactions, or, where that is a period (``1w``, ``12h``, on
    the step clock ``2 steps``), behind the last one of each period that another follows; periods are counted from the
    clock's zero. Each time they take effect ``lag`` training interactions later (at the latest behind the last one;
    where newer ones have been formed by then, these do), so that nobody has to wait for the forming; until the first
    take effect there are none. A user is asked for at most ``tags``, all tags are merged into at most ``clusters``, and
    of these the ``kept`` largest become groups; by history, users fall into ``kept`` groups. A group's view shows the
    last ``view`` interactions of its members.

    ``online`` lets agents go on learning: from the target of each ranking of one stage, at its time, once it is ranked.
    """

    kind: Literal["agentcfpp"]
    rounds: PositiveInt = 1
    user_words: PositiveInt = 180
    item_words: PositiveInt = 50
    over_limit: OverLimit = "keep"
    dual: bool = True
    shared: bool = True
    groups_by: Literal["interests", "history"] = "interests"
    every: Annotated[int | str, AfterValidator(_known_every)] | None = None
    lag: NonNegativeInt = 0
    tags: PositiveInt = 8
    clusters: PositiveInt = 384
    kept: PositiveInt = 10
    view: PositiveInt = 5
    online: bool = False

    @model_validator(mode="after")
    def _fits(self) -> AgentCFppSettings:
        if self.shared and self.every is None:
            raise ValueError(
                "say behind how many training interactions the groups are formed anew, as in `every: 200`, or in what "
                "period, as in `every: 1w`; `shared: false` does without groups"
            )
        if not self.shared and self.every is not None:
            raise ValueError("`every` says when groups are formed, and without `shared` there are none")
        return self

    def formed_behind(self, times: Sequence[int | float], unit: Unit) -> Sequence[int]:
        """Behind which training interactions, counted from 1, groups are formed; ``times`` are theirs, in order.

        Raises :class:`InputError` for a period that the clock does not count.
        """
        if self.every is None or isinstance(self.every, int):
            return range(self.every, len(times) + 1, self.every) if self.every else ()
        span = self._span(self.every, unit)
        return [row for row in range(1, len(times)) if times[row - 1] // span != times[row] // span]

    def grouped_behind(self, times: Sequence[int | float], unit: Unit) -> int | None:
        """Behind the first formation, or later by the lag, but not behind the last interaction."""
        formed = self.formed_behind(times, unit)
        return min(formed[0] + self.lag, len(times)) if formed else None

    @staticmethod
    def _span(every: str, unit: Unit) -> float:
        """The length of a period in the unit of the clock."""
        found = _PERIOD.fullmatch(every)
        assert found is not None
        steps = found[2].startswith("step")
        if steps != (unit == "step"):
            raise InputError(
                f"groups cannot be formed every {every}: the clock of these data counts "
                f"{'steps' if unit == 'step' else 'time'}",
                field="method.every",
                remedy="say `2 steps` for data on the step clock, `1w` for data with timestamps, or a number of "
                "interactions",
            )
        return float(found[1]) * (1 if steps else _SECONDS[found[2]] * (1000 if unit == "ms" else 1))
