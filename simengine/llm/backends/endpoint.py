"""The address of a model server and the secrets that go with it: resolved late, and kept out of every text."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

from simengine.errors import InputError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NO_SECRET = "api-version"  # what a query may say besides a key
_LEAST_SECRET = 4  # a shorter key ("x", "no") is a placeholder; hiding it would only garble messages


class Endpoint:
    """Where to send requests, and with what credentials.

    The rule for ``base_url``: trailing slashes are dropped, a bare host gets ``/v1``, any other path and the query
    are kept as they are, and ``/chat/completions`` (or what else is asked for) is appended to the path. User and
    password in it go out as basic authentication, in place of the key; an Azure deployment is given the key in the
    header that it looks at, too. ``${VAR}`` in both texts is taken from ``environ``; a variable that is unset or empty
    is an :class:`InputError` that names it.
    """

    def __init__(self, base_url: str, api_key: str, environ: Mapping[str, str]) -> None:
        parts = _split(resolve(base_url, environ, "llm.base_url"))
        self.key = resolve(api_key, environ, "llm.api_key")
        if not (self.key.isascii() and self.key.isprintable()):
            remedy = "look for stray characters around the key where it is set"
            raise InputError("the key holds characters that no header can carry", field="llm.api_key", remedy=remedy)
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.login = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
        host = parts.netloc.rpartition("@")[2]
        self.base = urlunsplit((parts.scheme, host, parts.path.rstrip("/") or "/v1", "", ""))
        self.headers = {"api-key": self.key} if "/openai/deployments/" in self.base and self.key else {}
        self._query = f"?{parts.query}" if parts.query else ""
        self._secrets = self._find_secrets(parts, api_key, environ)

    def url(self, path: str) -> str:
        """The whole address of one part of the protocol (``chat/completions``), without secrets."""
        return self.scrub(f"{self.base}/{path}{self._query}")

    def scrub(self, text: str) -> str:
        """The text with ``***`` in place of every secret: servers like to echo the key that they refuse."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def _find_secrets(self, parts: SplitResult, api_key: str, environ: Mapping[str, str]) -> list[str]:
        """All spellings of what must not be shown, longest first, since one may be a part of another."""
        plain = [self.key, *(environ[name] for name in _VARIABLE.findall(api_key))]
        plain += [value for name, value in self.query.items() if name != _NO_SECRET]
        plain += _raw_query(parts)
        if self.login is not None:
            pair = ":".join(self.login)
            plain += [*self.login, pair, parts.netloc.rpartition("@")[0], base64.b64encode(pair.encode()).decode()]
        spelled = {spelling for text in plain for spelling in (text, quote(text, safe=""), html.escape(text))}
        return sorted((text for text in spelled if len(text) >= _LEAST_SECRET), key=lambda text: (-len(text), text))


def resolve(text: str, environ: Mapping[str, str], field: str) -> str:
    """A setting's text with each ``${VAR}`` replaced; :class:`InputError` where one is unset or empty."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        found = environ.get(name, "").strip()
        if not found:
            state = "empty" if name in environ else "not set"
            remedy = f"set it before the run (export {name}=...), or write another value in the scenario"
            raise InputError(f"the environment variable {name} is {state}", field=field, remedy=remedy)
        return found

    return _VARIABLE.sub(value, text)


def is_portable(text: str) -> bool:
    """Whether a key can be written down as it is: nothing of it stands there but ``${VAR}``."""
    return not any(map(str.isalnum, _VARIABLE.sub("", text)))


def is_portable_url(url: str) -> bool:
    """The same for an address: of its password (or a user without one) and its query."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return False
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    return all(map(is_portable, [password if colon else user, *_raw_query(parts)]))


def _raw_query(parts: SplitResult) -> list[str]:
    """The values of a query as they are spelled in it, but for what is no secret."""
    pairs = (pair.partition("=") for pair in parts.query.split("&"))
    return [value or name for name, _, value in pairs if name != _NO_SECRET]


def _split(url: str) -> SplitResult:
    """The parts of an address, or :class:`InputError`, which does not repeat it: it may hold a password."""
    remedy = "write it like http://127.0.0.1:8000/v1"
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError("this is no http or https address", field="llm.base_url", remedy=remedy)
    return parts
