"""What agents do: each method says which events there are and what happens in them; ``turn`` is how an agent acts."""

from simengine.methods.catalog import METHODS, MethodSettings, make
from simengine.methods.method import Method, Ranks

__all__ = ["METHODS", "Method", "MethodSettings", "Ranks", "make"]
