"""Odd values of item tables made plain by stated rules: lists, markup, prices, articles behind their titles."""

from __future__ import annotations

import re
from typing import Any

from simengine.data.items import readable

_AMOUNT = r"(?:US)?\s?\$?\s?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
_PRICE = re.compile(rf"(?:from\s+)?{_AMOUNT}(?:\s*[-\u2013\u2014]\s*{_AMOUNT})?", re.IGNORECASE)
_FREE = re.compile(r"free(?: to play| to use)?", re.IGNORECASE)

_ARTICLES = "The|A|An|Le|La|Les|Un|Une|Il|Lo|Gli|Los|Las|El|Der|Die|Das|Ein|Eine|De|Het|Den|Det|En|Et|O|Os|As|L'"
_MOVED = re.compile(rf"([^()]*[^()\s]), ({_ARTICLES})(?=\)| \(|$)")
_YEAR = re.compile(r"\((\d{4})\)\s*$")


def flat(value: Any) -> str:
    """A value as one line of text, white space as single blanks; of a list its parts that are not empty, by ``; ``.

    Nothing (``null``, ``[]``, ``{}``) is empty text.
    """
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list | tuple):
        return "; ".join(filter(None, map(flat, value)))
    return "" if value is None or value == {} else flat(str(value))


def prose(value: Any) -> str:
    """Text of some length as a person would read it: without markup, the parts of a list one after the other."""
    parts = value if isinstance(value, list | tuple) else [value]
    return " ".join(filter(None, (readable(flat(part)) for part in parts)))


def price(value: Any) -> tuple[str, bool]:
    """An amount of money as a plain number, and whether that was to be read; no amount is empty text.

    A number is one amount. So is a text of nothing but an amount, with a dollar sign and commas between thousands or
    without; of a span (``$4.99 - $12.99``, ``from 4.99``) it is the lowest. ``Free to play`` is 0. A text without a
    digit, as a dash, is no amount, as are ``null`` and a negative number. Any other text cannot be read.
    """
    if isinstance(value, bool) or value is None or (isinstance(value, int | float) and not 0 <= value < 1e9):
        return "", True
    if isinstance(value, int | float):
        return f"{value:.15g}", True
    text = flat(value)
    if _FREE.fullmatch(text):
        return "0", True
    found = _PRICE.fullmatch(text)
    if found is None:
        return "", not any(map(str.isdigit, text))
    amounts = [float(amount.replace(",", "")) for amount in found.groups() if amount]
    return f"{min(amounts):.15g}", True


def spoken_title(title: str) -> str:
    """A title with its article in front: ``Matrix, The (1999)`` is ``The Matrix (1999)``, a second title likewise."""

    def turned(match: re.Match[str]) -> str:
        head, article = match[1], match[2]
        blanks = len(head) - len(head.lstrip())
        return head[:blanks] + article + ("" if article.endswith("'") else " ") + head[blanks:]

    return _MOVED.sub(turned, flat(title))


def year_of(title: str) -> str:
    """The year in brackets at the end of a title; empty where there is none."""
    found = _YEAR.search(title)
    return found[1] if found else ""
