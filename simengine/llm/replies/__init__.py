"""What comes back from a language model as text: each reply format both writes and reads here.

One module per format (``choice``, ``ranking``, ``decision``, ``talk`` and so on), each with
``write(...) -> str`` and ``read(text, ...)``, which returns the value or raises :class:`Unreadable`. Each has a JSON
form beside its text form: ``JSON`` says what is asked for, ``write(..., json=True)`` writes it, ``read_json`` reads it.
Reading tolerates what models are known to do to a format, and never guesses.
"""

from simengine.llm.replies.clean import require_whole
from simengine.llm.replies.unreadable import REASONS, Unreadable

__all__ = ["REASONS", "Unreadable", "require_whole"]
