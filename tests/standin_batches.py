"""Files and batches of the stand-in server: the Batch API in its exact shapes, with ends and failures on demand."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Body = dict[str, Any]
Answer = tuple[int, object]
"""What a request of a batch is answered: a status and the body of the reply."""

MOST_REQUESTS = 50_000
MOST_BYTES = 200 * 1000 * 1000
ENDPOINTS = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/moderations")
_CODES = {"expired": "batch_expired", "cancelled": "batch_cancelled"}


class Refusal(Exception):
    """A request to the service that is wrong."""

    def __init__(self, status: int, message: str, param: str | None = None) -> None:
        super().__init__(message)
        kind = "invalid_request_error"
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": None}}


@dataclass
class _Job:
    """A batch: its lines as they were uploaded, how often it was looked at, and the object that tells of it."""

    number: int
    lines: list[Body]
    told: Body
    looks: int = 0


@dataclass
class Batches:
    """The service; the server gives ``answer``, which is asked for each line once its batch ends.

    A batch is in progress for ``polls`` looks at it (forever while ``hold``), then ends as the next of ``ends`` says
    (``completed`` behind the last). The ``unfinished`` last lines of one that ends ``expired`` or ``cancelled`` are
    errors. ``problem``, if given, is why each batch fails as a whole; a file that breaks the rules fails by itself.
    ``spoil(number, line)`` may put another answer in place of a line's own, by the batch's number from 0, or
    ``"missing"`` for no line at all. ``faults`` are met by the first requests to the service, in order; one of the kind
    ``lost`` does what it is asked and drops the reply. ``lists`` is whether batches can be listed.

    Recorded: ``uploads``, the lines of each file; ``created``, how many batches; ``looks`` at them (``looked``:
    there was one); ``calls``, the method and path of each request;
    ``answered`` by a digest of each line's body that got a good answer.
    """

    polls: int = 2
    hold: bool = False
    ends: list[str] = field(default_factory=list)
    unfinished: int = 0
    problem: str = ""
    spoil: Callable[[int, Body], Answer | str | None] = lambda number, line: None
    faults: list[Any] = field(default_factory=list)
    lists: bool = True
    uploads: list[list[Body]] = field(default_factory=list)
    looks: int = 0
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[str] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    jobs: dict[str, _Job] = field(default_factory=dict)
    answer: Callable[[str, Body], Answer] = lambda path, body: (500, {})

    @property
    def created(self) -> int:
        """How many batches were created."""
        return len(self.jobs)

    @property
    def repeats(self) -> int:
        """How many lines were answered well that had been answered well before."""
        return sum(self.answered.values()) - len(self.answered)

    async def serve(self, request: web.Request) -> web.Response:
        """Answer a request to ``/v1/files`` or ``/v1/batches``."""
        self.calls.append(f"{request.method} {request.path}")
        try:
            return await self._route(request, request.path.removeprefix("/v1/").split("/"))
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.status)

    async def _route(self, request: web.Request, parts: list[str]) -> web.Response:
        match request.method, *parts:
            case "POST", "files":
                return web.json_response(await self._upload(request))
            case "GET", "files", name, "content":
                return web.Response(body=self._file(name)[1], content_type="application/octet-stream")
            case "GET", "files", name:
                return web.json_response(_file_object(name, *self._file(name)))
            case "POST", "batches":
                return web.json_response(self._create(await request.json()))
            case "GET", "batches" if self.lists:
                return web.json_response(self._list(request))
            case "GET", "batches", name:
                return web.json_response(self._look(self._job(name)))
            case "POST", "batches", name, "cancel":
                job = self._job(name)
                job.told |= {"status": "cancelling", "cancelling_at": 1}
                return web.json_response(job.told)
        raise Refusal(404, f"Unknown request URL: {request.method} {request.path}")

    async def _upload(self, request: web.Request) -> Body:
        if request.content_type != "multipart/form-data":
            raise Refusal(400, "files are uploaded as multipart/form-data", "file")
        form = await request.post()
        file, purpose = form.get("file"), form.get("purpose")
        if not isinstance(file, web.FileField):
            raise Refusal(400, "'file' is a required property", "file")
        if purpose != "batch" or not file.filename.endswith(".jsonl"):
            raise Refusal(400, f"Invalid file {file.filename} for purpose {purpose}.", "purpose")
        content = file.file.read()
        name = f"file-{len(self.files)}"
        self.files[name] = ("batch", content)
        self.uploads.append([json.loads(line) for line in content.splitlines() if _is_json(line)])
        return _file_object(name, "batch", content)

    def _create(self, body: Body) -> Body:
        if extra := body.keys() - {"completion_window", "endpoint", "input_file_id", "metadata"}:
            raise Refusal(400, f"Unknown parameter: '{min(extra)}'.", min(extra))
        if body.get("completion_window") != "24h":
            raise Refusal(400, "Invalid value for completion_window: supported values are '24h'.", "completion_window")
        if body.get("endpoint") not in ENDPOINTS:
            raise Refusal(400, f"Invalid value for endpoint: {body.get('endpoint')}", "endpoint")
        metadata = body.get("metadata") or {}
        if len(metadata) > 16 or any(len(name) > 64 or len(str(value)) > 512 for name, value in metadata.items()):
            raise Refusal(400, "metadata is too long", "metadata")
        purpose, content = self._file(str(body.get("input_file_id")))
        if purpose != "batch":
            raise Refusal(400, "the file has another purpose than 'batch'", "input_file_id")
        number = len(self.jobs)
        errors = self._errors(content, body["endpoint"])
        lines = [] if errors else [json.loads(line) for line in content.splitlines()]
        told = _batch_object(f"batch_{number}", body, metadata)
        told["errors"] = {"object": "list", "data": errors} if errors else None
        self.jobs[told["id"]] = _Job(number, lines, told)
        return {**told, "errors": None}

    def _errors(self, content: bytes, endpoint: str) -> list[Body]:
        """What is wrong with a file, as the service finds it while it validates: the first fault of each line."""
        if self.problem:
            return [{"code": "token_limit_exceeded", "line": None, "message": self.problem, "param": None}]
        lines = content.splitlines()
        if not lines or len(lines) > MOST_REQUESTS or len(content) > MOST_BYTES:
            code = "too_many_tasks" if lines else "empty_file"
            return [{"code": code, "line": None, "message": "The file is empty or too large.", "param": None}]
        seen: set[str] = set()
        models: set[object] = set()
        found = [(number, _line_error(line, endpoint, seen, models)) for number, line in enumerate(lines, start=1)]
        return [{"line": number, **error} for number, error in found if error is not None]

    def _look(self, job: _Job) -> Body:
        self.looks += 1
        self.looked.set()
        job.looks += 1
        told = job.told
        if told["status"] in ("completed", "failed", "expired", "cancelled"):
            return told
        if told["errors"]:
            told |= {"status": "failed", "failed_at": 1}
        elif told["status"] == "cancelling":
            self._end(job, "cancelled")
        elif self.hold or job.looks < self.polls:
            told |= {"status": "in_progress", "in_progress_at": 1}
        elif job.looks == self.polls:
            told |= {"status": "finalizing", "finalizing_at": 1}
        else:
            self._end(job, self.ends.pop(0) if self.ends else "completed")
        return told

    def _end(self, job: _Job, status: str) -> None:
        """Answer all lines, and write the files: good answers into the one, the rest into the other, in no order."""
        whole = len(job.lines) - (self.unfinished if status in _CODES else 0)
        good, bad = [], []
        for at, line in enumerate(job.lines):
            result: Body = {"id": f"batch_req_{job.number}_{at}", "custom_id": line["custom_id"], "error": None}
            if at >= whole:
                message = "This request could not be executed before the completion window expired."
                bad.append(result | {"response": None, "error": {"code": _CODES[status], "message": message}})
                continue
            met = self.spoil(job.number, line)
            if met == "missing":
                continue
            assert not isinstance(met, str)
            code, body = met or self.answer(line["url"], line["body"])
            result["response"] = {"status_code": code, "request_id": f"req_{job.number}_{at}", "body": body}
            (good if code == 200 else bad).append(result)
            if met is None and code == 200:
                digest = hashlib.blake2b(json.dumps(line["body"], sort_keys=True).encode(), digest_size=16).hexdigest()
                self.answered[digest] += 1
        told = job.told
        told |= {"status": status, f"{status}_at": 1, "output_file_id": self._keep(good)}
        told |= {"error_file_id": self._keep(bad)}
        told["request_counts"] = {"total": len(job.lines), "completed": len(good), "failed": len(bad)}

    def _keep(self, results: list[Body]) -> str | None:
        if not results:
            return None
        random.Random(len(results)).shuffle(results)
        name = f"file-{len(self.files)}"
        self.files[name] = ("batch_output", b"".join(json.dumps(line).encode() + b"\n" for line in results))
        return name

    def _list(self, request: web.Request) -> Body:
        limit = int(request.query.get("limit", "20"))
        if not 1 <= limit <= 100:
            raise Refusal(400, "limit must be between 1 and 100", "limit")
        newest = [job.told for job in reversed(self.jobs.values())]
        shown = newest[:limit]
        ends = {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {}
        return {"object": "list", "data": shown, **ends, "has_more": len(newest) > limit}

    def _file(self, name: str) -> tuple[str, bytes]:
        if name not in self.files:
            raise Refusal(404, f"No such File object: {name}", "id")
        return self.files[name]

    def _job(self, name: str) -> _Job:
        if name not in self.jobs:
            raise Refusal(404, f"No batch found with id '{name}'.")
        return self.jobs[name]


def _line_error(text: bytes, endpoint: str, seen: set[str], models: set[object]) -> Body | None:
    if not _is_json(text):
        return {"code": "invalid_json_line", "message": "This line is not parseable as valid JSON.", "param": None}
    line = json.loads(text)
    if line.keys() != {"custom_id", "method", "url", "body"} or not isinstance(line["body"], dict):
        return {"code": "invalid_request", "message": "A line has custom_id, method, url and body.", "param": None}
    if not isinstance(line["custom_id"], str) or not 0 < len(line["custom_id"]) <= 64:
        return {"code": "invalid_custom_id", "message": "custom_id is a text of at most 64.", "param": "custom_id"}
    if line["custom_id"] in seen:
        return {"code": "duplicate_custom_id", "message": "The custom_id was used before.", "param": "custom_id"}
    seen.add(line["custom_id"])
    if line["method"] != "POST":
        return {"code": "invalid_method", "message": "The method must be POST.", "param": "method"}
    if line["url"] != endpoint:
        return {"code": "url_mismatch", "message": "The URL is not that of the batch.", "param": "url"}
    models.add(line["body"].get("model"))
    if len(models) > 1 or None in models:
        return {"code": "model_mismatch", "message": "All lines must be for one model.", "param": "body.model"}
    return None


def _is_json(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _file_object(name: str, purpose: str, content: bytes) -> Body:
    size = {"bytes": len(content), "created_at": 0, "expires_at": None}
    rest = {"filename": "requests.jsonl", "purpose": purpose, "status": "processed", "status_details": None}
    return {"id": name, "object": "file", **size, **rest}


def _batch_object(name: str, body: Body, metadata: Body) -> Body:
    moments = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
    return {
        "id": name,
        "object": "batch",
        "endpoint": body["endpoint"],
        "errors": None,
        "input_file_id": body["input_file_id"],
        "completion_window": "24h",
        "status": "validating",
        "output_file_id": None,
        "error_file_id": None,
        "created_at": 0,
        "expires_at": 86_400,
        **{f"{moment}_at": None for moment in moments},
        "request_counts": {"total": 0, "completed": 0, "failed": 0},
        "metadata": metadata,
    }
