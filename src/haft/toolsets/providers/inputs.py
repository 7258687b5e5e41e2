"""Values that a person gave for `${input:ID}`: asked once, and kept as secrets in the state home.

HAFT_HOME/providers/inputs.json    0600; for each configuration file, the values by the input's name

A value belongs to the file whose server asked for it, so no other file can read it by the same name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from haft.contracts import HaftError, StorageFailed
from haft.files import Root
from haft.values import dataclass

DIRECTORY: Final = "providers"
FILE: Final = "inputs.json"
MOST_BYTES: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Input:
    """A value that a server needs from a person."""

    name: str
    description: str
    default: str | None = None
    options: tuple[str, ...] = ()


def declared(inputs: tuple[Mapping[str, Any], ...], name: str) -> Input:
    """What a file says about an input."""
    found = next((one for one in inputs if one.get("id") == name), {})
    options = found.get("options")
    default = found.get("default")
    return Input(
        name,
        str(found.get("description") or "")[:500],
        default if isinstance(default, str) else None,
        tuple(
            str(one.get("value", "")) if isinstance(one, Mapping) else str(one)
            for one in (options if isinstance(options, list) else ())
        ),
    )


class InputStore:
    """The values that a person gave."""

    def __init__(self, home: str) -> None:
        self._directory = os.path.join(home, DIRECTORY)

    def values(self, source: str) -> dict[str, str]:
        """The values for the servers of one configuration file."""
        return self._all().get(source, {})

    def keep(self, source: str, name: str, value: str) -> None:
        kept = self._all()
        kept.setdefault(source, {})[name] = value
        self._write(kept)

    def forget(self, source: str, names: list[str]) -> None:
        kept = self._all()
        if source not in kept:
            return
        rest = {name: value for name, value in kept.pop(source).items() if name not in names}
        self._write(kept | ({source: rest} if rest else {}))

    def _all(self) -> dict[str, dict[str, str]]:
        with suppress(OSError, ValueError, RecursionError):
            with open(os.path.join(self._directory, FILE), "rb") as file:
                found = json.loads(file.read(MOST_BYTES))
            if isinstance(found, dict):
                return {
                    str(source): {str(name): one for name, one in values.items() if isinstance(one, str)}
                    for source, values in found.items()
                    if isinstance(values, dict)
                }
        return {}

    def _write(self, values: Mapping[str, Mapping[str, str]]) -> None:
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            os.close(os.open(os.path.join(self._directory, FILE), os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            Root(self._directory).replace(FILE, json.dumps(values).encode())  # The file keeps its mode.
        except (OSError, HaftError) as error:
            raise StorageFailed("haft could not keep the value of an input", error) from error
