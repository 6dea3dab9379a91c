"""What a failed attempt means: whether it may pass, concerns one request, or must end the run."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from simengine.errors import CallFailed, RunStopped
from simengine.llm.attempt import Gauge
from simengine.llm.backends.endpoint import Endpoint
from simengine.llm.backends.headers import retry_after
from simengine.llm.transient import Limited, Transient

if TYPE_CHECKING:
    from openai import APIStatusError

_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
_CONTEXT = re.compile(r"context[ _](length|window)|maximum context|too many tokens|prompt is too long", re.IGNORECASE)
_CONCURRENCY = re.compile(r"concurren|simultaneous|in parallel|in[- ]flight", re.IGNORECASE)
_TOKENS = re.compile(r"tokens? (per|rate)|\bTPM\b", re.IGNORECASE)
_REQUESTS = re.compile(r"requests? (per|rate)|\bRPM\b", re.IGNORECASE)
_LONGEST_TEXT = 500  # characters of a server's own words that an error repeats; some answer with a whole web page


def from_status(error: APIStatusError, endpoint: Endpoint, path: str, gauges: Mapping[str, Gauge]) -> Exception:
    """The meaning of an HTTP status other than success; ``elapsed`` of a :class:`Transient` is left to the caller."""
    status = error.status_code
    marks = (error.code, error.type)
    problem = f"HTTP {status}: {words(error, endpoint)}"
    if status == 402 or any(mark in _QUOTA for mark in marks):
        return stopped(f"the account has no quota left: {problem}", endpoint, path, "top it up, then resume the run")
    if "content_filter" in marks:
        return CallFailed(f"the server's content filter refused the request: {problem}", reason="filtered")
    if status in (401, 403):
        remedy = "check llm.api_key and the environment variable that it names, then resume the run"
        return stopped(f"the server refused the key: {problem}", endpoint, path, remedy)
    if status in (404, 405) or status < 400:
        remedy = "check llm.base_url (it usually ends in /v1) and llm.model, then resume the run"
        return stopped(f"the server does not know this address or model: {problem}", endpoint, path, remedy)
    if status in (408, 409, 429) or status >= 500:
        wait = retry_after(error.response.headers, time.time())
        if status == 429:
            return Transient(problem, reason="limited", retry_after=wait, limited=_limited(marks, problem, gauges))
        return Transient(problem, retry_after=wait)
    if "context_length_exceeded" in marks or _CONTEXT.search(problem):
        return CallFailed(f"the prompt is longer than the model's context: {problem}", reason="context")
    return CallFailed(f"the server refused the request: {problem}", reason="rejected")


def adaptable(error: APIStatusError) -> bool:
    """Whether a status may be a refusal of a parameter or a role, rather than of what this request says."""
    if "content_filter" in (error.code, error.type) or _CONTEXT.search(str(error.body)):
        return False
    # A chat template that raises is a status 500 to some servers.
    return error.status_code in (400, 422) or (error.status_code == 500 and "template" in str(error.body).lower())


def from_connection(error: Exception, endpoint: Endpoint, reused: bool) -> Transient:
    """The meaning of an attempt that brought no whole reply; ``reused``: on a connection that had been used before."""
    import aiohttp

    while isinstance(error.__cause__, Exception) and not isinstance(error, aiohttp.ClientError):
        error = error.__cause__  # the SDK says "Connection error."; what happened is further down
    problem = f"{type(error).__name__}: {brief(str(error), endpoint)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = isinstance(error.os_error, ConnectionRefusedError)
        if refused and not isinstance(error, aiohttp.ClientProxyConnectionError):
            problem = f"connection refused: nothing listens at {endpoint.scrub(endpoint.base)}"
        return Transient(problem, reason="unreachable")
    # A server may close an idle connection in the moment in which a request is on its way to it. That says nothing
    # about the server, and a resend goes out on another connection: in the end on a new one.
    dropped = isinstance(error, aiohttp.ServerDisconnectedError | ConnectionError)
    return Transient(problem, reason="connection", free=reused and dropped)


def stopped(problem: str, endpoint: Endpoint, path: str, remedy: str) -> RunStopped:
    """The end of the run, with the address that was tried."""
    return RunStopped(problem, url=endpoint.url(path), remedy=remedy)


def words(error: APIStatusError, endpoint: Endpoint) -> str:
    """A server's own words about an error, in one line, without secrets."""
    message = error.body.get("message") if isinstance(error.body, dict) else None
    return brief(message if isinstance(message, str) else str(error.body), endpoint)


def brief(text: str, endpoint: Endpoint) -> str:
    """A server's words in one line, without secrets (taken out before the cut, which could halve one)."""
    line = " ".join(endpoint.scrub(text).split())
    return line if len(line) <= _LONGEST_TEXT else line[:_LONGEST_TEXT] + " ..."


def _limited(marks: Iterable[str | None], problem: str, gauges: Mapping[str, Gauge]) -> Limited:
    """Which limit a status 429 is about, as far as type, text or headers tell."""
    if _CONCURRENCY.search(problem):
        return "concurrency"
    if "tokens" in marks or _TOKENS.search(problem):
        return "tokens"
    if "requests" in marks or _REQUESTS.search(problem):
        return "requests"
    empty = [name for name, gauge in gauges.items() if gauge.remaining == 0]
    return "" if len(empty) != 1 else "tokens" if empty[0] == "tokens" else "requests"
