"""The program as the tests of commands call it: arguments in, exit status and both outputs back."""

from __future__ import annotations

from collections.abc import Callable

Command = Callable[..., tuple[int, str, str]]
