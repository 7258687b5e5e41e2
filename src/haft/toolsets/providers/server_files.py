"""Finds the tables of MCP servers in the files of other programs: `.mcp.json`, a skill's `mcp.json`, and the
configuration files of agents and editors."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from haft.config import read_config
from haft.contracts import BadConfig
from haft.lazy import regex
from haft.toolsets.providers.spellings import declared_inputs
from haft.values import dataclass, field

_JSONC: Final = regex(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_OPENCODE_PLACE: Final = regex(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_BARE_VARIABLE: Final = regex(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_SERVER_KEYS: Final = {"command", "url", "httpUrl", "serverUrl", "type"}


@dataclass(frozen=True, slots=True)
class ServerTables:
    """The servers in one file, as the file writes them."""

    servers: Mapping[str, Any]
    inputs: tuple[Mapping[str, Any], ...] = ()
    """The inputs that the file declares for all its servers, as VS Code writes them."""
    is_own: bool = field(default=False)
    """Whether the file is one of haft's."""


def read_server_file(path: str, workspace: str | None = None) -> ServerTables:
    """The servers in a file of any known format. If a file has servers for single workspaces, those of `workspace` are
    included. Raises `BadConfig` if the file cannot be read, or has no servers."""
    return servers_in(read_config(path), path, workspace)


def servers_in(data: bytes, path: str, workspace: str | None = None) -> ServerTables:
    """The servers in the bytes of a file. Raises `BadConfig`."""
    tables = _parsed(data, path)
    found = _found(tables, workspace)
    if found is None:
        raise BadConfig(
            f"{path} names no MCP servers",
            hint="haft looks for `mcpServers`, `servers`, `mcp`, `mcp_servers`, `context_servers` and `providers`",
        )
    if os.path.basename(os.path.dirname(path)) == ".gemini":
        return ServerTables(_with_braces(found.servers), found.inputs)
    return found


def parse_map(data: bytes, path: str) -> Mapping[str, Any]:
    """The servers in a skill's mcp.json: a map without a key around it, or with one. Raises `BadConfig`."""
    tables = _parsed(data, path)
    if "mcpServers" in tables:
        return servers_in(data, path).servers
    return tables


def _parsed(data: bytes, path: str) -> dict[str, Any]:
    try:
        text = data.decode("utf-8-sig")
        tables = tomllib.loads(text) if path.endswith(".toml") else _json(text)
    except (ValueError, RecursionError) as error:
        raise BadConfig(f"{path} cannot be understood: {error}") from error
    if not isinstance(tables, dict):
        raise BadConfig(f"{path} must contain a table")
    return tables


def _json(text: str) -> Any:
    """A JSON value. Comments and commas at the end of a list are allowed, because editors allow them."""
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(_JSONC.sub(lambda found: found[0] if found[0].startswith('"') else " ", text))


def _found(tables: Mapping[str, Any], workspace: str | None) -> ServerTables | None:
    for keys, is_own in _places(tables, workspace):
        servers: dict[str, Any] = {}
        inputs: list[Mapping[str, Any]] = []
        for one, around in keys:
            if isinstance(one, Mapping):
                servers |= one
                inputs += declared_inputs(around)
        if servers:
            return ServerTables(servers, tuple(inputs), is_own)
    if tables and all(isinstance(one, Mapping) and _SERVER_KEYS & one.keys() for one in tables.values()):
        return ServerTables(tables)
    return None


def _places(
    tables: Mapping[str, Any], workspace: str | None
) -> Iterator[tuple[list[tuple[Any, Mapping[str, Any]]], bool]]:
    """Yield the groups of tables in which servers may stand, each with the table around it that may have `inputs`."""
    yield [(tables.get("providers"), {})], True
    external = tables.get("external")
    nested = external.get("toolProviders") if isinstance(external, Mapping) else None
    yield [(nested or tables.get("external.toolProviders"), {})], False
    projects = tables.get("projects")
    own = projects.get(workspace) if isinstance(projects, Mapping) and workspace is not None else None
    yield (
        [
            (tables.get("mcpServers"), tables),
            (own.get("mcpServers") if isinstance(own, Mapping) else None, {}),
            (tables.get("amp.mcpServers"), {}),
        ],
        False,
    )
    yield [(tables.get("mcp_servers"), {}), (tables.get("context_servers"), {})], False
    mcp = tables.get("mcp")
    if isinstance(mcp, Mapping) and isinstance(mcp.get("servers"), Mapping):
        yield [(mcp["servers"], mcp)], False
    elif isinstance(mcp, Mapping):
        yield [(_with_dollars(mcp), {})], False
    yield [(tables.get("servers"), tables)], False


def _with_dollars(value: Any) -> Any:
    """A value of opencode's file, which writes `{env:X}`, with `${env:X}` instead."""
    return _changed(value, lambda text: _OPENCODE_PLACE.sub(r"${env:\1}", text))


def _with_braces(value: Any) -> Any:
    """A value of Gemini CLI's file, which writes `$X`, with `${X}` instead."""
    return _changed(value, lambda text: _BARE_VARIABLE.sub(r"${\1}", text))


def _changed(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _changed(one, change) for name, one in value.items()}
    return [_changed(one, change) for one in value] if isinstance(value, list) else value
