"""Tools of any format from their paths: which settings of a service, and which files to load, make a tool callable.

A path is a tool or a folder of tools, or a configuration file (`haft.toml`, `haft.json`, `.mcp.json`) whose tools are
taken. No tool is run to find that out.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from haft.contracts import BadUsage
from haft.sources.bash_plugin import is_bash_plugin
from haft.sources.checks import Finding, inspect_file
from haft.sources.python import is_python_tools
from haft.values import dataclass, field

_DESCRIPTOR: Final = "agent_plugin.json"
_TEMPLATE: Final = "tool.py"
_CONFIGS: Final = ("haft.toml", "haft.json", ".mcp.json", "mcp.json")
_SETTINGS: Final = ("plugins", "templates", "toolbox", "cli", "providers", "config", "tools", "plugin_policy")
"""The tables of a configuration file that make tools."""


def is_configuration(path: str) -> bool:
    """Whether a path has the name of a configuration file, whose tools are taken."""
    return os.path.basename(path) in _CONFIGS


@dataclass
class Loading:
    """How a service gets tools."""

    settings: dict[str, Any] = field(default_factory=dict)
    """Settings by their dotted names."""
    files: list[str] = field(default_factory=list)
    """Files that are loaded into the open service."""
    named: list[str] = field(default_factory=list)
    """The absolute paths of all that was named."""
    reads: list[str] = field(default_factory=list)
    """Folders that tools must be able to read: those of command lines that a configuration names by relative paths."""

    def add(self, path: str) -> None:
        """Add the tools at an absolute path. Raises `BadUsage` if there is no tool."""
        if not os.path.lexists(path):
            raise BadUsage(f"there is no tool {path}")
        self.named.append(path)
        if is_configuration(path):
            self._configuration(path)
        elif os.path.isdir(path):
            self._folder(path)
        elif path.endswith(".toml"):
            name = os.path.splitext(os.path.basename(path))[0]
            self._table("cli", {name: {"spec": path}})
        elif path.endswith(".py") and (plugin := _python_plugin(path)) is not None:
            self._list("plugins", [plugin])
        elif _is_bash(path):
            self._bash(path)
        else:
            self.files.append(path)

    def _folder(self, path: str) -> None:
        if os.path.lexists(os.path.join(path, _DESCRIPTOR)):
            with open(os.path.join(path, _DESCRIPTOR), "rb") as file:
                descriptor = _parsed(path, file.read(), json.loads)
            if "entries" in descriptor:
                self._list("plugins", [f"path:{path}"])
            if "bash_tools" in descriptor or "entries" not in descriptor:
                self._bash(path)
        elif os.path.lexists(os.path.join(path, _TEMPLATE)):
            self.files.append(path)
        elif os.path.lexists(os.path.join(path, "SKILL.md")):
            inner = (os.path.join(path, name) for name in ("toolbox", "tools"))
            self._list("toolbox.paths", [each for each in inner if os.path.isdir(each)])
        else:
            self._list("toolbox.paths", [path])

    def _bash(self, path: str) -> None:
        self._list("plugins", [f"bash:{path}"])
        self.settings["plugin_policy.allow_bash_tools"] = True

    def _configuration(self, path: str) -> None:
        with open(path, "rb") as file:
            data = file.read()
        loads = tomllib.loads if path.endswith(".toml") else json.loads
        found = _parsed(path, data, loads)
        base = os.path.dirname(path)
        if "mcpServers" in found:
            found = {"providers": found["mcpServers"]}
        for name in _SETTINGS:
            if name in found:
                self._setting(name, found[name], base)

    def _setting(self, name: str, value: Any, base: str) -> None:
        if name == "plugins":
            self._list(name, [_plugin_from(each, base) for each in value])
        elif name in ("templates", "toolbox", "tools", "plugin_policy"):
            for key, each in value.items():
                if key == "paths":
                    self._list(f"{name}.{key}", [_absolute(path, base) for path in each])
                elif key == "instances":
                    placed = [{**one, "template": _absolute(one["template"], base)} for one in each]
                    self._list(f"{name}.{key}", placed)
                elif isinstance(each, Mapping):
                    self._table(f"{name}.{key}", each)
                else:
                    self.settings[f"{name}.{key}"] = each
        elif name == "cli":
            lines = {key: _command_line(each, base) for key, each in value.items()}
            if any(lines[key].get("program") != each.get("program") for key, each in value.items()):
                self.reads.append(base)
            self._table(name, lines)
        elif name == "providers":
            self._table(name, {key: _server(each, base) for key, each in value.items()})
        else:
            self._table(name, value)

    def _list(self, name: str, values: Iterable[Any]) -> None:
        known = self.settings.setdefault(name, [])
        known += [each for each in values if each not in known]

    def _table(self, name: str, values: Mapping[str, Any]) -> None:
        self.settings[name] = {**self.settings.get(name, {}), **values}


def _parsed(path: str, data: bytes, loads: Any) -> Mapping[str, Any]:
    try:
        found = loads(data.decode())
    except ValueError as error:
        raise BadUsage(f"{path} cannot be read: {error}") from error
    if not isinstance(found, Mapping):
        raise BadUsage(f"{path} must be a table")
    return found


def _absolute(path: str, base: str) -> str:
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def _plugin_from(entry: Any, base: str) -> Any:
    if isinstance(entry, str):
        form, colon, path = entry.partition(":")
        is_path = colon and form in ("bash", "path", "python") and not path.startswith("//")
        return f"{form}:{_absolute(path, base)}" if is_path else entry
    if isinstance(entry, Mapping) and isinstance(entry.get("plugin"), str):
        return {**entry, "plugin": _plugin_from(entry["plugin"], base)}
    if isinstance(entry, Mapping) and isinstance(entry.get("bash_tool"), Mapping):
        tool = entry["bash_tool"]
        placed = {key: _absolute(tool[key], base) for key in ("file", "path") if isinstance(tool.get(key), str)}
        return {"bash_tool": {**tool, **placed}}
    return entry


def _command_line(table: Mapping[str, Any], base: str) -> dict[str, Any]:
    """A table of `cli` whose paths are absolute: its spec file, and files beside it that its program names."""
    placed = dict(table)
    if isinstance(placed.get("spec"), str):
        placed["spec"] = _absolute(placed["spec"], base)
    if isinstance(placed.get("program"), list):
        placed["program"] = [_beside(word, base) for word in placed["program"]]
    return placed


def _server(table: Mapping[str, Any], base: str) -> dict[str, Any]:
    """An MCP server whose program and arguments name the files beside its configuration by absolute paths."""
    placed = dict(table)
    if isinstance(placed.get("command"), str):
        placed["command"] = _beside(placed["command"], base)
    if isinstance(placed.get("args"), list):
        placed["args"] = [_beside(word, base) for word in placed["args"]]
    return placed


def _beside(word: Any, base: str) -> Any:
    if isinstance(word, str) and word.startswith(("./", "../")) and os.path.lexists(_absolute(word, base)):
        return _absolute(word, base)
    return word


def _is_bash(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return is_bash_plugin(file.read(1_000_000))
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {error.strerror}") from error


def _python_plugin(path: str) -> str | None:
    """The entry of `plugins` for a Python file that has functions with `@tool`, or a plugin class; None for others."""
    inspected = inspect_file(path)
    if not isinstance(inspected, Finding) and is_python_tools(inspected):
        return f"python:{path}"
    with open(path, "rb") as file:
        data = file.read(1_000_000)
    if data.startswith(b"#!") and os.access(path, os.X_OK):
        return None  # A toolbox executable.
    return f"path:{path}"
