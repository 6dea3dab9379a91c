"""What a scenario may say of InteRecAgent: how it plans, from how many demonstrations, how often it plans again."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt

from simengine.methods.interec.demonstrations import Pair
from simengine.methods.interec.store import Store
from simengine.methods.method import Settings
from simengine.rankers import known_ranker


class InteRecSettings(Settings):
    """``recommender`` says who talks with the users: the ``agent``, or a model that it is compared with (section 4.1).

    ``bare`` is a model that sees the talk alone. ``chat_rec`` is one that picks from as many ``candidates``, those
    nearest to the user's words by the scenario's embeddings. Both make one call a turn, and of the settings below
    ``reply_words`` alone says something of them.

    ``planning: plan_first`` makes the whole plan in one call, ``step_by_step`` takes one tool a call (section 3.3).

    ``demonstrations`` are shown to whoever plans, those nearest to the request; the paper shows 3. They are of our own
    writing, and those of the file ``store``, if there is one. ``reflection`` is how often a critic's rejection lets the
    agent plan again (section 3.4); with 0 there is no critic. ``preference`` is the ranker that scores what a user may
    prefer: ``sasrec`` in the paper, which needs cornac. ``reply_words`` is the length that is asked of a reply.

    ``window`` is how many tokens of a talk a prompt has room for; what does not fit is forgotten, unless with
    ``long_term`` what it tells of the user's tastes is kept (section 3.2). Sessions and one-turn evaluation have no
    long-term memory, as in the paper.
    """

    kind: Literal["interec"]
    recommender: Literal["agent", "bare", "chat_rec"] = "agent"
    candidates: PositiveInt = 20
    planning: Literal["plan_first", "step_by_step"] = "plan_first"
    demonstrations: NonNegativeInt = 3
    store: Store | None = None
    reflection: Annotated[int, Field(ge=0, le=3)] = 3
    preference: Annotated[str, AfterValidator(known_ranker)] = "itemknn"
    reply_words: PositiveInt = 80
    window: PositiveInt = 3000
    long_term: bool = False

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The demonstrations of the store."""
        return self.store.pairs if self.store else ()
