"""Finding the files of a data set, saying what is missing, and the digest of what was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from simengine.data import AtomicSettings, load
from simengine.errors import InputError

LOG = "user_id:token|item_id:token\nu|a\nu|b\nu|c\nu|d\n"
ITEMS = "item_id:token|title:token_seq\na|A\nb|B\nc|C\nd|D\n"
SPLIT = "user_id:token|item_id_list:token_seq|item_id:token\nu|a|b\n"


def atomic(path: Path, **settings: object):
    return load(AtomicSettings(format="atomic", path=path, **settings))


@pytest.mark.parametrize(
    ("files", "here"),
    [
        ({}, "here is: nothing"),
        ({"x.inter": LOG}, "here is: x.inter"),
        ({"x.item": ITEMS, "notes.txt": ""}, "here is: notes.txt, x.item"),
        ({"x.item": ITEMS, "x.train.inter": SPLIT}, "here is: x.item, x.train.inter"),
    ],
)
def test_missing_files_are_listed_with_what_is_there(write, files, here):
    folder = write(files)
    with pytest.raises(InputError, match=here) as caught:
        atomic(folder)
    assert "*.item" in caught.value.remedy
    assert "*.test.inter" in caught.value.remedy
    assert caught.value.where == {"file": str(folder)}


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        atomic(tmp_path / "nowhere")


def test_several_files_of_a_kind_are_an_error(write):
    with pytest.raises(InputError, match=r"2 files match \*.item: x.item, y.item"):
        atomic(write({"x.inter": LOG, "x.item": ITEMS, "y.item": ITEMS}))


def test_split_files_go_before_a_whole_log(write):
    dataset = atomic(write({"x.inter": LOG, "x.test.inter": SPLIT, "x.item": ITEMS}))
    assert [case.target for case in dataset.cases] == ["b"]
    assert dataset.cases[0].candidates is None


def test_the_digest_is_of_bytes_not_of_paths(write, tmp_path, monkeypatch):
    folder = write({"x.inter": LOG, "x.item": ITEMS})
    digest = atomic(folder).digest
    moved = tmp_path / "moved"
    moved.mkdir()
    for name, other in (("x.inter", "y.inter"), ("x.item", "z.item")):
        (moved / other).write_bytes((folder / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    dataset = atomic(Path("moved"))
    assert (dataset.digest, dataset.name) == (digest, "moved")
    (moved / "z.item").write_bytes((folder / "x.item").read_bytes() + b"e\tE\n")
    assert atomic(moved).digest != digest


def test_recorded_negatives_are_part_of_the_digest(write):
    row = '{"user_id": "u", "pos_item_id": "b", "neg_item_ids": ["%s"]}\n'
    folder = write({"x.inter": LOG, "x.item": ITEMS, "one.jsonl": row % "c", "two.jsonl": row % "d"})
    digests = {atomic(folder, negatives=name).digest for name in (None, "one.jsonl", "two.jsonl")}
    assert len(digests) == 3
