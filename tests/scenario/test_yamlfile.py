"""A YAML file becomes a model, and back: scalars keep their sense, ``--set`` and ``${VAR}``, round trip."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

from simengine.scenario.yamlfile import dump, load


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


class Limits(Strict):
    rpm: int | None = None
    tpm: float | None = None


class Scalars(Strict):
    lr: float = 0
    limit: int = 0
    countries: list[str] = []
    replay: str = ""
    labels: dict[str, int] = {}
    version: str = ""
    start: str | None = None
    user: str = ""
    date: str = ""
    when: Literal["0.5", "on"] = "on"
    either: int | str = 0
    limits: Limits = Limits()
    stages: list[dict[str, Limits]] = []
    secret: str = ""


def read(text: str, *sets: str) -> Scalars:
    return load("scenario.yaml", Scalars, sets, text)[0]


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        ("lr: 1e-4", "lr", 0.0001),
        ("lr: .5", "lr", 0.5),
        ("limit: 1e4", "limit", 10000),
        ("limit: 0x10", "limit", 16),
        ("countries: [no, se, 1, true, 0o7]", "countries", ["no", "se", "1", "true", "0o7"]),
        ("replay: off", "replay", "off"),
        ("replay: false", "replay", "false"),
        ("labels: {on: 5, 0123: 6}", "labels", {"on": 5, "0123": 6}),
        ("version: 1.10", "version", "1.10"),
        ("start: 12:30:45", "start", "12:30:45"),
        ("start: 1_000", "start", "1_000"),
        ("start: null", "start", None),
        ("start:", "start", None),
        ("user: 0123", "user", "0123"),
        ("user: '0123'", "user", "0123"),
        ("user: !!str 0123", "user", "0123"),
        ("date: 2014-07-01", "date", "2014-07-01"),
        ("when: 0.5", "when", "0.5"),
        ("either: 7", "either", 7),
        ("either: '7'", "either", "7"),
        ("user: |\n  two\n  lines\n", "user", "two\nlines\n"),
    ],
)
def test_a_scalar_means_what_the_schema_asks_for(line: str, name: str, expected: object) -> None:
    value = getattr(read(line), name)
    assert value == expected
    assert type(value) is type(expected)


def test_the_plain_data_hold_the_text_that_the_schema_asked_for() -> None:
    assert load("s.yaml", Scalars, ["limit=3"], "user: 0123\nlr: 1e-4\n")[1] == {
        "user": "0123",
        "lr": 0.0001,
        "limit": 3,
    }


def test_untyped_values_follow_the_core_schema_of_yaml_1_2() -> None:
    text = "a: [1, -2.5, 1e3, .inf, 0x1F, 0o17, true, null, ~, yes, 1:30, 2014-07-01, '1', 0b1]"
    data = load("s.yaml", Anything, (), text)[1]
    assert data["a"] == [
        1,
        -2.5,
        1000.0,
        float("inf"),
        31,
        15,
        True,
        None,
        None,
        "yes",
        "1:30",
        "2014-07-01",
        "1",
        "0b1",
    ]


def test_anchors_and_merge_keys() -> None:
    text = """
limits: &base {rpm: 1, tpm: 2}
stages:
  - a: *base
  - a: {<<: *base, rpm: 5}
  - a: {tpm: 9, <<: [{rpm: 7}, *base]}
"""
    stages = [stage["a"] for stage in read(text).stages]
    assert stages == [Limits(rpm=1, tpm=2), Limits(rpm=5, tpm=2), Limits(rpm=7, tpm=9)]


def test_a_setting_through_an_alias_leaves_the_anchor_alone() -> None:
    text = "limits: &base {rpm: 1}\nstages: [{a: *base}]\n"
    scenario = read(text, "stages[0].a.rpm=5")
    assert (scenario.limits.rpm, scenario.stages[0]["a"].rpm) == (1, 5)


def test_a_validator_that_eats_its_input_leaves_the_data_whole() -> None:
    class Eats(Strict):
        name: str

        @model_validator(mode="before")
        @classmethod
        def short_form(cls, data: dict[str, Any]) -> dict[str, Any]:
            return {"name": data.pop("is")}

    class Holds(Strict):
        inner: Eats

    model, data = load("s.yaml", Holds, (), "inner: {is: x}")
    assert model.inner.name == "x"
    assert data == {"inner": {"is": "x"}}


def test_root_models_and_generic_containers() -> None:
    class Names(RootModel[list[str]]):
        pass

    class Holds(Strict):
        names: Names
        pairs: list[tuple[str, int]] = Field(default_factory=list)

    assert load("s.yaml", Holds, (), "names: [1.10]\npairs: [[1, 2]]")[1] == {"names": ["1.10"], "pairs": [["1", 2]]}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("limits.rpm=60", {"limits": {"rpm": 60}, "stages": [{"a": {"rpm": 1}}]}),
        ("stages[0].a.rpm=3", {"stages": [{"a": {"rpm": 3}}]}),
        ("stages[0]={b: {tpm: 1e2}}", {"stages": [{"b": {"tpm": 100.0}}]}),
        ("countries=[no, 'a=b']", {"stages": [{"a": {"rpm": 1}}], "countries": ["no", "a=b"]}),
        ("user=0123", {"stages": [{"a": {"rpm": 1}}], "user": "0123"}),
        ("start=", {"stages": [{"a": {"rpm": 1}}], "start": None}),
        ('replay="a: b"', {"stages": [{"a": {"rpm": 1}}], "replay": "a: b"}),
        ("secret=${KEY}", {"stages": [{"a": {"rpm": 1}}], "secret": "${KEY}"}),
    ],
)
def test_set_entries(entry: str, expected: dict[str, Any]) -> None:
    assert load("s.yaml", Scalars, [entry], "stages: [{a: {rpm: 1}}]")[1] == expected


def test_a_set_entry_fills_an_empty_value_and_the_last_one_wins() -> None:
    assert read("limits:\n", "limits.rpm=1", "limits.rpm=2").limits.rpm == 2


def test_a_file_on_disk_with_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes("\ufeffuser: Zoë\r\nlimit: 2\r\n".encode())
    assert load(path, Scalars)[1] == {"user": "Zoë", "limit": 2}


def test_variables_stay_as_written_until_they_are_used() -> None:
    data = load("s.yaml", Scalars, (), "secret: ${MY_KEY}")[1]
    assert data == {"secret": "${MY_KEY}"}
    assert "${MY_KEY}" in dump(data)


_texts = st.text(st.characters(codec="utf-8")) | st.sampled_from(
    [
        "no",
        "0123",
        "-.5",
        "1e4",
        "+.inf",
        "~",
        "null",
        "12:30",
        "<<",
        "a: b",
        "- a",
        "${V}",
        "a\n b \n",
        " x ",
        "\x85",
        "#",
    ]
)
_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _texts
_trees = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_texts.filter(str.isidentifier), _trees, min_size=1, max_size=4))
def test_dump_and_load_give_the_same_data_in_the_same_order(data: dict[str, Any]) -> None:
    again = load("s.yaml", Anything, (), dump(data))[1]
    assert again == data
    assert repr(again) == repr(data)


def test_dump_is_meant_to_be_read() -> None:
    shared = ["B"]
    data = {"name": "x", "llm": {"api_key": "${KEY}", "on": True}, "stages": [{"rank": shared}, {"rank": shared}]}
    assert dump(data) == ("name: x\nllm:\n  api_key: ${KEY}\n  on: true\nstages:\n- rank:\n  - B\n- rank:\n  - B\n")
