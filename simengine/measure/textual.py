"""Whether a text names a title by the rule of InteRecAgent's authors, for comparison with hits by item id."""

from __future__ import annotations

import re

from rapidfuzz import fuzz

THRESHOLD = 80
"""The least similarity, in percent, of the title and the part of the text that is most like it."""

_NEITHER = re.compile(r"[^a-z0-9\s]")


def named(text: str, title: str) -> bool:
    """Whether the text is taken to name the title: by ``partial_ratio`` of both, in lower case, with ASCII alone.

    So ``b`` is named by nearly every text, ``Portal`` by one that names ``Portal 2``, and a title in another writing
    system by none: that is why hits go by ids, and this rule stands beside them only.
    """
    plain, known = (_NEITHER.sub("", it.lower()) for it in (text, title))
    return bool(known.strip()) and fuzz.partial_ratio(plain, known) > THRESHOLD
