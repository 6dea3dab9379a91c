"""Why a reply that holds no answer holds none: a refusal, the assistant speaking, another language, or none of these.

Asked after a parser has failed, and of a memory text before it is accepted. The rules know English; where a parser has
failed, a lapse that they miss is still unreadable, only under that parser's general reason.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from simengine.llm.replies.clean import first_words
from simengine.llm.replies.unreadable import Reason, Unreadable

_OPENING = 200  # characters: a lapse shows at once, while a self-introduction may say "sorry" later on
_REFUSAL = re.compile(
    r"\bI(?:['’]m| am)?\s+(?:(?:really|so|very|deeply)\s+)?(?:sorry|afraid)\b"
    r"|\A\W*(?:my\s+)?(?:sorry|apologies)\b|\bI\s+(?:must\s+)?(?:apologi[sz]e|decline|refuse)\b"
    r"|\bI(?:['’]m| am)\s+(?:unable|not\s+able|not\s+allowed)\s+to\b"
    r"|\bI\s+(?:cannot|can\s*not|can['’]t|could\s+not|won['’]t|will\s+not)\s+"
    r"(?:pretend|help|assist|choose|pick|select|rank|comply|provide|answer|fulfil\w*|role|act|continue|engage)",
    re.IGNORECASE,
)
_OFF_ROLE = re.compile(
    r"\bas\s+an?\s+(?:AI|artificial\s+intelligence|(?:large\s+)?language\s+model|assistant|chatbot)\b"
    r"|\bI(?:['’]m| am)\s+(?:just\s+|only\s+)?an?\s+(?:AI|assistant|chatbot|(?:large\s+)?language\s+model)\b"
    r"|\bhow\s+(?:may|can|could|might)\s+I\s+(?:help|assist)\b"
    r"|\b(?:may|can|shall)\s+I\s+(?:help|assist)\s+you\b"
    r"|\bI(?:['’]m| am)\s+(?:happy|glad|here|ready)\s+to\s+(?:help|assist)\b"
    r"|\bI(?:['’]d| would)\s+be\s+(?:happy|glad)\s+to\s+(?:help|assist)\b",
    re.IGNORECASE,
)
_FOREIGN_TEXT = (
    "sí oui ja nein nee não sim elijo escojo prefiero eu escolho je choisis préfère ich wähle nehme bevorzuge scelgo "
    "preferisco porque weil perché parce pero aber mais quiero möchte voudrais"
)
_FOREIGN = frozenset(_FOREIGN_TEXT.split())
_ENGLISH_TEXT = "the a an i you my and or of to is it because choose chosen prefer not yes no"
_ENGLISH = frozenset(_ENGLISH_TEXT.split())


def _is_other_script(text: str, shown: str) -> bool:
    """True where most letters of ``text`` belong to writing systems of which ``shown`` has no letter."""
    if text.isascii() and re.search("[A-Za-z]", shown):
        return False  # both are Latin: nearly every reply is, and naming each letter's script takes long
    known = set(_scripts(shown))
    found = [script not in known for script in _scripts(text)]
    return bool(known) and 2 * sum(found) > len(found)


def explain(text: str, shown: str, otherwise: Reason, detail: str) -> Unreadable:
    """The error for a reply without an answer: its lapse where it has one, else ``otherwise`` with ``detail``.

    ``shown`` is what the model was given, by whose writing systems and words the language is judged.
    """
    opening = text[:_OPENING]
    refused, off_role = _REFUSAL.search(opening), _OFF_ROLE.search(opening)
    return _lapse(text, shown, refused, off_role) or Unreadable(otherwise, detail)


def refuse_lapse(text: str, shown: str) -> None:
    """Raise :class:`Unreadable` where a text in its right place is a lapse all the same.

    It must begin as one: further on, the same words may belong to a title (``I'm Sorry``) or to a taste.
    """
    error = _lapse(text, shown, _REFUSAL.match(text), _OFF_ROLE.match(text))
    if error:
        raise error


def _lapse(text: str, shown: str, refused: object, off_role: object) -> Unreadable | None:
    if refused:
        return Unreadable("refusal", f"the reply was a refusal: {first_words(text)}")
    if off_role:
        return Unreadable("off_role", f"the reply spoke as an assistant, not in the role: {first_words(text)}")
    words, known = _words(text[:_OPENING]), _words(shown)
    if _is_other_script(text, shown) or (words & _FOREIGN - known and not words & _ENGLISH):
        return Unreadable("other_language", f"the reply is in another language than the prompt: {first_words(text)}")
    return None


def _words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"[^\W\d_]+", text)}


def _scripts(text: str) -> Iterable[str]:
    # The first word of a letter's Unicode name is its writing system (LATIN, CJK, CYRILLIC ...).
    return (unicodedata.name(char, "UNKNOWN").split()[0] for char in text if char.isalpha())
