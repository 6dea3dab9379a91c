"""What people say of their own accord to a recommender, for the rules that plan: wishes in everyday English.

It knows no catalogue: what stands where a title may stand is taken for one, and the tools say whether there is such an
item. Where several may be listed, the whole is meant as well as its parts, since titles hold commas and `and`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_END = r"(?=[.!?]+(?:\s|\Z)|,? but\b|,? (?:and )?(?:I|i|what|something|anything)\b|\Z)"
_LIKED = re.compile(
    r"(?i)\bI (?:have |also |really |just |once |did )*"
    rf"(?:enjoyed|liked|loved|like|love|enjoy|adored?|finished|played|watched|read) (.+?){_END}"
)
_DISLIKED = re.compile(
    rf"(?i)\b(?:(?:don't|do not|didn't|did not|never) (?:like|enjoy|want|care for) |hated? |dislike[sd]? |but not )"
    rf"(.+?){_END}"
)
_SIMILAR = re.compile(
    rf"(?i)\b(?:similar to|(?:something|anything|more|ones?|others?|things|{{noun}}s?) like)(?: my)? (.+?){_END}"
)
_QUESTIONS = (
    (("price",), r"how (?:much|expensive) (?:is|are|does|costs?) (.+?)(?: cost| to buy)?"),
    (("price",), r"what (?:does (.+?) cost|is the price of (?P<of>.+?))"),
    (("release_date",), r"when (?:did|was|has) (.+?) (?:come out|came out|released|published|appear(?:ed)?|made)"),
    (("release_date",), r"(?:how old is|what year is) (.+?)(?: from)?"),
    (("brand", "developer", "publisher"), r"who (?:made|makes|developed|published|sells|wrote|is behind) (.+?)"),
    ((), r"(?:please )?(?:tell me (?:something |more )?(?:about|of)|what do you know (?:about|of)|do you know) (.+?)"),
)
_ASKED = [(columns, re.compile(rf"(?i)\A(?:and |so |ok(?:ay)?,? )?{text}\s*[.?!]*\Z")) for columns, text in _QUESTIONS]
_ABOUT = re.compile(
    rf"(?i)\b(?:something|anything|some|ones?|{{noun}}s?) (?:with|about|of the kind|in the style of) "
    rf"(?:the |an? |some )?(.+?)(?: in (?:it|them)\b|{_END})"
)
_NO_TITLE = re.compile(
    r"(?i)\A(?:something|anything|some|any|to|it|that|this|them|these|those|both|all|you|your|when|what|how|the ones?"
    r"|a (?!\S*[A-Z])|an (?!\S*[A-Z]))(?:\b|\Z)"
)
_PARTS = re.compile(r"\s*[,;/]\s*(?:and\s+|or\s+)?|\s+(?:and|or|&)\s+")
_QUOTED = re.compile(r"[\"“”«»]")

_ANEW = re.compile(r"(?i)\b(?:instead|rather|forget (?:it|that|about|all)|start (?:over|anew|afresh))\b")
_NOT = re.compile(r"(?i)\b(?:no|not|without|except|avoid|never|hate|dislike|don't|do not)\b[^,.;:!?]*\Z")
_ASKS = re.compile(
    r"(?i)\b(?:recommend|suggest|surprise me|show me|give me|find me|look(?:ing)? for|i(?:'d like| want| need)|more"
    r"|else|another|others?|popular|none of)\b"
)
_COURTESY = (
    "thank|thanks|thankyou|thx|cheers|great|good|nice|cool|ok|okay|fine|perfect|lovely|wonderful|super|bye|goodbye"
    "|hello|hi|hey|yes|yeah|yep|sure"
)
_BESIDE = (
    "morning|afternoon|evening|night|day|well|very|much|so|that|thats|is|was|all|for|now|today|you|your|help|are|how|it"
    "|this|a|lot|and|to|see|later|there|again"
)
_IDLE = re.compile(rf"(?i)(?=.*\b(?:{_COURTESY})\b)(?:\W*\b(?:{_COURTESY}|{_BESIDE})\b)+\W*")
_MOST_WORDS = 12  # of a title that is said and nothing else

_YEAR = r"((?:1[89]|20)\d\d)"
_YEARS = (
    (re.compile(rf"(?i)\bbetween {_YEAR} and {_YEAR}"), "release_date >= '{0}' AND release_date < '{1}+'"),
    (re.compile(rf"(?i)\b(?:after|newer than|later than|more recent than) {_YEAR}"), "release_date >= '{0}+'"),
    (re.compile(rf"(?i)\b(?:since|from) {_YEAR}(?: on(?:wards)?)?(?= (?:on|onwards)\b)"), "release_date >= '{0}'"),
    (re.compile(rf"(?i)\bsince {_YEAR}"), "release_date >= '{0}'"),
    (re.compile(rf"(?i)\b(?:before|older than|earlier than) {_YEAR}"), "release_date < '{0}'"),
    (re.compile(rf"(?i)\b(?:until|till|up to) {_YEAR}"), "release_date < '{0}+'"),
    (re.compile(rf"(?i)\b(?:in|from|of) {_YEAR}(?! on\b| onwards\b)(?!\d)"), "release_date LIKE '{0}%'"),
    (re.compile(r"(?i)\b((?:1[89]|20)\d)0'?s\b"), "release_date LIKE '{0}%'"),
    (re.compile(r"(?i)(?<!\d)([3-9])0'?s\b"), "release_date LIKE '19{0}%'"),
)
_AMOUNT = r"[$€£]?\s?(\d{1,3}(?:\.\d+)?)(?![\d%]|'?s\b| ?(?:times|years|titles|of)\b)"
_PRICES = (
    (re.compile(rf"(?i)\b(?:cheaper than|less than|under|below) {_AMOUNT}"), "price < {0}"),
    (re.compile(rf"(?i)\b(?:at most|up to|no more than|not more than|a maximum of) {_AMOUNT}"), "price <= {0}"),
    (re.compile(rf"(?i)\b(?:dearer than|more expensive than|over|above) {_AMOUNT}"), "price > {0}"),
    (re.compile(r"(?i)\bfor (free)\b|\bcosts? (nothing)\b"), "price = 0"),
)
_NEAR = re.compile(r"; near your request: (.+?)(?:; others: |\Z)")
_COLUMN = re.compile(r"\A(\w+) \((\w+)\)")


class Wishes(NamedTuple):
    """What a talk comes to.

    Titles that are ``liked`` or ``unwanted``, or that something ``similar`` is wanted to (of the last message that
    says so); ``conditions`` in SQL on years, prices and makers, of the last message that tells any of a kind. Of the
    last message: ``doubts``, conditions on tags that seem not to be there; its ``question`` as SQL; the ``look_up``
    that fails where no title that it likes is there; whether it ``asks`` for a recommendation, or is ``idle``, which is
    mere courtesy.
    """

    liked: tuple[str, ...]
    unwanted: tuple[str, ...]
    similar: tuple[str, ...]
    conditions: tuple[str, ...]
    doubts: tuple[str, ...]
    question: str
    look_up: str
    asks: bool
    idle: bool

    @property
    def narrow(self) -> bool:
        """Whether there is anything by which candidates become fewer."""
        return bool(self.similar or self.conditions or self.doubts)


def read(lines: Sequence[str], columns: Sequence[str], noun: str) -> Wishes:
    """The wishes in what a user has said, the oldest line first; ``columns`` are the table's as a planner sees them."""
    said = [line.replace("’", "'") for line in lines]
    request, current = said[-1], since_anew(said)
    similar, about = (re.compile(it.pattern.replace("{noun}", re.escape(noun))) for it in (_SIMILAR, _ABOUT))
    alike = [found for line in current if (found := list(_titles(similar, line)))]
    unwanted = [title for line in said for title in _titles(_DISLIKED, line)]
    liked = [title for line in said for title in _liked(similar, line)]
    idle = is_idle(request)
    question = "" if idle else _question(request, columns)
    if not (idle or question or similar.search(request)) and (bare := _bare(request, columns)):
        alike.append([bare])
    return Wishes(
        tuple(dict.fromkeys(it for it in liked if it not in unwanted)),
        tuple(dict.fromkeys(unwanted)),
        tuple(alike[-1]) if alike else (),
        (*_last(_YEARS, current), *_last(_PRICES, current), *_makers(current, columns)),
        tuple(_doubts(about, request, columns)),
        question,
        _look_up([title for title in _liked(similar, request) if not _is_told(title, columns)]),
        bool(_ASKS.search(request) or about.search(request) or alike or liked),
        idle,
    )


def since_anew(lines: Sequence[str]) -> Sequence[str]:
    """The lines from the last one on in which a user wants something else than before."""
    last = max((at for at, line in enumerate(lines) if _ANEW.search(line)), default=0)
    return lines[last:]


def is_idle(request: str) -> bool:
    """Whether a message is nothing but courtesy."""
    return _IDLE.fullmatch(request.replace("'", "")) is not None


def is_refused(name: str, lines: Iterable[str]) -> bool:
    """Whether what a user said last of a name, a tag for instance, is that he does not want it."""
    found = [line[: at.start()] for line in lines for at in re.finditer(re.escape(name.casefold()), line.casefold())]
    return bool(found) and _NOT.search(found[-1].replace("’", "'")) is not None


def known(condition: str, columns: Sequence[str]) -> bool:
    """Whether the table has the column of a condition; nobody can tell where none are shown."""
    names = [found[1] for column in columns if (found := _COLUMN.match(column))]
    return not names or any(re.search(rf"\b{name}\b", condition) for name in names)


def _titles(pattern: re.Pattern[str], line: str) -> Iterator[str]:
    """What stands where titles stand: first the whole, then its parts where it may be a list."""
    for found in pattern.finditer(line):
        text = _QUOTED.sub("", found[1]).strip(" ,;:")
        if text and not _NO_TITLE.match(text):
            parts = (part for part in _PARTS.split(text) if part and not _NO_TITLE.match(part))
            yield from dict.fromkeys((text, *parts))


def _liked(similar: re.Pattern[str], line: str) -> Iterator[str]:
    return _titles(_LIKED, _DISLIKED.sub("", similar.sub("", line)))


def _look_up(titles: Sequence[str]) -> str:
    """The look-up that fails where none of these titles is there."""
    listed = ", ".join(f"'{_escaped(title)}'" for title in titles)
    return f"SELECT title FROM items WHERE title IN ({listed})" if titles else ""


def _question(request: str, columns: Sequence[str]) -> str:
    """The look-up that answers a question of one title."""
    there = [found[1] for column in columns if (found := _COLUMN.match(column)) and found[2] != "prose"]
    for asked, pattern in _ASKED:
        found = pattern.match(request)
        title = next((text for text in found.groups() if text), "") if found else ""
        if title and not _NO_TITLE.match(title):
            wanted = [name for name in asked if name in there] or asked or [it for it in there if it != "id"]
            names = ", ".join(dict.fromkeys(("title", *wanted)))
            return f"SELECT {names} FROM items WHERE title = '{_escaped(title)}'"
    return ""


def _bare(request: str, columns: Sequence[str]) -> str:
    """A message that may be a title alone: few words without an end of a sentence, in which nothing else is found."""
    text = _QUOTED.sub("", request).strip()
    if not text or text[-1] in ".!?,:" or len(text.split()) > _MOST_WORDS or _NO_TITLE.match(text):
        return ""
    others = (_ASKS, _ANEW, _LIKED, _DISLIKED)
    return "" if any(pattern.search(text) for pattern in others) or _is_told(text, columns) else text


def _doubts(about: re.Pattern[str], request: str, columns: Sequence[str]) -> list[str]:
    """What something is wanted with, where no tag is like it, as conditions: the tool says that there is none."""
    named = [found[1].strip(" ,;:") for found in about.finditer(request)]
    return [f"tags LIKE '%|{_escaped(name)}|%'" for name in named if name and not _is_told(name, columns)]


def _is_told(text: str, columns: Sequence[str]) -> bool:
    """Whether a text names a value that the columns are shown with, or tells a year or a price."""
    named = any(name.casefold() in text.casefold() for column in columns for name in _near(column))
    return named or any(pattern.search(text) for pattern, _ in (*_YEARS, *_PRICES))


def _last(patterns: Sequence[tuple[re.Pattern[str], str]], lines: Sequence[str]) -> list[str]:
    """The conditions of one kind of the last line that tells any."""
    for line in reversed(lines):
        made = []
        for pattern, condition in patterns:
            made += [_filled(condition, [it for it in found.groups() if it]) for found in pattern.finditer(line)]
            line = pattern.sub(" ", line)
        if made:
            return list(dict.fromkeys(made))
    return []


def _makers(lines: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Whom the last line that names one wants something by: a name among the values that a column is shown with."""
    for line in reversed(lines):
        for column in columns:
            found = _COLUMN.match(column)
            for name in _near(column) if found and found[2] == "text" else ():
                if found and re.search(rf"(?i)\b(?:by|from) {re.escape(name)}(?!\w)", line):
                    return [f"{found[1]} = '{_escaped(name)}'"]
    return []


def _near(column: str) -> list[str]:
    """The values near the request that a column is shown with."""
    found = _NEAR.search(column)
    return found[1].split(", ") if found else []


def _filled(condition: str, values: Sequence[str]) -> str:
    """The condition with what was said; ``+`` behind a year stands for the next one."""
    text = condition.format(*values)
    return re.sub(r"'(\d{4})\+'", lambda year: f"'{int(year[1]) + 1}'", text)


def _escaped(text: str) -> str:
    return _QUOTED.sub("", text).strip().replace("'", "''")
