"""No secret anywhere: not in any file of a run, nor on the console, nor in errors, whatever a server makes of it."""

from __future__ import annotations

import base64
import html
import itertools
import pickle
import shlex
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote_plus

import pytest
import runs
from standin import Body, Fault, StandIn, agentcf_reply
from structlog.testing import capture_logs

from simengine.errors import CallFailed, RunStopped
from simengine.llm import CallStore, LLMSettings, Message, Request, Sampling, build
from simengine.llm.backends.endpoint import Endpoint
from simengine.llm.calls import Failure
from simengine.scenario.running import portable

SECRET = "s3cr+t/w&rd-417"  # each of these characters has another spelling in an address or a page
LOGIN = base64.b64encode(f"me:{SECRET}".encode()).decode()
SPELLINGS = {SECRET, quote(SECRET), quote(SECRET, safe=""), html.escape(SECRET), LOGIN}

# How a scenario gives its secret, and the header that goes out.
GIVEN = {
    "plain key": ("llm.api_key=" + SECRET, f"Bearer {SECRET}"),
    "key from a variable": ("llm.api_key=${MY_SECRET}", f"Bearer {SECRET}"),
    "address with a login": ("llm.base_url=http://me:{password}@{host}", f"Basic {LOGIN}"),
}


class Echo(StandIn):
    """A server that puts the credentials it was sent into what it answers, ``after`` so many good answers."""

    def __init__(self, status: int, form: str, after: int = 9) -> None:
        super().__init__(agentcf_reply)
        self.status = status
        self.after = after
        self.form = form

    def _fault(self, body: Body) -> Fault | None:
        if not self.status or self.requests <= self.after:
            return None
        sent = self.headers[-1]["Authorization"]
        said = f"the header was Authorization: {sent}"
        if self.form == "page":
            page = f"<html><body><h1>Oh no</h1><pre>{html.escape(said)} {sent}</pre></body></html>"
            return Fault(self.status, page, {"Content-Type": "text/html"})
        return Fault(self.status, {"error": {"message": f"{said}, {quote(sent, safe='')}", "code": "x"}})


# What the server does, and what becomes of the run: its exit status, and words that stand on its console.
ENDS = {
    "success": (0, "", 0, "32/32 events"),
    "refused key": (401, "json", 1, "HTTP 401"),
    "page of status 400": (400, "page", 0, "call failed"),
    "page of status 503": (503, "page", 0, "call failed"),
}


def leaks(text: bytes) -> set[str]:
    return {spelling for spelling in SPELLINGS if spelling.encode() in text}


def files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize(
    ("given", "end"),
    [
        pytest.param(given, end, marks=() if given == "plain key" or end == "page of status 400" else pytest.mark.slow)
        for given, end in itertools.product(GIVEN, ENDS)
    ],
)
def test_a_secret_is_in_no_file_and_on_no_console(given: str, end: str, tmp_path: Path) -> None:
    (entry, header), (status, form, exit_status, words) = GIVEN[given], ENDS[end]
    (tmp_path / "small.yaml").write_text(runs.SMALL, encoding="utf-8")
    with Echo.in_thread(status, form) as server:
        host = server.url.removeprefix("http://")
        entry = entry.replace("{host}", host).replace("{password}", quote(SECRET, safe=""))
        sets = [part for each in (*runs.served(server.url), entry, "llm.retry.budget=0") for part in ("--set", each)]
        process = runs.start("run", "small.yaml", "--verbose", *sets, cwd=tmp_path, MY_SECRET=SECRET)
        out, err = process.communicate(timeout=60)
        assert server.headers[0]["Authorization"] == header
    assert process.returncode == exit_status, err
    assert words in err
    folder = tmp_path / "replays" / "small"
    assert {"scenario.yaml", "events.jsonl", "calls.sqlite"} <= {path.name for path in files(folder)}
    assert leaks((out + err).encode()) == set()
    assert {path.name: found for path in files(folder) if (found := leaks(path.read_bytes()))} == {}
    if status and not exit_status:
        failures = [row.outcome for row in runs.calls(folder) if isinstance(row.outcome, Failure)]
        assert failures
        assert all("***" in failure.problem for failure in failures), "what the server said was not kept at all"


@pytest.mark.parametrize(("status", "form"), [(401, "json"), *((status, "page") for status in (402, 404, 200, 400))])
async def test_an_error_holds_no_secret(status: int, form: str, tmp_path: Path) -> None:
    """Nor does its traceback, what it was raised from or beside, or what is kept of it."""
    async with Echo(status, form, after=0) as server:
        said = {"backend": "openai", "model": "m", "base_url": server.url, "api_key": SECRET}
        with CallStore(tmp_path / "calls.sqlite") as store, capture_logs() as logs:
            async with build(LLMSettings.model_validate(said | {"retry": {"budget": 1}}), store) as model:
                with pytest.raises((CallFailed, RunStopped)) as caught:
                    await model.complete(Request("choose", "m", (Message("user", "hello"),), Sampling(0.0)))
    error = caught.value
    assert f"HTTP {status}" in str(error) or "no completion" in str(error)
    assert "***" in str(error)
    told = f"{error} {error!r} {''.join(traceback.format_exception(error))} {_beside(error)} {logs}"
    assert leaks(told.encode() + pickle.dumps(error)) == set()


def _beside(error: BaseException) -> list[str]:
    """All errors that this one leads to, shown or not."""
    found, todo = [], [error.__cause__, error.__context__]
    while todo:
        if (one := todo.pop()) is not None:
            found.append(f"{one} {one!r} {vars(one)}")
            todo += [one.__cause__, one.__context__]
    return found


@pytest.mark.parametrize(
    "entries",
    [
        ["llm.base_url={url}", "llm.api_key={key}", "llm.model=m"],
        ["llm={backend: openai, model: m, base_url: '{url}', api_key: '{key}'}"],
    ],
)
def test_what_says_how_to_go_on_names_a_variable(
    entries: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets that a resume was given by ``--set`` stand in its command, and are not repeated."""
    monkeypatch.setenv("MY_SECRET", SECRET)
    with Echo.in_thread(0, "") as server:
        runs.run(tmp_path / "run", *runs.served(server.url), "llm.api_key=${MY_SECRET}")
    cut = runs.cut(tmp_path / "run", tmp_path / "cut", runs.ends(tmp_path / "run")[5])
    (cut / "calls.sqlite").unlink()
    with Echo.in_thread(401, "json", after=0) as server, pytest.raises(RunStopped) as caught:
        url = f"{server.url}?key={quote(SECRET)}"
        runs.resume(cut, *(entry.replace("{url}", url).replace("{key}", SECRET) for entry in entries))
    assert leaks(str(caught.value).encode()) == set()
    for entry in entries:
        shown = entry.replace("{url}", "${SIMENGINE_BASE_URL}").replace("{key}", "${SIMENGINE_API_KEY}")
        assert shlex.quote(f"--set={shown}") in caught.value.remedy


@pytest.mark.parametrize(
    "key", [SECRET, "none", "sk-${HALF}", "${HALF}2", "$MY_SECRET"], ids=lambda key: str(key).replace(SECRET, "secret")
)
def test_a_key_that_is_no_variable_is_not_kept(key: str) -> None:
    kept = portable({"data": {}, "llm": {"api_key": key, "base_url": "http://h/v1"}})
    assert kept["llm"] == {"api_key": "${SIMENGINE_API_KEY}", "base_url": "http://h/v1"}


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@h/v1",
        "http://me:secret@${HOST}/v1",
        "http://token@h/v1",
        "http://me:${HALF}secret@h/v1",
        "http://h/v1?key=secret",
        "http://h/v1?secret",
        "http://h/v1?api-version=2&key=secret",
        "http://[h/v1",
    ],
)
def test_an_address_with_a_secret_is_not_kept(url: str) -> None:
    kept = portable({"data": {}, "llm": {"api_key": "${KEY}", "base_url": url}})
    assert kept["llm"] == {"api_key": "${KEY}", "base_url": "${SIMENGINE_BASE_URL}"}


@pytest.mark.parametrize(
    "llm",
    [
        {"api_key": "${KEY}", "base_url": "${URL}"},
        {"api_key": "", "base_url": "http://me:${PASSWORD}@h/v1"},
        {"api_key": "${A}-${B}", "base_url": "http://${TOKEN}@h/v1?api-version=2024-02-01&key=${KEY}"},
        {"base_url": "http://h:8000/v1/"},
        {},
    ],
)
def test_what_holds_no_secret_is_kept_as_written(llm: dict[str, str]) -> None:
    assert portable({"data": {}, "llm": llm})["llm"] == llm


@pytest.mark.parametrize("query", ["key=ab+cd/ef-1", "key=ab%2Bcd/ef-1", "key=a%26b%3Ccd", "abcd-efgh"])
def test_a_key_in_an_address_is_taken_out_in_any_spelling(query: str) -> None:
    endpoint = Endpoint(f"http://h/v1?{query}", "", {})
    value = query.removeprefix("key=")
    for spelling in (value, unquote_plus(value), html.escape(unquote_plus(value))):
        assert endpoint.scrub(f"no {spelling}!") == "no ***!"
    assert endpoint.url("models") == f"http://h/v1/models?{query.replace(value, '***')}"
