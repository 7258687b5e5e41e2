"""A to-do list in TODO.md, as an MCP server over stdio that needs no package. With an SDK for MCP, `serve` is not
needed: then you write only the functions."""

import json
import sys
from pathlib import Path

TODO = Path("TODO.md")
TOOLS = {
    "add": {
        "description": "Add a task to the end of TODO.md. Use this for work that must not be forgotten.",
        "inputSchema": {
            "type": "object",
            "properties": {"task": {"type": "string", "description": "The task, on one line."}},
            "required": ["task"],
        },
    },
    "finish": {
        "description": "Mark a task of TODO.md as done. The task is named by its number, which `open` prints.",
        "inputSchema": {
            "type": "object",
            "properties": {"number": {"type": "integer", "minimum": 1, "description": "The number of the task."}},
            "required": ["number"],
        },
    },
    "open": {
        "description": "The open tasks of TODO.md, each with its number.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
}


class WrongCall(Exception):
    """The model can correct its call."""


def lines():
    return TODO.read_text().splitlines() if TODO.exists() else []


def add(task):
    if not task.strip() or "\n" in task:
        raise WrongCall("a task is one line of text")
    found = [*lines(), f"- [ ] {task.strip()}"]
    TODO.write_text("\n".join(found) + "\n")
    return f"task {len(found)}"


def finish(number):
    found = lines()
    if number > len(found):
        raise WrongCall(f"there is no task {number}; there are {len(found)}")
    if not found[number - 1].startswith("- [ ] "):
        raise WrongCall(f"task {number} is not open")
    found[number - 1] = found[number - 1].replace("- [ ] ", "- [x] ", 1)
    TODO.write_text("\n".join(found) + "\n")
    return found[number - 1]


def open_tasks():
    found = [f"{number}. {line[6:]}" for number, line in enumerate(lines(), 1) if line.startswith("- [ ] ")]
    return "\n".join(found) or "nothing is open"


def call(params):
    function = {"add": add, "finish": finish, "open": open_tasks}[params["name"]]
    try:
        text, is_error = function(**params.get("arguments", {})), False
    except WrongCall as error:
        text, is_error = f"Error: {error}", True
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def answer(method, params):
    if method == "initialize":
        info = {"name": "todo", "version": "1.0.0"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": name, **each} for name, each in TOOLS.items()]}
    return call(params) if method == "tools/call" else {}


def serve():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = answer(request["method"], request.get("params", {}))
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


serve()
