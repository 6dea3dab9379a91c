"""What is left of a data set's files has a digest of its own, by which recorded scores are told apart."""

from __future__ import annotations

from pathlib import Path

from simengine.data import AtomicSettings, load

LOG = "user_id:token\titem_id:token\ttimestamp:float\n" + "".join(
    f"{user}\t{item}\t{at}\n" for at, (user, item) in enumerate((u, i) for u in "uvw" for i in "abcd")
)


def _kept(folder: Path, **more: object) -> str:
    return load(AtomicSettings.model_validate({"format": "atomic", "path": folder, **more})).kept()


def test_filters_and_splits_change_it_and_nothing_else_does(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.inter").write_text(LOG)
        rows = "item_id:token\ttitle:token_seq\n" + "".join(f"{item}\t{item.upper()}\n" for item in "abcd")
        (tmp_path / name / "log.item").write_text(rows)
    whole = _kept(tmp_path / "one")
    assert _kept(tmp_path / "one") == _kept(tmp_path / "other") == whole
    others = [_kept(tmp_path / "one", **more) for more in ({"users": 2}, {"split": {"ratio": [0.5, 0, 0.5]}})]
    assert len({whole, *others}) == 3
