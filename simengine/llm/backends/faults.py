"""What a failed attempt means: whether it may pass, concerns one request, or must end the run."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from simengine.errors import CallFailed, RunStopped
from simengine.llm.backends.endpoint import Endpoint
from simengine.llm.transient import Transient

if TYPE_CHECKING:
    from openai import APIStatusError

_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
_CONTEXT = re.compile(r"context[ _](length|window)|maximum context|too many tokens|prompt is too long", re.IGNORECASE)
_NUMBER = re.compile(r"\s*\d+(\.\d*)?\s*")
_LONGEST_TEXT = 500  # characters of a server's own words that an error repeats; some answer with a whole web page


def from_status(error: APIStatusError, endpoint: Endpoint, elapsed: float) -> Exception:
    """The meaning of an HTTP status other than success."""
    status = error.status_code
    marks = (error.code, error.type)
    problem = f"HTTP {status}: {brief(_words(error.body), endpoint)}"
    if status == 402 or any(mark in _QUOTA for mark in marks):
        return stopped(f"the account has no quota left: {problem}", endpoint, "top it up, then resume the run")
    if "content_filter" in marks:
        return CallFailed(f"the server's content filter refused the request: {problem}", reason="filtered")
    if status in (401, 403):
        remedy = "check llm.api_key and the environment variable that it names, then resume the run"
        return stopped(f"the server refused the key: {problem}", endpoint, remedy)
    if status in (404, 405) or status < 400:
        remedy = "check llm.base_url (it usually ends in /v1) and llm.model, then resume the run"
        return stopped(f"the server does not know this address or model: {problem}", endpoint, remedy)
    if status in (408, 409, 429) or status >= 500:
        return Transient(problem, retry_after=retry_after(error.response.headers, time.time()), elapsed=elapsed)
    if "context_length_exceeded" in marks or _CONTEXT.search(problem):
        return CallFailed(f"the prompt is longer than the model's context: {problem}", reason="context")
    return CallFailed(f"the server refused the request: {problem}", reason="rejected")


def from_connection(error: Exception, endpoint: Endpoint, elapsed: float) -> Transient:
    """The meaning of an attempt that brought no whole reply."""
    while error.__cause__ is not None and isinstance(error.__cause__, Exception):
        error = error.__cause__  # the SDK says "Connection error."; what happened is further down
    problem = f"{type(error).__name__}: {brief(str(error), endpoint)}"
    return Transient(problem, reason="connection", elapsed=elapsed)


def stopped(problem: str, endpoint: Endpoint, remedy: str) -> RunStopped:
    """The end of the run, with the address that was tried."""
    return RunStopped(problem, url=endpoint.url, remedy=remedy)


def brief(text: str, endpoint: Endpoint) -> str:
    """A server's words in one line, without secrets (taken out before the cut, which could halve one)."""
    line = " ".join(endpoint.scrub(text).split())
    return line if len(line) <= _LONGEST_TEXT else line[:_LONGEST_TEXT] + " ..."


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks to wait, from ``retry-after-ms`` or ``retry-after`` (a number or an HTTP date).

    ``now`` is the time in seconds since 1970, for dates. ``None`` where nothing legible was said.
    """
    if _NUMBER.fullmatch(milliseconds := headers.get("retry-after-ms", "")):
        return float(milliseconds) / 1000
    said = headers.get("retry-after", "")
    if _NUMBER.fullmatch(said):
        return float(said)
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - now)
    except ValueError:
        return None


def _words(body: object) -> str:
    message = body.get("message") if isinstance(body, dict) else None
    return message if isinstance(message, str) else str(body)
