"""What a scenario may say of InteRecAgent: how it plans, from how many demonstrations, how often it plans again."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt

from simengine.methods.method import Settings
from simengine.rankers import RANKERS


def _known(name: str) -> str:
    if name not in RANKERS:
        raise ValueError(f"there is no such ranker; there are {', '.join(RANKERS)}")
    return name


class InteRecSettings(Settings):
    """``planning: plan_first`` makes the whole plan in one call, ``step_by_step`` takes one tool a call (section 3.3).

    ``demonstrations`` are shown to whoever plans, those nearest to the request; the paper shows 3. ``reflection`` is
    how often a critic's rejection lets the agent plan again (section 3.4); with 0 there is no critic. ``preference``
    is the ranker that scores what a user may prefer: ``sasrec`` in the paper, which needs cornac. ``reply_words`` is
    the length that is asked of a reply.
    """

    kind: Literal["interec"]
    planning: Literal["plan_first", "step_by_step"] = "plan_first"
    demonstrations: NonNegativeInt = 3
    reflection: Annotated[int, Field(ge=0, le=3)] = 3
    preference: Annotated[str, AfterValidator(_known)] = "itemknn"
    reply_words: PositiveInt = 80
