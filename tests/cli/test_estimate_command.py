"""The command that says beforehand what a run would cost: what it prints, and that nothing is asked or made."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import runs
import structlog
from standin import StandIn, agentcf_reply

from simengine.cli.main import main

PRICES = "llm.prices={m: {input: 1, output: 10}}"


def _say(monkeypatch: pytest.MonkeyPatch, folder: Path, *sets: str, text: str = runs.SMALL) -> int:
    """Call the command on a scenario in ``folder``; its exit status."""
    file = folder / "small.yaml"
    file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "argv", ["simengine", "estimate", str(file), *(f"--set={entry}" for entry in sets)])
    with pytest.raises(SystemExit) as left:
        main()
    structlog.reset_defaults()
    return int(left.value.code or 0)


def test_calls_tokens_and_cost_are_said_and_no_model_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with StandIn.in_thread(agentcf_reply) as server:
        status = _say(monkeypatch, tmp_path, *runs.served(server.url), PRICES)
    out = capsys.readouterr().out
    assert (status, server.requests) == (0, 0)
    assert list(tmp_path.iterdir()) == [tmp_path / "small.yaml"]
    rows = re.findall(r"^(optimize|rank) +(\S+) +m +(\d+) +(\d+) +(\d+) +([\d.]+) *$", out, re.MULTILINE)
    assert [row[:2] for row in rows] == [
        ("optimize", "choose"),
        ("optimize", "reflect.item"),
        ("optimize", "reflect.user"),
        ("rank", "rank"),
    ]
    for _, _, _, prompt, reply, usd in rows:
        assert float(usd) == pytest.approx((int(prompt) + 10 * int(reply)) / 1e6, abs=1e-4)
    # 24 interactions of three calls in each of one or two rounds, and 8 rankings
    assert re.search(r"^calls: about \d+ \(80 to 152\)$", out, re.MULTILINE)
    assert re.search(r"^cost: about [\d.]+ USD \([\d.]+ to [\d.]+\)$", out, re.MULTILINE)
    assert "assumed: a token is 4 characters\n" in out


def test_without_prices_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert _say(monkeypatch, tmp_path) == 0
    assert "cost: unknown without a price (set llm.prices" in capsys.readouterr().out


def test_prices_of_other_models_are_not_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A list may hold models that are not asked; a name that is nearly the one that is asked is a slip."""
    assert _say(monkeypatch, tmp_path, "llm.model=phoenix-large", PRICES) == 0
    assert "cost: unknown without a price of phoenix-large (set llm.prices" in capsys.readouterr().out
    prices = "llm.prices={phenix-large: {input: 1, output: 10}}"
    assert _say(monkeypatch, tmp_path, "llm.model=phoenix-large", prices) == 2
    err = capsys.readouterr().err
    assert "field llm.prices.phenix-large: this is the price of a model that is not asked" in err
    assert "Did you mean `phoenix-large`?" in err


def test_a_model_without_a_price_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert _say(monkeypatch, tmp_path, "llm.model=m", "llm.roles={rank: {model: other}}", PRICES) == 0
    assert "USD (" in (out := capsys.readouterr().out)
    assert ", without other, of which llm.prices has no price\n" in out


def test_every_variant_is_estimated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = f"{runs.SMALL}variants: {{one: {{}}, two: {{method: {{rounds: 1}}}}}}\n"
    assert _say(monkeypatch, tmp_path, text=text) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^variant (\w+)$", out, re.MULTILINE) == ["one", "two"]
    assert re.findall(r"^calls: about \d+ \((.+)\)$", out, re.MULTILINE) == ["80 to 152", "80 to 80"]


def test_a_wrong_scenario_is_an_error_of_the_user(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert _say(monkeypatch, tmp_path, "method.round=1") == 2
    assert "round" in capsys.readouterr().err
