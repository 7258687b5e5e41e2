"""The settings in force, and where each comes from.

Strongest first: what the program or command line passes, `HAFT_*` variables, the workspace's `haft.toml` or
`haft.json`, the user's file, the default. A workspace is not trusted to widen: a value that allows more than what
stands without it is set aside, and said so.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from haft.contracts import BadConfig, Limits, near_miss
from haft.pipeline.stages import Durability
from haft.service.settings import BY_NAME, SETTINGS, WHY_NOT, ChangesEngine, SandboxMode, Setting

MOST_BYTES = 1_000_000
WORKSPACE_FILES = ("haft.toml", "haft.json")


@dataclass(frozen=True, slots=True)
class Ignored:
    """A value that was set aside, and why."""

    name: str
    value: Any
    source: str
    why: str

    def sentence(self) -> str:
        return f"{self.source}: `{self.name} = {json.dumps(self.value)}` is ignored: {self.why}"


@dataclass(frozen=True, slots=True)
class Config:
    """Values by name, with their sources."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]
    ignored: tuple[Ignored, ...] = ()
    files: tuple[str, ...] = field(default=())
    """The files that were read."""

    @property
    def limits(self) -> Limits:
        return Limits(
            **{name.removeprefix("limits."): value for name, value in self.values.items() if name.startswith("limits.")}
        )

    @property
    def tool_seconds(self) -> Mapping[str, float]:
        return cast("Mapping[str, float]", self.values["tools.timeout"])

    @property
    def durability(self) -> Durability:
        return cast("Durability", self.values["record.durability"])

    @property
    def sandbox_mode(self) -> SandboxMode:
        return cast("SandboxMode", self.values["sandbox.mode"])

    @property
    def sandbox_network(self) -> bool:
        return bool(self.values["sandbox.network"])

    @property
    def changes_engine(self) -> ChangesEngine:
        return cast("ChangesEngine", self.values["changes.engine"])

    @property
    def store_bytes(self) -> int:
        return int(self.values["changes.store_bytes"])

    @property
    def store_days(self) -> int:
        return int(self.values["changes.store_days"])

    def is_set(self, name: str) -> bool:
        """Whether someone set it; False where the default stands."""
        return self.sources[name] != "default"


def user_file(env: Mapping[str, str]) -> str:
    """Where the user's own configuration lies."""
    base = env.get("XDG_CONFIG_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.config"), "haft", "haft.toml")


def load_config(workspace: str | None, env: Mapping[str, str], passed: Mapping[str, Any] | None = None) -> Config:
    """Read every source and let the stronger win."""
    values = {setting.name: setting.default for setting in SETTINGS}
    sources = dict.fromkeys(values, "default")
    ignored: list[Ignored] = []
    files = []
    path = user_file(env)
    if os.path.exists(path):
        files.append(path)
        for name, value in _from_file(path):
            values[name], sources[name] = value, path
    found = workspace_file(workspace)
    if found is not None:
        files.append(found)
        for name, value in _from_file(found):
            kept, aside = _narrowed(BY_NAME[name], value, values, found)
            ignored += aside
            if kept is not None:
                values[name], sources[name] = kept, found
    for name, value, source in (*_from_environment(env), *_from_caller(passed or {})):
        values[name], sources[name] = value, source
    return Config(values, sources, tuple(ignored), tuple(files))


def workspace_file(workspace: str | None) -> str | None:
    """The configuration file of a workspace; two side by side are an error."""
    if workspace is None:
        return None
    found = [path for name in WORKSPACE_FILES if os.path.exists(path := os.path.join(workspace, name))]
    if len(found) > 1:
        raise BadConfig(f"{found[0]} and {found[1]} stand side by side", hint="keep one of them")
    return found[0] if found else None


def _narrowed(setting: Setting, value: Any, values: Mapping[str, Any], source: str) -> tuple[Any, list[Ignored]]:
    """What of a workspace's value counts before it is trusted."""
    if setting.name == "tools.timeout":
        cap = values["limits.max_seconds"]
        before = values[setting.name]
        kept = {tool: number for tool, number in value.items() if number <= before.get(tool, cap)}
        aside = [
            Ignored(f"{setting.name}.{tool}", number, source, WHY_NOT["lower"])
            for tool, number in value.items()
            if tool not in kept
        ]
        return {**before, **kept}, aside
    if setting.widens(value, values[setting.name]):
        return None, [Ignored(setting.name, value, source, WHY_NOT[setting.narrowing])]
    return value, []


def _from_file(path: str) -> Iterator[tuple[str, Any]]:
    try:
        data = _read(path)
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}") from error
    try:
        tables = json.loads(data) if path.endswith(".json") else tomllib.loads(data.decode())
    except (ValueError, UnicodeDecodeError, RecursionError) as error:
        raise BadConfig(f"{path} cannot be understood: {error}") from error
    if not isinstance(tables, dict):
        raise BadConfig(f"{path} must hold a table of settings")
    yield from _flattened(tables, path)


def _read(path: str) -> bytes:
    """A regular file of a reasonable size: a workspace may hold anything under this name."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise BadConfig(f"{path} is not a regular file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadConfig(f"{path} is larger than {MOST_BYTES:_} bytes")
    return data


def _flattened(tables: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    sections = {name.split(".")[0] for name in BY_NAME}
    for section, table in tables.items():
        if section not in sections:
            raise _unknown(section, sections | set(BY_NAME), path)
        if not isinstance(table, dict):
            raise BadConfig(f"{path}: `{section}` must be a table", hint=f"write it as [{section}]")
        for key, value in table.items():
            name = f"{section}.{key}"
            if name not in BY_NAME:
                raise _unknown(name, BY_NAME, path)
            yield name, _checked(BY_NAME[name], value, path)


def _from_environment(env: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    variables = {f"HAFT_{name.replace('.', '_').upper()}": name for name in BY_NAME if name != "tools.timeout"}
    prefixes = tuple({f"HAFT_{name.split('.')[0].upper()}_" for name in BY_NAME})
    for variable, text in env.items():
        if variable in variables:
            name = variables[variable]
            yield name, _checked(BY_NAME[name], text, variable), variable
        elif variable.startswith(prefixes):
            raise _unknown(variable, variables, "the environment")


def _from_caller(passed: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    for name, value in passed.items():
        if name not in BY_NAME:
            raise _unknown(name, BY_NAME, "the caller")
        yield name, _checked(BY_NAME[name], value, "the caller"), "the caller"


def _checked(setting: Setting, value: Any, source: str) -> Any:
    try:
        return setting.check(value)
    except ValueError as error:
        raise BadConfig(f"{source}: `{setting.name}` {error}, not {value!r}") from error


def _unknown(name: str, known: Any, source: str) -> BadConfig:
    near = near_miss(name, known)
    hint = f"did you mean `{near}`?" if near else "`haft config show` lists the settings"
    return BadConfig(f"{source}: there is no setting `{name}`", hint=hint)
