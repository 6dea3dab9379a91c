"""Every fault of a scenario file is told by place, field, value and remedy, and all of them at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pytest
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from simengine.errors import InputError
from simengine.scenario.yamlfile import load


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Limits(Strict):
    rpm: int | None = Field(None, gt=0)
    tpm: float | None = None


class Model(Strict):
    backend: Literal["lexical", "openai"] = "lexical"
    temperature: float = 0
    json_mode: bool = False
    limits: Limits = Limits()


class AgentCF(Strict):
    kind: Literal["agentcf"]
    rounds: int = 2
    over_limit: Literal["keep", "cut"] = "keep"


class Groups(Strict):
    kind: Literal["agentcfpp"]
    clusters: int


class Rank(Strict):
    k: list[int] = [1]
    repeats: int = Field(1, ge=1)

    @field_validator("k")
    @classmethod
    def in_order(cls, value: list[int]) -> list[int]:
        if value != sorted(value):
            raise ValueError("cut-offs must rise")
        return value


class RankStage(Strict):
    rank: Rank


class OptimizeStage(Strict):
    optimize: dict[str, int]


class Latency(Strict):
    median: float = 1
    sigma: float = 0

    @model_validator(mode="after")
    def plausible(self) -> Self:
        if self.sigma > self.median:
            raise ValueError("sigma must not exceed the median")
        return self


class Every(Strict):
    every: str


Stage = Annotated[
    Annotated[RankStage, Tag("rank")] | Annotated[OptimizeStage, Tag("optimize")],
    Discriminator(lambda value: next(iter(value), None) if isinstance(value, dict) else None),
]


class Scenario(Strict):
    name: str = "x"
    llm: Model = Model()
    method: Annotated[AgentCF | Groups, Field(discriminator="kind")] | None = None
    stages: list[Stage] = []
    visibility: dict[Literal["items", "users"], Literal["latest"] | Every] = {}
    latency: Latency | None = None
    window: Literal["none"] | int | list[int] = 5


def fault(text: str, *sets: str) -> InputError:
    with pytest.raises(InputError) as caught:
        load("s.yaml", Scenario, sets, text)
    return caught.value


# line, column, field, value (None where the error has none), words of problem, words of remedy
_ONE_FAULT: list[tuple[str, int, int, str, str | None, str, str]] = [
    ("sead: 1", 1, 1, "sead", None, "`sead` is not known", "Keys known here: name, llm"),
    ("llm:\n  temprature: 1", 2, 3, "llm.temprature", None, "not known", "Did you mean `temperature`?"),
    ("llm: {limits: {rmp: 1}}", 1, 16, "llm.limits.rmp", None, "not known", "Did you mean `rpm`?"),
    ("method: {kind: agentcf, ronds: 3}", 1, 25, "method.ronds", None, "not known", "Did you mean `rounds`?"),
    (
        "method: {kind: agentcf, clusters: 3}",
        1,
        25,
        "method.clusters",
        None,
        "not known",
        "known here: kind, rounds, over_limit.",
    ),
    ("method: {kind: agentcfpp}", 1, 9, "method.clusters", None, "required", "Add `clusters: ...` under `method`."),
    ("method: {kind: agentcv}", 1, 16, "method.kind", "agentcv", "one of: agentcf, agentcfpp", "mean `agentcf`?"),
    ("method: {kind: 7}", 1, 16, "method.kind", "7", "one of: agentcf, agentcfpp", "Choose one"),
    ("method: {rounds: 2}", 1, 9, "method.kind", None, "`kind` is required", "one of: agentcf, agentcfpp"),
    ("method: agentcf", 1, 9, "method", "agentcf", "a mapping", "key: value"),
    ("stages:\n- rnak: {}", 2, 3, "stages[0]", "a mapping with rnak", "one of: rank, optimize", "mean `rank`?"),
    ("stages:\n- rank: {k: [1, x]}", 2, 17, "stages[0].rank.k[1]", "x", "a whole number", "digits"),
    ("stages:\n- rank: {repaets: 1}", 2, 10, "stages[0].rank.repaets", None, "not known", "mean `repeats`?"),
    ("stages:\n- rank: {repeats: 0}", 2, 19, "stages[0].rank.repeats", "0", "at least 1", "Correct"),
    ("stages:\n- rank: {k: [5, 1]}", 2, 13, "stages[0].rank.k", "a list of 2", "cut-offs must rise", "Correct"),
    ("stages:\n- rank: {k: 5}", 2, 13, "stages[0].rank.k", "5", "a list", "[a, b]"),
    ("stages:\n- optimize: {a: b}", 2, 17, "stages[0].optimize.a", "b", "a whole number", "digits"),
    ("llm: {backend: opnai}", 1, 16, "llm.backend", "opnai", "'lexical' or 'openai'", "mean `openai`?"),
    ("llm: {backend: 4}", 1, 16, "llm.backend", "4", "'lexical' or 'openai'", "Choose one"),
    ("llm: {json_mode: maybe}", 1, 18, "llm.json_mode", "maybe", "true or false", "true or false"),
    ("llm: {temperature: 'warm'}", 1, 20, "llm.temperature", "'warm'", "a number", "0.5"),
    ("llm: {limits: {rpm: -1}}", 1, 21, "llm.limits.rpm", "-1", "more than 0", "Correct"),
    ("llm: {limits: {rpm: 1.5}}", 1, 21, "llm.limits.rpm", "1.5", "a whole number", "digits"),
    ("name: null", 1, 7, "name", "empty", "a text", "quotes"),
    ("name: [a]", 1, 7, "name", "a list of 1", "a text", "quotes"),
    ("visibility: {items: {evry: 1d, every: 2d}}", 1, 22, "visibility.items.evry", None, "not known", "`every`?"),
    ("visibility: {items: soon}", 1, 21, "visibility.items", "soon", "'latest' or a mapping", "Choose"),
    ("visibility: {shops: latest}", 1, 14, "visibility.shops", "shops", "'items' or 'users'", "Choose"),
    ("latency: {sigma: 2}", 1, 10, "latency", None, "sigma must not exceed the median", "Correct"),
    ("window: some", 1, 9, "window", "some", "'none' or a whole number or a list", "Choose"),
    ("window: [1, b]", 1, 13, "window[1]", "b", "a whole number", "digits"),
]


@pytest.mark.parametrize(("text", "line", "column", "field", "value", "problem", "remedy"), _ONE_FAULT)
def test_one_fault(text: str, line: int, column: int, field: str, value: str | None, problem: str, remedy: str) -> None:
    error = fault(text)
    where = {"file": "s.yaml", "line": line, "column": column, "field": field, "value": value}
    assert error.where == {key: known for key, known in where.items() if known is not None}
    assert problem in error.problem
    assert remedy in error.remedy
    assert str(error).startswith(f"s.yaml:{line}:{column}, field {field}")


def test_all_faults_are_told_together_in_the_order_of_the_file() -> None:
    error = fault("window: some\nllm: {temprature: 1, limits: {rpm: -1}}\nnam: x\n")
    assert str(error) == (
        "s.yaml: 4 problems\n"
        "  s.yaml:1:9, field window, value some: expected 'none' or a whole number or a list\n"
        "    Choose one of these.\n"
        "  s.yaml:2:7, field llm.temprature: the key `temprature` is not known here\n"
        "    Did you mean `temperature`?\n"
        "  s.yaml:2:36, field llm.limits.rpm, value -1: expected a value more than 0\n"
        "    Correct this value.\n"
        "  s.yaml:3:1, field nam: the key `nam` is not known here\n"
        "    Did you mean `name`?"
    )


def test_repeated_keys_at_any_depth_are_refused_with_both_lines() -> None:
    text = "llm: {limits: {rpm: 60}}\nname: x\nllm:\n  limits:\n    tpm: 9\n    rpm: 1\n    tpm: 8\n"
    error = fault(text)
    assert "`llm` is repeated: it stands on line 1 and again on line 3" in str(error)
    assert "`tpm` is repeated: it stands on line 5 and again on line 7" in str(error)
    assert "field llm.limits.tpm" in str(error)
    assert "2 problems" in str(error)


@pytest.mark.parametrize("text", ['a: 1\n"a": 2', "? a\n: 1\n? a\n: 2", "<<: {a: 1}\n<<: {b: 1}", "&k a: 1\n*k : 2"])
def test_a_key_is_repeated_however_it_is_spelled(text: str) -> None:
    assert "is repeated" in str(fault(text))


def test_the_value_of_an_unknown_key_is_not_shown() -> None:
    assert "sk-123" not in str(fault("llm: {api_kee: sk-123}"))


def test_a_fault_behind_an_alias_is_told_where_it_is_written() -> None:
    error = fault("stages:\n- rank: &r\n    repeats: 0\n- rank: {<<: *r, k: [1]}\n")
    assert "2 problems" in str(error)
    assert str(error).count("s.yaml:3:14") == 2
    assert "stages[1].rank.repeats" in str(error)


@pytest.mark.parametrize(
    ("text", "line", "column", "problem", "remedy"),
    [
        ("a: [1, 2\nb: 3", 2, 2, "not valid YAML", "Correct the YAML"),
        ("a:\n\t- x", 2, 1, "not valid YAML", "spaces"),
        ("llm: {api_key: ${KEY}}", 1, 17, "not valid YAML", '"${NAME}"'),
        ("a: b: c", 1, 5, "not valid YAML", "quotes"),
        ("a: @b", 1, 4, "not valid YAML", "quotes"),
        ("a: 1\nb: \x00", 2, 4, r"'\x00' is not allowed", "Correct the YAML"),
        ("a: 1\n---\nb: 2", 2, 1, "second document", "one document"),
        ("a: *b", 1, 4, "no complete anchor &b", "above"),
        ("a: &b [*b]", 1, 8, "no complete anchor &b", "above"),
        ("a: !secret b", 1, 4, "the tag !secret", "Remove"),
        ("{a: 1}: 2", 1, 1, "a key must be a text", "quotes"),
        ("<<: 5", 1, 5, "only mappings can be merged", "anchor"),
        ("- a\n- b", 1, 1, "expected a mapping at the top", "key: value"),
        ("text", 1, 1, "expected a mapping at the top", "key: value"),
        ("a: " + "[" * 200, 1, 104, "nested more than 100 deep", "Flatten"),
    ],
)
def test_text_that_is_no_scenario_at_all(text: str, line: int, column: int, problem: str, remedy: str) -> None:
    error = fault(text)
    assert (error.where["file"], error.where["line"], error.where["column"]) == ("s.yaml", line, column)
    assert problem in error.problem
    assert remedy in error.remedy


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "null\n"])
def test_an_empty_file(text: str) -> None:
    error = fault(text)
    assert error.problem == "the file is empty"
    assert error.where == {"file": "s.yaml"}


def _folder(path: Path) -> None:
    path.mkdir()


def _utf16(path: Path) -> None:
    path.write_bytes("name: x\n".encode("utf-16"))


def _latin1(path: Path) -> None:
    path.write_bytes("seed: 1\nname: Zoë\n".encode("latin-1"))


def _unreadable(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "problem", "line"),
    [
        (lambda path: None, "there is no such file", None),
        (_folder, "a folder, not a file", None),
        (_utf16, "not UTF-8", 1),
        (_latin1, "not UTF-8", 2),
        (_unreadable, f"cannot be read: {os.strerror(40)}", None),
    ],
)
def test_files_that_cannot_be_read(
    tmp_path: Path, make: Callable[[Path], None], problem: str, line: int | None
) -> None:
    path = tmp_path / "s.yaml"
    make(path)
    with pytest.raises(InputError) as caught:
        load(path, Scenario)
    assert problem in caught.value.problem
    assert caught.value.where.get("line") == line
    assert caught.value.where["file"] == str(path)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("entry", "where", "problem"),
    [
        ("llm.temprature=3", {"entry": "llm.temprature", "field": "llm.temprature"}, "not known"),
        ("llm.limits.rpm=a", {"entry": "llm.limits.rpm", "field": "llm.limits.rpm", "value": "a"}, "whole number"),
        ("method={kind: agentcfpp}", {"entry": "method", "field": "method.clusters"}, "required"),
        ("stages[0].rank.k[2]=1", {"entry": "stages[0].rank.k[2]"}, "no entry [2]: it is a list of 2"),
        ("stages[1].rank={}", {"entry": "stages[1].rank"}, "`stages` has no entry [1]"),
        ("name.first=a", {"entry": "name.first"}, "`name` has no key `first`: it is n"),
        ("stages.rank=a", {"entry": "stages.rank"}, "`stages` has no key `rank`"),
        ("name=[1", {"entry": "name"}, "not valid YAML"),
        ("name={a: 1, a: 2}", {"entry": "name", "field": "a"}, "repeated"),
        ("name=film: noir", {"entry": "name"}, "must be a scalar"),
        ("name=- a", {"entry": "name"}, "must be a scalar"),
        ("name", {"entry": "name"}, "not an assignment"),
        ("=5", {"entry": "without a name"}, "not an assignment"),
        ("a..b=5", {"entry": "a..b"}, "not an assignment"),
        ("[0]=5", {"entry": "[0]"}, "not an assignment"),
    ],
)
def test_a_bad_set_entry_is_named(entry: str, where: dict[str, Any], problem: str) -> None:
    error = fault("name: n\nstages: [{rank: {k: [1, 5]}}]\n", entry)
    assert error.where == {"file": "--set", **where}
    assert problem in error.problem
    assert error.remedy
