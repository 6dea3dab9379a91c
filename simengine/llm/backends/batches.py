"""The Batch API of the OpenAI protocol: files of requests are stored, worked off within a day, and fetched as files."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import structlog

from simengine.errors import CallFailed, RunStopped
from simengine.llm.backends.endpoint import Endpoint
from simengine.llm.backends.faults import brief, from_status, stopped, words
from simengine.llm.layers.filing import BatchState, Line
from simengine.llm.transient import Transient

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIStatusError, AsyncOpenAI

    Asking: TypeAlias = Callable[[AsyncOpenAI], Awaitable[Response]]
    Refused: TypeAlias = Callable[[APIStatusError], Exception]
    Exchange: TypeAlias = Callable[[Asking, Refused, float], Awaitable[Response | Exception]]
    """One HTTP exchange: who asks the client, what a status other than success means, and the time-out in seconds."""

log = structlog.get_logger("simengine")

LABEL = "simengine"
"""The entry of a batch's metadata that holds its label."""

_FILES, _BATCHES = "files", "batches"
_TRANSFER = 600.0  # seconds that a file of up to 200 MB may take, where llm.timeout is less
_NEWEST = 100  # the most that a server lists at once
_NOT_AT_HAND = "if this server has no Batch API, take `mode: offline` out of llm.roles; then resume the run"


class Batches:
    """The files and batches of one server; see :class:`~simengine.llm.layers.filing.BatchService`."""

    def __init__(self, exchange: Exchange, endpoint: Endpoint, timeout: float) -> None:
        self._exchange = exchange
        self._endpoint = endpoint
        self._timeout = timeout

    async def upload(self, lines: bytes) -> str:
        """Store a file of requests."""
        options = {
            "body": {"purpose": "batch"},
            "files": [("file", ("requests.jsonl", lines, "application/jsonl"))],
            "options": {"headers": {"Content-Type": "multipart/form-data"}},
        }
        return _text(self._object(await self._post(_FILES, options), _FILES), "id")

    async def create(self, path: str, file: str, label: str) -> BatchState:
        """Begin a batch that is to end within 24 hours, the one window that there is."""
        body = {
            "completion_window": "24h",
            "endpoint": f"/v1/{path}",
            "input_file_id": file,
            "metadata": {LABEL: label},
        }
        return self._state(self._object(await self._post(_BATCHES, {"body": body}), _BATCHES))

    async def find(self, label: str) -> BatchState | None:
        """The batch of this label, as far as the server can list its newest ones."""
        reply = await self._get(_BATCHES, {"limit": _NEWEST})
        items = [] if reply is None else self._object(reply, _BATCHES).get("data")
        for item in items if isinstance(items, list) else []:
            if isinstance(item, dict) and _mapping(item.get("metadata")).get(LABEL) == label:
                return self._state(item)
        return None

    async def look(self, batch: str) -> BatchState | None:
        """How a batch stands."""
        path = f"{_BATCHES}/{batch}"
        reply = await self._get(path)
        return None if reply is None else self._state(self._object(reply, path))

    async def download(self, file: str) -> dict[str, Line]:
        """The lines of a file of results; one that cannot be read is left out, as if it were missing."""
        reply = await self._get(f"{_FILES}/{file}/content")
        texts = [] if reply is None else [text for text in reply.content.split(b"\n") if text.strip()]
        found: dict[str, Line] = {}
        for text in texts:
            try:
                line = json.loads(text)
                found[line["custom_id"]] = line
            except (ValueError, TypeError, KeyError):
                continue
        if reply is not None and texts and not found:
            raise Transient(f"a reply that is no file of results: {brief(reply.text, self._endpoint)}")
        if len(found) < len(texts):
            log.warning("results unreadable", file=file, lines=len(texts) - len(found))
        return found

    async def _post(self, path: str, options: Mapping[str, Any]) -> Response:
        async def ask(client: AsyncOpenAI) -> Response:
            reply: Response = await client.post(f"/{path}", cast_to=_response(), **options)
            return reply

        reply = await self._ask(path, ask)
        if reply is None:
            raise stopped("the server does not know this address", self._endpoint, path, _NOT_AT_HAND)
        return reply

    async def _get(self, path: str, query: Mapping[str, object] | None = None) -> Response | None:
        """The reply; ``None`` where the server does not know what is asked for."""

        async def ask(client: AsyncOpenAI) -> Response:
            return await client.get(f"/{path}", cast_to=_response(), options={"params": query or {}})

        return await self._ask(path, ask)

    async def _ask(self, path: str, ask: Asking) -> Response | None:
        def refused(error: APIStatusError) -> Exception:
            problem = f"HTTP {error.status_code}: {words(error, self._endpoint)}"
            if error.status_code in (404, 410):
                return _UnknownHere(problem)
            fault = from_status(error, self._endpoint, path, {})
            return self._refused(problem, path) if isinstance(fault, CallFailed) else fault

        timeout = max(self._timeout, _TRANSFER) if path.startswith(_FILES) else self._timeout
        outcome = await self._exchange(ask, refused, timeout)
        if isinstance(outcome, _UnknownHere):
            return None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _object(self, reply: Response, path: str) -> dict[str, Any]:
        """The JSON object with an id, or a list of them, in a reply of status 200."""
        try:
            raw = json.loads(reply.content)
        except ValueError:
            raw = None
        if not isinstance(raw, dict) or not (isinstance(raw.get("id"), str) or "data" in raw):
            raise Transient(f"a reply that is none of the Batch API: {brief(reply.text, self._endpoint)}")
        return raw

    def _state(self, raw: Mapping[str, Any]) -> BatchState:
        counts = _mapping(raw.get("request_counts"))
        files = (_text(raw, name) for name in ("output_file_id", "error_file_id"))
        return BatchState(
            id=_text(raw, "id"),
            status=_text(raw, "status"),
            files=tuple(file for file in files if file),
            problem=self._problem(_mapping(raw.get("errors")).get("data")),
            completed=int(counts.get("completed") or 0),
            failed=int(counts.get("failed") or 0),
        )

    def _problem(self, errors: object) -> str:
        """The first of the errors by which a batch failed as a whole, and how many there are beside it."""
        found = [_mapping(error) for error in errors] if isinstance(errors, list) else []
        if not found:
            return ""
        first, more = found[0], len(found) - 1
        place = f"line {first['line']}: " if first.get("line") is not None else ""
        said = f"{place}{_text(first, 'message') or _text(first, 'code')}"
        return brief(said + (f" (and {more} more)" if more else ""), self._endpoint)

    def _refused(self, problem: str, path: str) -> RunStopped:
        return stopped(f"the server does not take the batch: {problem}", self._endpoint, path, _NOT_AT_HAND)


class _UnknownHere(Exception):
    """Status 404 or 410: what it means depends on what was asked for."""


def reply_of(line: Line | None) -> tuple[int, dict[str, Any]] | Transient:
    """The status and the body in a line of results; where there is none, what it means for its request.

    A request of a batch that expired or was cancelled has an error and no response; one that was refused has a
    response like any refused call, in the file of errors.
    """
    if line is None:
        return Transient("the batch ended without a line for this request", reason="missing")
    response = line.get("response")
    if isinstance(response, dict) and isinstance(response.get("status_code"), int):
        body = response.get("body")
        if isinstance(body, dict):
            return response["status_code"], body
        return Transient("the batch answered this request with no object", reason="overloaded")
    code = _text(_mapping(line.get("error")), "code")
    reason = {"batch_expired": "expired", "batch_cancelled": "cancelled"}.get(code, "overloaded")
    return Transient(f"the batch did not answer this request ({code or 'no reason is given'})", reason=reason)


def status_error(status: int, body: Mapping[str, Any], url: str) -> APIStatusError:
    """The error that the SDK would have raised for this reply, had it come by itself."""
    import httpx2
    import openai

    reply = httpx2.Response(status, request=httpx2.Request("POST", url))
    return openai.APIStatusError(f"status {status}", response=reply, body=body.get("error", body))


def _response() -> type[Response]:
    import httpx2

    return httpx2.Response


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(raw: Mapping[str, Any], name: str) -> str:
    value = raw.get(name)
    return value if isinstance(value, str) else ""
