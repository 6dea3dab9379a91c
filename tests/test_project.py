"""The project keeps its own rules: arrows between rooms, size of files, quick import, README and CI in step."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "simengine"
FILES = sorted(PACKAGE.rglob("*.py"))

# What each room may import directly, errors and itself aside; `embed` and `testing` may not exist yet.
ARROWS = {
    "cli": {"scenario", "measure", "runlog"},
    "scenario": {"methods", "measure", "runlog", "rankers", "world", "kernel", "llm", "data", "embed"},
    "methods": {"world", "kernel", "rankers", "llm", "data", "embed"},
    "measure": {"runlog", "rankers", "data", "embed"},
    "runlog": {"world", "kernel"},
    "rankers": {"data", "embed"},
    "world": {"kernel"},
    "kernel": set(),
    "llm": set(),
    "data": set(),
    "embed": set(),
}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


every_file = pytest.mark.parametrize("path", FILES, ids=_name)


def test_there_is_a_package_to_check() -> None:
    assert len(FILES) > len(ARROWS)


@every_file
def test_a_file_says_first_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""')
    first = (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]
    assert len(first.split()) >= 4, first


@every_file
def test_a_file_a_class_and_a_function_can_be_taken_in(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length < 300 if isinstance(node, ast.ClassDef) else length <= 60, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", sorted(p for p in PACKAGE.rglob("*") if p.is_file() and p.suffix != ".pyc"), ids=_name)
def test_no_file_of_the_package_names_a_place_on_somebodys_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(work|home|Users|root|tmp)/|\b[A-Z]:\\\\", text)


def test_importing_the_package_is_quick() -> None:
    heavy = ["openai", "scipy", "sklearn", "matplotlib"]
    code = f"import sys, simengine; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _readme_block(name: str) -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(rf"^<!-- {name} -->\n+```bash\n(.+?)^```\n+<!-- /{name} -->$", text, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"README.md needs one block {name}"
    return str(found[0])


def _ci_block(name: str) -> str:
    """The same block as .ci/run takes it from the README: the script's own function, run alone."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    function = script[script.index("readme_block() {") :].partition("\n}\n")[0] + "\n}\n"
    command = f"fail() {{ exit 1; }}\n{function}readme_block {name}"
    return subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_readme_says_how_to_test_and_ci_runs_just_that() -> None:
    block = _readme_block("test-command")
    places = [block.find(part) for part in ("-m venv .venv", "[test]", "pytest")]
    assert places == sorted(places)
    assert min(places) >= 0, f"venv, install and pytest must all stand in it: {block}"
    assert _ci_block("test-command") == block


def test_the_readme_has_a_quickstart_and_ci_runs_just_that() -> None:
    block = _readme_block("quickstart-command")
    assert "simengine run " in block
    assert _ci_block("quickstart-command") == block


def test_ci_can_be_run_and_its_syntax_holds() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """A package with the rooms of simengine and nothing in them, under the project's import contracts."""
    pytest.importorskip("importlinter", reason="import-linter is a development tool: pip install '.[dev]'")
    for room in (*(room for room in ARROWS if room != "embed"), ""):
        folder = tmp_path / "simengine" / room
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    (tmp_path / "simengine" / "errors.py").touch()
    (tmp_path / ".importlinter").write_text((ROOT / ".importlinter").read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


def _lint(folder: Path) -> tuple[int, str]:
    code = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def _imports(wanted: str) -> Iterator[str]:
    """The same import in the three ways in which one might hope to hide it."""
    yield f"import simengine.{wanted}\n"
    yield f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import simengine.{wanted}\n"
    yield f"def use():\n    import simengine.{wanted}\n"


def test_every_arrow_of_the_design_is_allowed(skeleton: Path) -> None:
    assert _lint(skeleton)[0] == 0, "a package without embed and testing must pass"
    (skeleton / "simengine" / "embed.py").touch()
    (skeleton / "simengine" / "testing.py").write_text("import simengine.methods\nimport simengine.llm\n")
    for room, allowed in ARROWS.items():
        if room != "embed":
            imports = "".join(f"import simengine.{other}\n" for other in sorted({*allowed, "errors"}))
            (skeleton / "simengine" / room / "uses.py").write_text(imports)
    code, output = _lint(skeleton)
    assert code == 0, output


@pytest.mark.parametrize("room", [room for room in ARROWS if room != "embed"])
def test_every_other_arrow_is_caught(skeleton: Path, room: str) -> None:
    (skeleton / "simengine" / "embed.py").touch()
    forbidden = sorted(set(ARROWS) - ARROWS[room] - {room})
    for other in forbidden:
        for way, text in enumerate(_imports(other)):
            (skeleton / "simengine" / room / f"bad_{other}_{way}.py").write_text(text)
    code, output = _lint(skeleton)
    assert bool(code) == bool(forbidden), output
    for other in forbidden:
        for way in range(3):
            assert re.search(rf"simengine\.{room}\.bad_{other}_{way}\s*->\s*simengine\.{other}\b", output), output


@pytest.mark.parametrize(
    ("importer", "imported"), [("errors", "kernel"), ("kernel/event", "testing"), ("llm/a", "cli")]
)
def test_arrows_from_and_to_single_files_are_caught(skeleton: Path, importer: str, imported: str) -> None:
    (skeleton / "simengine" / "testing.py").touch()
    (skeleton / "simengine" / f"{importer}.py").write_text(f"import simengine.{imported}\n")
    code, output = _lint(skeleton)
    assert code != 0
    assert re.search(rf"{importer.replace('/', '.')}\s*->\s*simengine.{imported}", output), output


def test_a_room_without_a_place_among_the_arrows_is_caught(skeleton: Path) -> None:
    (skeleton / "simengine" / "attic.py").touch()
    code, output = _lint(skeleton)
    assert code != 0
    assert "attic" in output


def test_the_output_in_the_readme_is_what_the_quickstart_prints(tmp_path: Path) -> None:
    """Its last lines name the hash, so a README that has fallen behind shows here."""
    command = [sys.executable, "-m", "simengine.cli.main", "run", str(ROOT / "scenarios" / "quickstart.yaml")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in printed[-2:] if line not in readme] == []


def test_the_talk_in_the_readme_is_what_the_trace_prints(tmp_path: Path) -> None:
    simengine = [sys.executable, "-m", "simengine.cli.main"]
    scenario = str(ROOT / "scenarios" / "interec-talk.yaml")
    subprocess.run([*simengine, "run", scenario], cwd=tmp_path, capture_output=True, check=True)
    told = [*simengine, "trace", "replays/interec-talk", "--talk", "u1"]
    printed = subprocess.run(told, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("<!-- output: TALK -->\n```text\n")[2].partition("\n```\n")[0].splitlines()
    assert len(shown) > 10
    assert [line for line in shown if not line.startswith(("$", "[...]")) and line not in printed] == []
