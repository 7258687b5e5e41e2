"""An MCP server whose answers are written in a JSON file: `server_program.py FILE`.

It is a program of its own that needs only Python's standard library: the sandbox of the server need not see haft, and
the server starts fast. It speaks the protocol over stdin and stdout, one message a line.
"""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False  # `typing` takes long to load.
if TYPE_CHECKING:
    from typing import Any

VERSION = "2025-11-25"
NO_METHOD, NO_TOOL = -32601, -32602


def main(path: str) -> None:
    """Answer until stdin ends."""
    with open(path, encoding="utf-8") as file:
        server = json.load(file)
    used: set[int] = set()
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message and "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply(server, message, used)}), flush=True)


def reply(server: dict[str, Any], message: dict[str, Any], used: set[int]) -> dict[str, Any]:
    """The result of a request, or its error."""
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        info = {"name": server["name"], "version": "0"}
        version = params.get("protocolVersion", VERSION)
        version = version if version <= VERSION else VERSION
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": server["tools"]}}
    if method == "tools/call":
        return called(server, str(params.get("name")), params.get("arguments") or {}, used)
    return {"error": {"code": NO_METHOD, "message": f"the scripted server has no method {method}"}}


def called(server: dict[str, Any], tool: str, arguments: dict[str, Any], used: set[int]) -> dict[str, Any]:
    """The next answer that fits a call. When all that fit were given, the last one repeats."""
    if all(each["name"] != tool for each in server["tools"]):
        return {"error": {"code": NO_TOOL, "message": f"the scripted server has no tool {tool}"}}
    fitting = [
        number
        for number, each in enumerate(server["calls"])
        if each["tool"] == tool and (each["args"] is None or each["args"] == arguments)
    ]
    if not fitting:
        text = f"the scripted server has no answer for {tool} with the arguments {json.dumps(arguments)}"
        return {"result": {"content": [{"type": "text", "text": text}], "isError": True}}
    number = next((each for each in fitting if each not in used), fitting[-1])
    used.add(number)
    return {"result": server["calls"][number]["result"]}


if __name__ == "__main__":
    main(sys.argv[1])
