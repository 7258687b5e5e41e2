"""The values of `${secret:NAME}` for the person who makes a call: from a variable of the host, a file or a program, as
`[secrets.NAME]` in a trusted configuration says. Each call reads them anew, and nothing stores them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.contracts import MIN_SECRET_LENGTH, BadConfig
from haft.processes import read_output

SECONDS: Final = 10.0
LONGEST: Final = 65_536
_PASSED: Final = ("HOME", "LANG", "PATH", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "GNUPGHOME")


class PersonalSecrets:
    """The secrets of one host's configuration."""

    def __init__(self, tables: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self._tables = tables
        self._environ = environ

    async def values(self, names: Sequence[str], person: str) -> dict[str, str]:
        """The values of these secrets for a person. Raises `BadConfig` if one is missing; the message has no value."""
        return {name: await asyncio.to_thread(self._value, name, person) for name in names}

    def _value(self, name: str, person: str) -> str:
        table = self._table(name, person)
        try:
            value = self._read(table, person).rstrip("\r\n")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise BadConfig(f"the secret `{name}` cannot be read for {person}: {why}") from None
        if len(value) < MIN_SECRET_LENGTH:
            raise BadConfig(
                f"the secret `{name}` of {person} is too short: haft masks only {MIN_SECRET_LENGTH} characters and more"
            )
        return value

    def _table(self, name: str, person: str) -> Mapping[str, Any]:
        given = self._tables.get(name)
        tables = given if isinstance(given, list) else [] if given is None else [given]
        for table in tables:
            if "users" not in table or person in table["users"]:
                return dict(table)
        raise BadConfig(
            f"there is no secret `{name}` for {person}",
            hint=f"`[secrets.{name}]` in your own configuration says where it comes from, and for which `users`",
        )

    def _read(self, table: Mapping[str, Any], person: str) -> str:
        if "env" in table:
            if table["env"] not in self._environ:
                raise ValueError(f"the variable {table['env']} is not set")
            return self._environ[table["env"]]
        if "file" in table:
            with open(os.path.expanduser(table["file"]), "rb") as file:
                data = file.read(LONGEST + 1)
        else:
            env = {name: self._environ[name] for name in _PASSED if name in self._environ}
            data = read_output(table["command"], env={**env, "HAFT_SECRET_USER": person}, seconds=SECONDS)
        if len(data) > LONGEST:
            raise ValueError(f"it has more than {LONGEST} bytes")
        return data.decode()
