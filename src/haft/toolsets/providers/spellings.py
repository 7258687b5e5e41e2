"""Reads the table of one MCP server, as any of many programs writes it, into one form.

The table may come from `[providers]`, from `.mcp.json`, or from a file of another agent. Placeholders stay as they are
written. This module reads no file and no variable.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from haft.contracts import Grants, check_owned, grants_from, near_miss
from haft.lazy import regex
from haft.sources.mcp import ProviderTransport
from haft.values import dataclass, field

TYPES: Final[dict[str, ProviderTransport]] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "remote": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
"""What files write as the type of a server, in lower case, each with the transport that it means."""

OWN_KEYS: Final = (
    *("type", "command", "args", "env", "cwd", "url", "headers", "grant", "include", "exclude", "timeout", "timeouts"),
    *("trust_annotations", "inputs", "oauth", "enabled"),
)
"""The keys that haft's own documentation names."""
_OTHER_KEYS: Final = frozenset(
    {
        *("transport", "environment", "environmentVariables", "env_vars", "httpUrl", "serverUrl", "endpoint"),
        *("http_headers", "env_http_headers", "bearer_token_env_var", "disabled", "headersHelper", "envFile"),
        *("includeTools", "include_tools", "enabled_tools", "tools"),
        *("excludeTools", "exclude_tools", "disabled_tools", "disabledTools"),
        *("tool_timeout_sec", "startup_timeout_sec", "name", "description", "required", "trust", "version"),
        *("alwaysAllow", "autoApprove", "default_tools_approval_mode"),
    }
)
"""The keys of other programs. Those in the last two lines have no effect here."""
_UNSUPPORTED: Final = {
    "headersHelper": "it computes headers with a program; write the headers under `headers`, with `${VAR}`",
    "envFile": "it reads variables from a file; write them under `env`, or name variables of yours as `${VAR}`",
}
_MILLISECONDS_FROM: Final = 1_000
"""Other programs give deadlines in milliseconds, and some in seconds. Nobody means a deadline of 1000 s or more, or
one of less than a second."""
_PLACE: Final = regex(r"\$\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class WrittenServer:
    """A server as a file writes it, in haft's spelling, with placeholders that are not filled."""

    transport: ProviderTransport
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    grant: Mapping[str, Any] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    timeout: float | None = None
    timeouts: Mapping[str, float] = field(default_factory=dict)
    trusts_annotations: bool = False
    inputs: tuple[Mapping[str, Any], ...] = ()
    oauth: Mapping[str, str] = field(default_factory=dict)
    is_disabled: bool = False

    def bound(self) -> dict[str, Any]:
        """Everything that trust in the start of the server is bound to."""
        return {
            "type": self.transport,
            "command": self.command,
            "args": list(self.args),
            "cwd": self.cwd,
            "env": dict(self.env),
            "url": self.url,
            "headers": dict(self.headers),
            "grant": dict(self.grant),
            "oauth": dict(self.oauth),
        }

    def table(self) -> dict[str, Any]:
        """The table that means this server in haft's own files."""
        found: dict[str, Any] = {name: value for name, value in self.bound().items() if value}
        others = {
            "include": list(self.include),
            "exclude": list(self.exclude),
            "timeout": self.timeout,
            "timeouts": dict(self.timeouts),
            "trust_annotations": self.trusts_annotations,
            "inputs": [dict(one) for one in self.inputs],
        }
        found |= {name: value for name, value in others.items() if value}
        return found | ({"enabled": False} if self.is_disabled else {})


def read_server(table: Any, *, is_own: bool) -> WrittenServer:
    """Read a server's table. With `is_own`, the table stands in a file of haft's: unknown keys are refused, and
    deadlines are in seconds. Raises `ValueError` with a sentence if the table cannot be used."""
    if not isinstance(table, Mapping):
        raise ValueError("is not a table")  # noqa: TRY004  all problems raise the same
    if is_own:
        _check_keys(table)
    for key, why in _UNSUPPORTED.items():
        if table.get(key):
            raise ValueError(f"has `{key}`, which haft does not use: {why}")
    command, args = _command(table)
    url, url_key = _url(table)
    transport = _transport(table, command, url, url_key)
    env = _texts_by_name(table, "env", "environment", "environmentVariables")
    return WrittenServer(
        transport,
        command=command if transport == "stdio" else None,
        args=args if transport == "stdio" else (),
        env=env,
        cwd=_text(table, "cwd"),
        url=url if transport != "stdio" else None,
        headers=_headers(table),
        grant=_grant(table),
        include=_texts(table, "include", "includeTools", "include_tools", "enabled_tools", "tools"),
        exclude=_texts(table, "exclude", "excludeTools", "exclude_tools", "disabled_tools", "disabledTools"),
        timeout=_timeout(table, is_own=is_own),
        timeouts={name: _seconds("timeouts", each) for name, each in _table(table, "timeouts").items()},
        trusts_annotations=_truth(table, "trust_annotations"),
        inputs=declared_inputs(table),
        oauth=_oauth(table),
        is_disabled=_truth(table, "disabled") or table.get("enabled") is False,
    )


def grants_of(grant: Mapping[str, Any]) -> Grants:
    """The grants in a server's table. Raises `ValueError` with a sentence."""
    try:
        found = grants_from(grant)
        check_owned(found.network)
        return found
    except ValueError as error:
        raise ValueError(f"has a `grant` that cannot be used: {error}") from None


def declared_inputs(table: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The inputs that a table declares. Everything else under `inputs` is left out."""
    given = table.get("inputs")
    return tuple(one for one in given if isinstance(one, Mapping)) if isinstance(given, list) else ()


def _check_keys(table: Mapping[str, Any]) -> None:
    for key in table:
        if key not in OWN_KEYS and key not in _OTHER_KEYS:
            near = near_miss(str(key), OWN_KEYS)
            hint = f"did you mean `{near}`?" if near else f"the keys are {', '.join(OWN_KEYS)}"
            raise ValueError(f"has no key `{key}`; {hint}")


def _transport(table: Mapping[str, Any], command: str | None, url: str | None, url_key: str) -> ProviderTransport:
    said = table.get("type") or table.get("transport")
    if said is not None and (not isinstance(said, str) or said.lower() not in TYPES):
        raise ValueError(f"has the type `{said}`, which haft does not know: the types are stdio, http and sse")
    if said is None:
        if command is not None and url is not None:
            raise ValueError(f"has both `command` and `{url_key}`: remove one, or say which with `type`")
        if command is None and url is None:
            near = next(((key, one) for key in table if (one := near_miss(str(key), ("command", "url")))), None)
            meant = "" if near is None else f"; instead of `{near[0]}`, did you mean `{near[1]}`?"
            raise ValueError(f"needs a `command` to start, or the `url` of a server{meant}")
        if command is not None:
            return "stdio"
        is_events = url_key != "httpUrl" and urlsplit(url or "").path.rstrip("/").endswith("/sse")
        return "sse" if is_events else "http"
    transport = TYPES[said.lower()]
    if transport == "stdio" and command is None:
        raise ValueError(f"has the type `{said}` and no `command`")
    if transport != "stdio" and url is None:
        raise ValueError(f"has the type `{said}` and no `url`")
    return transport


def _command(table: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """The program and its arguments. A program may be written as a list, or as one line without `args`."""
    written, args = table.get("command"), _texts(table, "args")
    if isinstance(written, Mapping):  # Zed writes {path, args, env}.
        return _text(written, "path"), _texts(written, "args")
    if isinstance(written, Sequence) and not isinstance(written, str):
        words = _texts(table, "command")
        if not words:
            raise ValueError("has an empty `command`")
        return words[0], (*words[1:], *args)
    command = _text(table, "command")
    if command is not None and not args and any(map(str.isspace, command)):
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise ValueError(f"has a `command` that cannot be read: {error}") from None
        return (words[0], words[1:]) if words else (None, ())
    return command, args


def _url(table: Mapping[str, Any]) -> tuple[str | None, str]:
    for key in ("url", "httpUrl", "serverUrl", "endpoint"):
        url = _text(table, key)
        if url is None:
            continue
        plain = _PLACE.sub("x", url)
        parts = urlsplit(plain)
        # A placeholder may stand for the beginning of the address.
        if not url.startswith("${") and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError(f"has the `{key}` `{url}`, which is no address of an HTTP server")
        if not plain.isprintable() or " " in plain:
            raise ValueError(f"has a `{key}` with blanks or invisible characters")
        return url, key
    return None, "url"


def _headers(table: Mapping[str, Any]) -> dict[str, str]:
    found = _texts_by_name(table, "headers", "http_headers")
    found |= {name: f"${{{variable}}}" for name, variable in _texts_by_name(table, "env_http_headers").items()}
    if (variable := _text(table, "bearer_token_env_var")) is not None:
        found["Authorization"] = f"Bearer ${{{variable}}}"
    for name, value in found.items():
        if not name or not name.isascii() or not name.isprintable() or set(name) & set(' :"(),/;<=>?@[]\\{}'):
            raise ValueError(f"has a header with the name `{name!r}`, which HTTP does not allow")
        if "\r" in value or "\n" in value:
            raise ValueError(f"has a line break in the header `{name}`")
    return found


def _grant(table: Mapping[str, Any]) -> dict[str, Any]:
    given = _table(table, "grant")
    names = _texts(table, "env_vars")
    if names:
        written = given.get("env", ())
        given = {**given, "env": list(dict.fromkeys((*written, *names)))}
    grants_of(given)
    return given


def _oauth(table: Mapping[str, Any]) -> dict[str, str]:
    given = table.get("oauth")
    if not isinstance(given, Mapping):
        return {}
    names = {
        "client_id": ("client_id", "clientId"),
        "client_secret": ("client_secret", "clientSecret"),
        "scope": ("scope", "scopes"),
        "callback_port": ("callback_port", "callbackPort"),
        "issuer": ("issuer",),
        "grant": ("grant", "grant_type", "grantType"),
        "redirect_uri": ("redirect_uri", "redirectUri"),
        "client_metadata_url": ("client_metadata_url", "clientMetadataUrl"),
    }
    found = {}
    for name, keys in names.items():
        value = next((given[key] for key in keys if given.get(key)), None)
        if isinstance(value, list | tuple):
            value = " ".join(map(str, value))
        if value is not None:
            found[name] = str(value)
    return found


def _timeout(table: Mapping[str, Any], *, is_own: bool) -> float | None:
    if table.get("tool_timeout_sec") is not None:
        return _seconds("tool_timeout_sec", table["tool_timeout_sec"])
    if table.get("timeout") is None:
        return None
    number = _seconds("timeout", table["timeout"])
    return number / 1_000 if not is_own and number >= _MILLISECONDS_FROM else number


def _seconds(key: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 10**9:
        raise ValueError(f"has the `{key}` {value!r}, which is no number of seconds")
    return float(value)


def _truth(table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"has the `{key}` {value!r}, which must be true or false")
    return bool(value)


def _text(table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError(f"has a `{key}` that is not a text")
    return value


def _texts(table: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    """The list of texts under the first of the keys that the table has."""
    for key in keys:
        value = table.get(key)
        if value is None:
            continue
        if isinstance(value, str) and key not in ("args", "command"):
            value = [word.strip() for word in value.split(",") if word.strip()]
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ValueError(f"has `{key}` that is not a list of texts")  # noqa: TRY004  all problems raise the same
        found = [str(one) if isinstance(one, int | float) and not isinstance(one, bool) else one for one in value]
        if not all(isinstance(one, str) and "\0" not in one for one in found):
            raise ValueError(f"has `{key}` that is not a list of texts")
        return tuple(found)
    return ()


def _table(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = table.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"has a `{key}` that is not a table")
    return dict(value or {})


def _texts_by_name(table: Mapping[str, Any], *keys: str) -> dict[str, str]:
    """The table of texts under the first of the keys that the server's table has. Numbers and truth values become
    text, and null is left out."""
    key = next((key for key in keys if table.get(key) is not None), keys[0])
    found = {}
    for name, value in _table(table, key).items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, int | float):
            value = str(value)
        if value is None:
            continue
        if (
            not isinstance(value, str)
            or "\0" in value
            or "\0" in name
            or not name
            or (key != "headers" and "=" in name)
        ):
            raise ValueError(f"has `{key}` with a value for `{name}` that is not a text")
        found[str(name)] = value
    return found
