"""Seconds or milliseconds: decided for all logs of a source together, as their rows go by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from simengine.data.order import MILLISECONDS_BELOW, SECONDS_BELOW
from simengine.errors import InputError

Unit: TypeAlias = Literal["s", "ms"]


@dataclass(frozen=True)
class _Seen:
    time: float
    file: str
    line: int


class Units:
    """Keeps the smallest and the largest timestamp that has gone by; the rule is that of ``timestamp_unit``."""

    def __init__(self) -> None:
        self._least: _Seen | None = None
        self._most: _Seen | None = None
        self.span = (np.inf, -np.inf)

    def see(self, times: Sequence[int | float], lines: Sequence[int], file: str) -> None:
        """Some more timestamps, and the lines of ``file`` that they stand in."""
        array = np.array(times, np.float64)
        self.span = min(self.span[0], float(array.min())), max(self.span[1], float(array.max()))
        size = np.abs(array)
        low, high = int(size.argmin()), int(size.argmax())
        if self._least is None or size[low] < abs(self._least.time):
            self._least = _Seen(times[low], file, lines[low])
        if self._most is None or size[high] > abs(self._most.time):
            self._most = _Seen(times[high], file, lines[high])

    def decide(self) -> Unit:
        """The unit of all that was seen. Both units, or neither, is an error that names the lines."""
        least, most = self._least, self._most
        assert least is not None and most is not None
        if abs(most.time) >= MILLISECONDS_BELOW:
            raise InputError(
                f"timestamp {most.time:.17g} is neither seconds nor milliseconds since 1970",
                remedy="Divide the timestamps down to milliseconds.",
                file=most.file,
                line=most.line,
            )
        late = abs(most.time) >= SECONDS_BELOW
        if late and abs(least.time) < SECONDS_BELOW:
            place = f"line {least.line}" if least.file == most.file else f"{least.file}:{least.line}"
            raise InputError(
                f"timestamp {most.time:.17g} looks like milliseconds, {least.time:.17g} in {place} like seconds",
                remedy="Use one unit in all files.",
                file=most.file,
                line=most.line,
            )
        return "ms" if late else "s"
