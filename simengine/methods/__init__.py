"""What agents do: each method says which events there are and what happens in them; ``turn`` is how an agent acts."""

from simengine.methods.catalog import METHODS, MethodSettings, Registered, make, prompts, register
from simengine.methods.method import Method, Ranks

__all__ = ["METHODS", "Method", "MethodSettings", "Ranks", "Registered", "make", "prompts", "register"]
