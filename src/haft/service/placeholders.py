"""`${env:NAME}` in a text of a configuration file: the variable's value, where the file may have it. `${CONFIG_DIR}` is
the directory of the file, `${WORKING_DIR}` the workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_PLACE: Final = re.compile(r"\$\{env:([^}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def has_placeholder(value: Any) -> bool:
    """Whether any text in it, however deep, asks for a variable."""
    return any(_PLACE.search(text) for text in _texts(value))


def expanded(value: Any, env: Mapping[str, str]) -> Any:
    """`value` with every placeholder filled; `ValueError` with a sentence where a variable is missing."""

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if not _NAME.fullmatch(name):
            raise ValueError(f"asks for `{match[0]}`, which names no variable")
        if name not in env:
            raise ValueError(f"asks for the variable `{name}`, which is not set")
        return env[name]

    if isinstance(value, str):
        return _PLACE.sub(fill, value)
    if isinstance(value, dict):
        return {name: expanded(one, env) for name, one in value.items()}
    return [expanded(one, env) for one in value] if isinstance(value, list) else value


def with_places(value: Any, places: Mapping[str, str]) -> Any:
    """`value` with the names of places filled in."""
    if isinstance(value, str):
        for name, place in places.items():
            value = value.replace(f"${{{name}}}", place)
        return value
    if isinstance(value, dict):
        return {name: with_places(one, places) for name, one in value.items()}
    return [with_places(one, places) for one in value] if isinstance(value, list) else value


def _texts(value: Any) -> list[str]:
    """Every text in it, without recursion."""
    found, left = [], [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list):
            left += one
    return found
