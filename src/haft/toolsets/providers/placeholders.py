"""Fills the placeholders in the table of an MCP server: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:ID}`, and
places such as `${workspaceFolder}`. Also says which of the filled texts are secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from haft.contracts import says_secret
from haft.lazy import regex
from haft.toolsets.providers.spellings import WrittenServer
from haft.values import replace

_PLACE: Final = regex(r"\$\{([^{}]*)\}")
_VARIABLE: Final = regex(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_INPUT: Final = "input:"


class MissingInput(ValueError):
    """A server needs a value that a person has not given yet."""

    def __init__(self, name: str) -> None:
        super().__init__(f"needs the input `{name}`")
        self.name = name


class Filler:
    """Fills the placeholders of one server, and collects the secret texts."""

    def __init__(self, env: Mapping[str, str], inputs: Mapping[str, str], places: Mapping[str, str]) -> None:
        """`inputs` are the values that a person gave before; `places` are directories by the names that files use for
        them."""
        self._env = env
        self._inputs = inputs
        self._places = places
        self.secrets: set[str] = set()

    def filled(self, server: WrittenServer) -> WrittenServer:
        """The server with its placeholders filled. Raises `ValueError` with a sentence, or `MissingInput`."""
        for table in (server.env, server.headers, server.oauth):
            for name, value in table.items():
                if says_secret(name):
                    self.text(value, is_secret=True)
        filled = replace(
            server,
            command=None if server.command is None else self.text(server.command),
            args=tuple(map(self.text, server.args)),
            env={name: self.text(value) for name, value in server.env.items()},
            cwd=None if server.cwd is None else self.text(server.cwd),
            url=None if server.url is None else self.text(server.url),
            headers={name: self.text(value) for name, value in server.headers.items()},
            oauth={name: self.text(value) for name, value in server.oauth.items()},
            grant={name: self._value(value) for name, value in server.grant.items()},
        )
        self.secrets.update(secrets_in(filled))
        return filled

    def text(self, text: str, *, is_secret: bool = False) -> str:
        """A text with its placeholders filled. With `is_secret`, every filled value is a secret."""
        if "${" in _PLACE.sub("", text):
            raise ValueError(f"contains a placeholder that haft cannot read: `{text}`")
        return _PLACE.sub(lambda found: self._one(found[0], found[1], is_secret=is_secret), text)

    def _one(self, whole: str, name: str, *, is_secret: bool) -> str:
        if name in self._places:
            return self._places[name]
        if name.startswith(_INPUT):
            wanted = name.removeprefix(_INPUT)
            if wanted not in self._inputs:
                raise MissingInput(wanted)
            self.secrets.add(self._inputs[wanted])
            return self._inputs[wanted]
        found = _VARIABLE.fullmatch(name)
        if found is None:
            raise ValueError(f"contains `{whole}`, which haft does not know")
        variable, default = found.groups()
        value = self._env.get(variable)
        if value is None or (not value and default is not None):
            if default is None:
                raise ValueError(f"needs the environment variable `{variable}`, which is not set")
            return str(default)
        if is_secret or says_secret(variable):
            self.secrets.add(value)
        return value

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        return [self._value(one) for one in value] if isinstance(value, list | tuple) else value


def secrets_in(server: WrittenServer) -> Iterator[str]:
    """The texts of a server that are secret by the names that they have. Texts with placeholders are left out."""
    for table in (server.env, server.headers, server.oauth):
        for name, value in table.items():
            if says_secret(name) and "${" not in value:
                yield from (value, value.rpartition(" ")[2])
    yield from (value for value in _secret_arguments(server.args) if "${" not in value)
    yield from (value for value in _secret_parameters(server.url or "") if "${" not in value)


def inputs_in(server: WrittenServer) -> list[str]:
    """The names of the inputs that a server needs."""
    texts = [server.command or "", *server.args, server.cwd or "", server.url or ""]
    for table in (server.env, server.headers, server.oauth):
        texts += table.values()
    names = (found[1] for text in texts for found in _PLACE.finditer(text))
    return list(dict.fromkeys(name.removeprefix(_INPUT) for name in names if name.startswith(_INPUT)))


def _secret_arguments(args: tuple[str, ...]) -> Iterator[str]:
    """The values of options whose names say that their values are secret."""
    for before, one in zip(("", *args), args, strict=False):
        name, equals, value = one.partition("=")
        if equals and name.startswith("-") and says_secret(name.lstrip("-")):
            yield value
        elif before.startswith("-") and "=" not in before and says_secret(before.lstrip("-")):
            yield one


def _secret_parameters(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return
    if password:
        yield password
    for name, value in parse_qsl(parts.query):
        if says_secret(name):
            yield value
