"""MovieLens in its three forms: one data set from each, in either encoding, and the same by converting."""

from __future__ import annotations

import pytest
from publishers import content, read_back

from simengine.data import MovieLensSettings, load
from simengine.data.sources.text import spoken_title, year_of
from simengine.errors import InputError

RATINGS = [("1", "73", 4, 978300760), ("1", "5", 3, 978300761), ("10", "73", 5, 978300700), ("2", "6", 1, 978300790)]
MOVIES = [
    ("73", "Misérables, Les (1995)", ["Drama", "Musical"]),
    ("5", "Sabrina (1995)", []),
    ("6", "Shop, The (Laden, Der) (1949)", ["Comedy"]),
    ("9", "unknown", []),
]
GENRES = [
    "unknown",
    "Action",
    "Adventure",
    "Animation",
    "Children's",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Fantasy",
    "Film-Noir",
    "Horror",
    "Musical",
    "Mystery",
    "Romance",
    "Sci-Fi",
    "Thriller",
    "War",
    "Western",
]


def hundred_k(folder, encoding):
    (folder / "u.data").write_text("".join("\t".join(map(str, row)) + "\n" for row in RATINGS), encoding="ascii")
    flags = [[str(int(genre in genres)) for genre in GENRES] for _, _, genres in MOVIES]
    rows = (
        "|".join([item, title, "01-Jan-1995", "", "http://x", *flag])
        for (item, title, _), flag in zip(MOVIES, flags, strict=True)
    )
    (folder / "u.item").write_text("\n".join(rows) + "\n", encoding=encoding)


def one_m(folder, encoding):
    (folder / "ratings.dat").write_text("".join("::".join(map(str, row)) + "\n" for row in RATINGS), encoding="ascii")
    rows = ("::".join((item, title, "|".join(genres))) for item, title, genres in MOVIES)
    (folder / "movies.dat").write_text("\n".join(rows) + "\n", encoding=encoding)


def latest(folder, encoding):
    rows = "".join(",".join(map(str, row)) + "\n" for row in RATINGS)
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\n" + rows, encoding="ascii")
    table = "".join(f'{item},"{title}",{"|".join(genres) or "(no genres listed)"}\n' for item, title, genres in MOVIES)
    (folder / "movies.csv").write_text("movieId,title,genres\n" + table, encoding=encoding)


def movielens(folder, **said):
    return MovieLensSettings(format="movielens", path=folder, **said)


@pytest.mark.parametrize(
    ("form", "encoding"),
    [(hundred_k, "latin-1"), (hundred_k, "utf-8"), (one_m, "latin-1"), (one_m, "utf-8"), (latest, "utf-8")],
)
def test_every_form_is_the_same_data(tmp_path, form, encoding):
    form(tmp_path, encoding)
    dataset = load(movielens(tmp_path, noun="movie"))
    assert [(item.id, item.title, item.category, item.extra["release_year"]) for item in dataset.items.values()] == [
        ("5", "Sabrina (1995)", "", "1995"),
        ("6", "The Shop (Der Laden) (1949)", "Comedy", "1949"),
        ("9", "unknown", "", ""),
        ("73", "Les Misérables (1995)", "Drama; Musical", "1995"),
    ]
    assert dataset.users == ("1", "2", "10")
    assert [(case.user, case.history, case.target, case.time) for case in dataset.cases] == [
        ("1", ("73",), "5", 978300761)
    ]
    assert dataset.unit == "s"
    said = [note for note in dataset.notes if "UTF-8" in note]
    name = {"hundred_k": "u.item", "one_m": "movies.dat", "latest": "movies.csv"}[form.__name__]
    assert said == ([f"{name} is no UTF-8, and is read as Latin-1"] if encoding == "latin-1" else [])
    assert content(read_back(movielens(tmp_path), tmp_path / "out", noun="movie")) == content(dataset)


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Matrix, The (1999)", "The Matrix (1999)"),
        (
            "City of Lost Children, The (Cité des enfants perdus, La) (1995)",
            "The City of Lost Children (La Cité des enfants perdus) (1995)",
        ),
        ("Auberge espagnole, L' (2002)", "L'Auberge espagnole (2002)"),
        ("Good, The Bad and The Ugly, The (1966)", "The Good, The Bad and The Ugly (1966)"),
        ("Theory of Everything (2014)", "Theory of Everything (2014)"),
        ("Me, Myself & Irene (2000)", "Me, Myself & Irene (2000)"),
        ("Bug's Life, A", "A Bug's Life"),
        ("A :: B, The (1990)", "The A :: B (1990)"),
    ],
)
def test_articles_stand_in_front(written, spoken):
    assert spoken_title(written) == spoken
    assert spoken_title(spoken) == spoken


def test_years():
    assert [year_of(title) for title in ("X (1999) ", "X (1999) (1 part)", "1999", "X (99)")] == ["1999", "", "", ""]


@pytest.mark.parametrize(
    ("form", "name", "text", "line", "problem"),
    [
        (one_m, "ratings.dat", "1::73::5\n", 1, "no line of user, item, rating, time"),
        (hundred_k, "u.data", "1\t73\t5\t978300760\n1\t73\tgood\t9\n", 2, "no line of user, item, rating, time"),
        (latest, "ratings.csv", "user,movie,rating,time\n1;73;5;9\n", 2, "no line of user, item, rating, time"),
        (one_m, "movies.dat", "73::X::\n5:Y:Z\n", 2, "this is no movie: '5:Y:Z'"),
        (hundred_k, "u.item", "73|X|0|1\n", 1, "this is no movie"),
        (one_m, "movies.dat", "m73::X::\nm5::Y::\n", None, "the reviews have '73', '5', '6', the table 'm73', 'm5'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, form, name, text, line, problem):
    form(tmp_path, "utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=problem) as caught:
        load(movielens(tmp_path))
    assert (caught.value.where["file"], caught.value.where.get("line")) == (str(tmp_path / name), line)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match="there are no files of MovieLens") as caught:
        load(movielens(tmp_path))
    assert "ratings.dat and movies.dat" in caught.value.remedy
    with pytest.raises(InputError, match="there is no such folder"):
        load(movielens(tmp_path / "nowhere"))


def test_real_movielens_as_published_is_the_atomic_data_set(real_data, tmp_path):
    log = (real_data / "ml-100k" / "ml-100k.inter").read_text(encoding="utf-8")
    table = (real_data / "ml-100k" / "ml-100k.item").read_text(encoding="utf-8").splitlines()[1:]
    (tmp_path / "u.data").write_text(log.partition("\n")[2], encoding="ascii")
    names = dict.fromkeys(GENRES)
    with (tmp_path / "u.item").open("w", encoding="latin-1") as file:
        for row in table:
            item, title, year, genres = row.split("\t")
            had = {f"{genre}" for genre in genres.split(" ")}
            flags = [str(int(name in had)) for name in names]
            file.write("|".join([item, f"{title} ({year})", "", "", "", *flags]) + "\n")
    dataset = load(movielens(tmp_path, min_rating=4, clock="time"))
    assert (len(dataset.users), len(dataset.items)) == (942, 1682)
    assert sum(map(len, (dataset.train, dataset.history))) + len(dataset.cases) == 55_375
    assert dataset.items["12"].title == "The Usual Suspects (1995)"
    assert dataset.notes[0] == "u.item is no UTF-8, and is read as Latin-1"
