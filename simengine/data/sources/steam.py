"""Steam: reviews as JSON lines or Python literals, games in the same form or as CSV."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from simengine.data.csvfile import read_csv
from simengine.data.sources.catalogue import Catalogue, Found
from simengine.data.sources.gather import LogFile, Raw
from simengine.data.sources.lines import Lines, Watch, first_line
from simengine.data.sources.text import flat, price
from simengine.data.table import Wanted
from simengine.errors import InputError

COLUMNS = ("item_id", "title", "category", "tags", "price", "developer", "publisher", "release_date")

# What a field is called in the dumps that go round; of several the first that is there counts.
_REVIEW = {
    "user": ("username", "user_id", "steamid"),
    "item": ("product_id", "item_id", "app_id", "appid"),
    "time": ("date", "timestamp_created", "timestamp", "unix_timestamp"),
    "label": ("recommend", "recommended", "voted_up", "is_recommended"),
}
_GAME = {
    "item_id": ("id", "app_id", "appid", "AppID", "steam_appid"),
    "title": ("app_name", "title", "name", "Name"),
    "category": ("genres", "genre", "Genre", "Genres"),
    "tags": ("tags", "Tags", "Categories", "categories"),
    "price": ("price", "Price_USD", "Price"),
    "developer": ("developer", "Developer", "developers"),
    "publisher": ("publisher", "Publisher", "publishers"),
    "release_date": ("release_date", "Release_Date"),
}
_LISTS = ("category", "tags")


class Steam:
    """The files of a folder: reviews are joined to games by the id of the product. All games belong to the data."""

    def __init__(self, folder: Path) -> None:
        self._games = single(folder, "games")
        self.logs = [LogFile(single(folder, "reviews"), _rows)]

    def catalogue(self, found: Found, watch: Watch) -> Catalogue:
        """The table of games."""
        catalogue = games(self._games, found, watch)
        if not catalogue.joined:
            raise catalogue.no_overlap(self._games)
        return catalogue


def games(path: Path, found: Found, watch: Watch) -> Catalogue:
    """The table of the games in a file."""
    catalogue = Catalogue(COLUMNS, found, whole=True)
    for game in _games(path, catalogue, watch):
        amount, read = price(game["price"])
        if catalogue.wants(item := flat(game["item_id"])):
            texts = {name: flat(value) for name, value in game.items()} | {"item_id": item, "price": amount}
            catalogue.add(item, (tuple(texts[name] for name in COLUMNS), read))
    return catalogue


def _rows(lines: Lines) -> Iterator[Raw]:
    """The reviews of a file, whose first line decides what fields it has; a recommendation is a rating of 1 or 0."""
    names: dict[str, str] = {}
    for number, row in _objects(lines):
        names = names or _names(_REVIEW, row, ("user", "item", "time"), lines.file, number)
        try:
            user, item, time = (row[names[role]] for role in ("user", "item", "time"))
            label = float(row[names["label"]]) if "label" in names else math.nan
            yield number, str(user), str(item), "", label, _time(time)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"this review cannot be read: {error}",
                remedy=f"Each has {', '.join(names.values())}, as the first one; a date is like 2017-12-31.",
                file=lines.file,
                line=number,
            ) from None


def _time(value: Any) -> int | float:
    """A time as it is, or the second at which a day begins (UTC)."""
    if isinstance(value, int | float):
        return value
    return int(datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())


def _games(path: Path, catalogue: Catalogue, watch: Watch) -> Iterator[Mapping[str, Any]]:
    """Each game's values by column."""
    if path.name.removesuffix(".gz").endswith(".csv"):
        yield from _from_csv(path, catalogue)
        return
    lines = Lines(path)
    for number, row in _objects(lines):
        yield {name: next((row[key] for key in keys if row.get(key) is not None), None) for name, keys in _GAME.items()}
        catalogue.tell(watch, lines, number)
    catalogue.digests["items"] = lines.sha256


def _from_csv(path: Path, catalogue: Catalogue) -> Iterator[Mapping[str, Any]]:
    """The games of a CSV file; its lists are separated by commas."""
    header = first_line(path).decode("utf-8", "replace").split(",")
    names = _names(_GAME, header, ("item_id", "title"), str(path), 1)
    table, _ = read_csv(path, Wanted(names))
    catalogue.digests["items"] = table.sha256
    columns = {role: table.texts(name) for role, name in names.items()}
    for row in range(len(table)):
        game: dict[str, Any] = {role: columns[role][row] if role in columns else None for role in COLUMNS}
        yield game | {role: [part.strip() for part in (game[role] or "").split(",")] for role in _LISTS}


def _names(
    known: Mapping[str, Sequence[str]],
    row: Sequence[str] | Mapping[str, Any],
    needed: Sequence[str],
    file: str,
    line: int,
) -> dict[str, str]:
    """What each field is called here."""
    names = {role: name for role, keys in known.items() if (name := next((key for key in keys if key in row), None))}
    for role in needed:
        if role not in names:
            raise InputError(
                f"there is no field for the {role}; the fields are {', '.join(row)}",
                remedy=f"Looked for {', '.join(known[role])}.",
                file=file,
                line=line,
            )
    return names


def _objects(lines: Lines) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object that each line holds: JSON, or a literal of Python as the dumps of McAuley's group have it."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    for number, line in lines:
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line) if line.startswith(b'{"') else _literal(line)
        except (msgspec.DecodeError, ValueError, SyntaxError, MemoryError, RecursionError):
            raise InputError(
                f"this is neither a JSON object nor a Python literal of one: {line[:80]!r}",
                remedy="Give one object a line.",
                file=lines.file,
                line=number,
            ) from None


def _literal(line: bytes) -> dict[str, Any]:
    value = ast.literal_eval(line.decode())
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def single(folder: Path, what: str) -> Path:
    """The one file with this word in its name."""
    paths = sorted(path for path in folder.iterdir() if what in path.name.lower() and path.is_file())
    if len(paths) != 1:
        here = ", ".join(path.name for path in paths) or "none"
        raise InputError(
            f"one file of {what} is wanted, here is {here}",
            remedy=f"Looked for one file with {what} in its name.",
            file=str(folder),
        )
    return paths[0]
