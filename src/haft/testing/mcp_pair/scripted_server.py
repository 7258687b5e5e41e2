"""An MCP server for tests: its tools and its answers are data."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

from haft.testing.mcp_pair import server_program
from haft.values import dataclass

_ANY: dict[str, Any] = {"type": "object"}


@dataclass(frozen=True)
class McpAnswer:
    """What the server answers to one call."""

    tool: str
    """The name of the tool on the server."""
    args: Mapping[str, Any] | None = None
    """The arguments for which the answer is. None: any."""
    text: str = ""
    result: Any = None
    """The structured content; None if there is none."""
    is_error: bool = False
    content: tuple[Mapping[str, Any], ...] = ()
    """Further blocks, such as images."""

    def to_json(self) -> dict[str, Any]:
        """The answer in the form of the protocol."""
        blocks = [{"type": "text", "text": self.text}] if self.text else []
        result: dict[str, Any] = {"content": [*blocks, *map(dict, self.content)]}
        if self.result is not None:
            result["structuredContent"] = self.result
        if self.is_error:
            result["isError"] = True
        return {"tool": self.tool, "args": None if self.args is None else dict(self.args), "result": result}


@dataclass(frozen=True)
class ScriptedMcpServer:
    """A server that answers calls as it is told. For each call it gives the next answer that fits; when all that fit
    were given, the last one repeats. It is a real program, so that haft starts it as any other server:

    server = ScriptedMcpServer("notes", answers=(McpAnswer("add", {"a": 1, "b": 2}, text="3"),))
    bench.settings["providers"] = {"notes": server.provider(directory)}
    """

    name: str
    tools: tuple[Mapping[str, Any], ...] = ()
    """The definitions of the tools, as MCP has them. Tools that only answers name are added."""
    answers: tuple[McpAnswer, ...] = ()

    @classmethod
    def of(cls, name: str, answers: Sequence[McpAnswer]) -> Self:
        """A server whose tools are those that the answers name."""
        return cls(name, (), tuple(answers))

    def definitions(self) -> list[dict[str, Any]]:
        """The definitions of all tools."""
        found = {str(each["name"]): {"inputSchema": _ANY, **each} for each in self.tools}
        for each in self.answers:
            found.setdefault(each.tool, {"name": each.tool, "inputSchema": _ANY})
        return list(found.values())

    def write(self, directory: str) -> list[str]:
        """Write the program of the server and its answers into a directory, and return the command that starts it."""
        place = os.path.join(os.path.realpath(directory), f"mcp-{self.name}")
        os.makedirs(place, exist_ok=True)
        program = os.path.join(place, "server.py")
        shutil.copyfile(server_program.__file__, program)
        script = {
            "name": self.name,
            "tools": self.definitions(),
            "calls": [each.to_json() for each in self.answers],
        }
        with open(os.path.join(place, "script.json"), "w", encoding="utf-8") as file:
            json.dump(script, file)
        return [sys.executable, program, os.path.join(place, "script.json")]

    def provider(self, directory: str) -> dict[str, Any]:
        """The table for the setting `providers` that makes haft start the server; its files are written into the
        directory."""
        command, *args = self.write(directory)
        return {"type": "stdio", "command": command, "args": args, "grant": {"read": [os.path.dirname(args[0])]}}
