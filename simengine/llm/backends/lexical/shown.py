"""What the lexical backend sees of a request: the slots that are in the rendered prompt, and nothing else."""

from __future__ import annotations

from simengine.llm.backends.lexical import text as lt
from simengine.llm.backends.lexical.score import Option
from simengine.llm.request import Request


class Shown:
    """The slots of a request, as far as they were shown; what was withheld reads as empty."""

    def __init__(self, request: Request) -> None:
        self._slots = request.slots
        self.json = bool(request.schema)
        self.noun = self.text("noun") or "item"
        self.descriptions = self.texts("options")
        titles = self.texts("titles")
        # Where the prompt lists no titles, what an item says of itself names it as well.
        self.titles = titles if len(titles) == len(self.descriptions) else tuple(map(lt.name, self.descriptions))
        self.options = tuple(map(self.option, self.descriptions, self.titles))
        # where there are two layers of memory, the fused one holds what is most telling first
        self.taste = lt.read_taste("\n".join(filter(None, map(self.text, ("fused", "memory")))), self.noun)

    def text(self, name: str) -> str:
        """A slot as one text, empty where it was not shown."""
        return " ".join(self.texts(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """A slot as a list of texts."""
        value = self._slots.get(name, ())
        return (value,) if isinstance(value, str) else value

    def limit(self, otherwise: int) -> int:
        """The word limit that the prompt states."""
        text = self.text("limit").strip()
        return int(text) if text.isdecimal() else otherwise

    def outcome(self) -> tuple[int, int] | None:
        """The positions of the preferred and the rejected option; ``None`` where the titles do not tell."""
        first, second = self._position(self.text("preferred")), self._position(self.text("rejected"))
        return None if first is None or second is None or first == second else (first, second)

    def option(self, description: str, title: str) -> Option:
        """A description as phrases: those of the item itself, and those that it has gathered."""
        # what all that is shown belongs to says nothing of any
        common = (self.noun, self.text("domain"))
        own = lt.distinct(lt.own_phrases(description, title), without=common)
        return Option(own, lt.distinct(lt.gathered_phrases(description), without=(*common, *own)))

    def _position(self, title: str) -> int | None:
        found = [at for at, known in enumerate(self.titles) if known and known == title]
        return found[0] if len(found) == 1 else None
