"""What a scenario may say of AgentCF++, and which variants of the paper its settings make (arXiv 2502.13843)."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeInt, PositiveInt, model_validator

from simengine.methods.method import Settings
from simengine.methods.turn import OverLimit


class AgentCFppSettings(Settings):
    """AgentCF++ as the paper has it, but for what ``dual`` and ``shared`` take out (section 4.1.3).

    ``dual``: a separate and a fused memory for each domain; without it a user has one memory for all (AgentCF +
    shared). ``shared``: interest groups and what their members took lately; without it there are none (AgentCF + dual).
    ``groups_by: history`` groups users by what they have taken instead of by their interests (AgentCF++ w/o group).

    ``user_words`` and ``item_words`` are the lengths that the prompts ask for, each memory of a user by itself;
    ``over_limit`` says what becomes of longer texts: ``keep`` them (the report counts them), ``reask`` once, ``cut``.
    ``rounds`` is how often a user chooses and reflects in one step, at most, while the choice is wrong.

    Groups are formed anew behind every ``every`` training interactions, and each time take effect ``lag`` training
    interactions later (at the latest behind the last one), so that nobody has to wait for the forming; until the first
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
    every: PositiveInt | None = None
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
                "say behind how many training interactions the groups are formed anew, as in `every: 200`; "
                "`shared: false` does without groups"
            )
        if not self.shared and self.every is not None:
            raise ValueError("`every` says when groups are formed, and without `shared` there are none")
        return self

    def grouped_behind(self, interactions: int) -> int | None:
        """Behind the first formation, or later by the lag, but not behind the last interaction."""
        if self.every is None or self.every > interactions:
            return None
        return min(self.every + self.lag, interactions)
