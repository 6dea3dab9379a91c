"""MovieLens in its three forms: 100K (``u.data``), 1M and 10M (``ratings.dat``), later ones (``ratings.csv``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from simengine.data.csvfile import read_csv
from simengine.data.sources.catalogue import Catalogue, Found
from simengine.data.sources.gather import LogFile, Raw
from simengine.data.sources.lines import Lines, Watch, whole_text
from simengine.data.sources.text import flat, spoken_title, year_of
from simengine.data.table import Wanted
from simengine.errors import InputError

COLUMNS = ("item_id", "title", "category", "release_year")

_GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
_NO_GENRE = "(no genres listed)"

_Movie: TypeAlias = tuple[str, str, str]
"""Id, title as written, genres separated by bars."""


@dataclass(frozen=True)
class _Form:
    """The files of a form: of ratings with their separator, and of movies with their reader."""

    ratings: str
    separator: bytes
    header: bool
    movies: str
    read: Callable[[Path], tuple[list[_Movie], str, str]]


class MovieLens:
    """The files of a folder. All movies of the table belong to the data, rated or not."""

    def __init__(self, folder: Path) -> None:
        self._form = next((form for form in _FORMS if (folder / form.ratings).is_file()), None)
        if self._form is None or not (folder / self._form.movies).is_file():
            pairs = "; ".join(f"{form.ratings} and {form.movies}" for form in _FORMS)
            raise InputError("there are no files of MovieLens", remedy=f"Looked for {pairs}.", file=str(folder))
        self._movies = folder / self._form.movies
        rows = partial(_rows, separator=self._form.separator, header=self._form.header)
        self.logs = [LogFile(folder / self._form.ratings, rows)]

    def catalogue(self, found: Found, watch: Watch) -> Catalogue:
        """The table of movies: titles with the article in front, the year left where it is and given apart too."""
        assert self._form is not None
        catalogue = Catalogue(COLUMNS, found, whole=True)
        movies, catalogue.digests["items"], encoding = self._form.read(self._movies)
        for item, title, genres in movies:
            if catalogue.wants(item):
                genres = "" if genres == _NO_GENRE else genres
                catalogue.add(item, ((item, spoken_title(title), flat(genres.split("|")), year_of(title)), True))
        if not catalogue.joined:
            raise catalogue.no_overlap(self._movies)
        if encoding != "UTF-8":
            catalogue.said.append(f"{self._movies.name} is no UTF-8, and is read as {encoding}")
        return catalogue


def _rows(lines: Lines, separator: bytes, header: bool) -> Iterator[Raw]:
    """User, item, rating, time of each line."""
    for number, line in lines:
        if header and number == 1:
            continue
        try:
            user, item, rating, time = line.split(separator)
            yield number, user.decode(), item.decode(), "", float(rating), float(time)
        except ValueError:
            raise InputError(
                f"this is no line of user, item, rating, time: {line[:80]!r}",
                remedy=f"The four are separated by {separator.decode()!r}; rating and time are numbers.",
                file=lines.file,
                line=number,
            ) from None


def _from_items(path: Path) -> tuple[list[_Movie], str, str]:
    """``u.item``: id, title, two dates, an address, and a flag for each genre, separated by bars."""
    text, sha256, encoding = whole_text(path)
    movies = []
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split("|")
        flags = fields[-len(_GENRES) :]
        if len(fields) < len(_GENRES) + 2 or not set(flags) <= {"0", "1"}:
            raise _wrong_movie(path, number, line, f"id|title|...|{len(_GENRES)} flags of genres")
        movies.append(
            (fields[0], fields[1], "|".join(g for g, flag in zip(_GENRES, flags, strict=True) if flag == "1"))
        )
    return movies, sha256, encoding


def _from_dat(path: Path) -> tuple[list[_Movie], str, str]:
    """``movies.dat``: id, title, genres, separated by ``::``, which a title may hold too."""
    text, sha256, encoding = whole_text(path)
    movies = []
    for number, line in enumerate(text.split("\n"), 1):
        item, first, rest = line.partition("::")
        title, second, genres = rest.rpartition("::")
        if not (first and second):
            raise _wrong_movie(path, number, line, "id::title::genres")
        movies.append((item, title, genres))
    return movies, sha256, encoding


def _from_csv(path: Path) -> tuple[list[_Movie], str, str]:
    """``movies.csv``: a header, and titles in quotes where they hold commas."""
    table, _ = read_csv(path, Wanted({name: name for name in ("movieId", "title", "genres")}))
    columns = (table.ids("movieId"), table.texts("title"), table.texts("genres"))
    return list(zip(*columns, strict=True)), table.sha256, "UTF-8"


def _wrong_movie(path: Path, number: int, line: str, form: str) -> InputError:
    remedy = f"Each line is {form}."
    return InputError(f"this is no movie: {line[:80]!r}", remedy=remedy, file=str(path), line=number)


_FORMS = (
    _Form("u.data", b"\t", False, "u.item", _from_items),
    _Form("ratings.dat", b"::", False, "movies.dat", _from_dat),
    _Form("ratings.csv", b",", True, "movies.csv", _from_csv),
)
