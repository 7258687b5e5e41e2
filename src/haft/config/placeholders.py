"""Placeholders in the texts of a configuration file: `${env:NAME}` stands for the value of an environment variable; the
file of an untrusted workspace may not use this placeholder. `${CONFIG_DIR}` stands for the directory of the file,
`${WORKING_DIR}` for the workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from haft.contracts import says_secret, texts_in
from haft.lazy import regex
from haft.values import dataclass

_PLACE: Final = regex(r"\$\{env:([^}]*)\}")
_NAME: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*")


def has_placeholder(value: Any) -> bool:
    """Whether any text in a value, at any depth, contains `${env:…}`."""
    return any(_PLACE.search(text) for text in texts_in(value))


@dataclass(frozen=True, slots=True)
class MissingVariable:
    """An entry of a setting that haft ignores, because the entry needs a variable that is not set."""

    setting: str
    entry: str
    why: str
    source: str
    """The file, and the line if haft can tell it."""

    def sentence(self) -> str:
        return f"`{self.entry}` in `{self.setting}` ({self.source}) {self.why}"

    def to_json(self) -> dict[str, str]:
        return {"setting": self.setting, "entry": self.entry, "why": self.why, "source": self.source}


def why_unfilled(value: Any, env: Mapping[str, str]) -> str | None:
    """Why the placeholders of a value cannot be filled; None if they can."""
    try:
        expanded(value, env)
    except ValueError as error:
        return str(error)
    return None


def missing_in(value: Any, env: Mapping[str, str]) -> str | None:
    """The text of the first placeholder whose variable is not set; None if all variables are set."""
    places = (match for text in texts_in(value) for match in _PLACE.finditer(text))
    return next((match[0] for match in places if match[1] not in env), None)


def filled_secrets(value: Any, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the secret values of variables that `value` needs. A variable is secret if its own name suggests a secret,
    or if its placeholder is in the value of a key whose name does."""
    left: list[tuple[Any, bool]] = [(value, False)]
    while left:
        one, is_secret = left.pop()
        if isinstance(one, Mapping):
            left += ((inner, is_secret or says_secret(str(name))) for name, inner in one.items())
        elif isinstance(one, list):
            left += ((inner, is_secret) for inner in one)
        elif isinstance(one, str):
            yield from (env[name] for name in _PLACE.findall(one) if name in env and (is_secret or says_secret(name)))


def expanded(value: Any, env: Mapping[str, str]) -> Any:
    """`value` with every placeholder filled; raises `ValueError` with a sentence if a variable is missing."""

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if not _NAME.fullmatch(name):
            raise ValueError(f"contains `{match[0]}`, which names no variable")
        if name not in env:
            raise ValueError(f"needs the environment variable `{name}`, which is not set: set {name}")
        return env[name]

    if isinstance(value, str):
        return _PLACE.sub(fill, value)
    if isinstance(value, dict):
        return {name: expanded(one, env) for name, one in value.items()}
    return [expanded(one, env) for one in value] if isinstance(value, list) else value


def with_places(value: Any, places: Mapping[str, str]) -> Any:
    """`value` with `${NAME}` replaced by a directory's path, for each name and path in `places`."""
    if isinstance(value, str):
        for name, place in places.items():
            value = value.replace(f"${{{name}}}", place)
        return value
    if isinstance(value, dict):
        return {name: with_places(one, places) for name, one in value.items()}
    return [with_places(one, places) for one in value] if isinstance(value, list) else value
