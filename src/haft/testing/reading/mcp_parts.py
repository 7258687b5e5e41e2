"""Parses the MCP servers of a scenario: `mcp: {SERVER: {tools: […], calls: […]}}`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from haft.testing.mcp_pair import McpAnswer, ScriptedMcpServer
from haft.testing.parts import Place, boolean, check_keys, json_table, table, text

_CALL_KEYS: Final = ("tool", "args", "text", "result", "error", "content")


def mcp_servers(where: Place, value: Any) -> tuple[ScriptedMcpServer, ...]:
    """The servers that stand for real ones, with their answers."""
    return tuple(_server(where / name, name, one) for name, one in table(where, value).items())


def _server(where: Place, name: str, value: Any) -> ScriptedMcpServer:
    found = table(where, value)
    check_keys(where, found, ("tools", "calls"))
    tools = tuple(_tool(where / "tools" / index, each) for index, each in enumerate(_list(where, found, "tools")))
    answers = tuple(_call(where / "calls" / index, each) for index, each in enumerate(_list(where, found, "calls")))
    return ScriptedMcpServer(name, tools, answers)


def _list(where: Place, found: Any, key: str) -> Sequence[Any]:
    value = found.get(key, ())
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise (where / key).wrong(f"must be a list, not {value!r}")
    return value


def _tool(where: Place, value: Any) -> dict[str, Any]:
    found = json_table(where, value)
    text(where / "name", found.get("name"))
    return found


def _call(where: Place, value: Any) -> McpAnswer:
    found = json_table(where, value)
    check_keys(where, found, _CALL_KEYS)
    content = _list(where, found, "content")
    return McpAnswer(
        tool=text(where / "tool", found.get("tool")),
        args=None if found.get("args") is None else json_table(where / "args", found["args"]),
        text=text(where / "text", found.get("text", "")),
        result=found.get("result"),
        is_error=boolean(where / "error", found.get("error", False)),
        content=tuple(json_table(where / "content" / index, each) for index, each in enumerate(content)),
    )
