"""Finds configuration files, reads each file once, and splits its content into settings by name."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from haft.config.locations import WORKSPACE_FILES, user_file
from haft.config.renamed_settings import current_name
from haft.config.settings import BY_NAME, RENAMED, SYNONYMS
from haft.contracts import BadConfig, near_miss
from haft.lazy import regex
from haft.values import dataclass

MOST_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file that was read once, so that exactly the same bytes are shown, digested and parsed."""

    path: str
    data: bytes
    shown: str
    """The short name of the file that messages show as the source of a rule."""

    @property
    def is_json(self) -> bool:
        return self.path.endswith(".json")

    def settings(self) -> Iterator[tuple[str, Any]]:
        """Yield the settings by name, decoded but not checked."""
        if not self.is_json and _DEEP_KEY.search(self.data):
            raise BadConfig(
                f"{self.path} cannot be understood: a key has too many dots"
            )  # Parsing such a key would take minutes.
        import tomllib

        try:
            tables = json.loads(self.data) if self.is_json else tomllib.loads(self.data.decode())
        except (ValueError, UnicodeDecodeError, RecursionError) as error:
            raise BadConfig(f"{self.path} cannot be understood: {error}") from error
        if not isinstance(tables, dict):
            raise BadConfig(f"{self.path} must contain a table of settings")
        yield from _flattened(tables, self.path, takes_loose=self.is_json)

    def where(self, text: str, key: str = "") -> str:
        """`PATH:LINE` of the best line that contains `text`. Best is a line that also contains `key`, second best is a
        line below the first line with `key`, then any line. Only the path if no line contains `text`."""
        lines = list(enumerate(self.data.decode("utf-8", "replace").split("\n"), 1))
        found = [number for number, line in lines if text in line]
        named = [number for number, line in lines if key in line]
        behind = [number for number in found if number in named] or [n for n in found if named and n > named[0]]
        return f"{self.path}:{(behind or found)[0]}" if found else self.path

    def lines(self, rules: int) -> tuple[int, ...] | None:
        """The line number of each rule in this file; None if haft cannot tell. `rules` is the number of rules in the
        file."""
        from haft.policy import rule_lines

        return None if self.is_json else rule_lines(self.data.decode(), rules)


_DEEP_KEY: Final = regex(rb"(?:[\w\"'-]{1,80}[ \t]*\.[ \t]*){40}")


def user_config(env: Mapping[str, str]) -> ConfigFile | None:
    """The user's own configuration file; None if there is none."""
    path = user_file(env)
    if not os.path.exists(path):
        return None
    home = os.path.expanduser("~").rstrip("/") + "/"
    return ConfigFile(path, read_config(path), f"~/{path.removeprefix(home)}" if path.startswith(home) else path)


def workspace_config(workspace: str | None) -> ConfigFile | None:
    """The configuration file of a workspace; None if there is none. Raises `BadConfig` if there are two."""
    if workspace is None:
        return None
    found = [path for name in WORKSPACE_FILES if os.path.exists(path := os.path.join(workspace, name))]
    if len(found) > 1:
        raise BadConfig(f"{found[0]} and {found[1]} both exist", hint="keep only one of them")
    return ConfigFile(found[0], read_config(found[0]), os.path.basename(found[0])) if found else None


def read_config(path: str) -> bytes:
    """The bytes of a configuration file. Raises `BadConfig` if it is too large, or not a regular file: a cloned
    workspace may contain a named pipe or a huge file with this name."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadConfig(f"{path} is not a regular file")
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise BadConfig(f"{path} is larger than {MOST_BYTES:_} bytes")
    return data


def _flattened(tables: dict[str, Any], path: str, *, takes_loose: bool) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of every setting. With `takes_loose`, a plain value at the top level that is no setting
    is taken as a value for plugins, as if it were in the table `config`."""
    known = (*BY_NAME, *RENAMED, *SYNONYMS)
    sections = {name.split(".")[0] for name in known}
    single = [name for name in known if "." not in name]
    written: dict[str, str] = {}
    loose = {
        name: value
        for name, value in tables.items()
        if takes_loose
        and isinstance(value, str | int | float | bool)
        and name not in sections
        and near_miss(name, single) is None
    }
    if loose and isinstance(tables.get("config", {}), dict):
        tables = {name: value for name, value in tables.items() if name not in loose}
        tables["config"] = {**loose, **tables.get("config", {})}
    for section, table in tables.items():
        if section in BY_NAME or section in RENAMED or section in SYNONYMS:
            yield current_name(section, path, written), table
            continue
        if section not in sections:
            raise unknown_setting(section, sections | set(BY_NAME), path)
        if not isinstance(table, dict):
            raise BadConfig(f"{path}: `{section}` must be a table", hint=f"write it as [{section}]")
        for key, value in table.items():
            name = current_name(f"{section}.{key}", path, written)
            if name not in BY_NAME:
                raise unknown_setting(name, BY_NAME, path)
            yield name, value


def unknown_setting(name: str, known: Iterable[str], source: str) -> BadConfig:
    """The error for an unknown setting. Its hint suggests a similar name, if there is one in `known`."""
    near = near_miss(name, known)
    hint = f"did you mean `{near}`?" if near else "`haft config show` lists the settings"
    return BadConfig(f"{source}: there is no setting `{name}`", hint=hint)
