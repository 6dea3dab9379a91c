"""The embedded rule-based model: no language model, but text in the same formats, by word and phrase overlap.

``model`` answers by task; what belongs to one task, or to one study, stands in a file of its own.
"""

from simengine.llm.backends.lexical.model import Lexical

__all__ = ["Lexical"]
