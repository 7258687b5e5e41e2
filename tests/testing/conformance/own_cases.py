"""One tool of each of haft's own sources."""

import shutil

from haft.testing.conformance import SourceCase

TOOLBOX = """#!/usr/bin/env python3
import json, os, sys, time
if os.environ["TOOLBOX_ACTION"] == "describe":
    properties = {"name": {"type": "string", "description": "Whom to greet."}}
    schema = {"type": "object", "properties": properties, "required": ["name"]}
    print(json.dumps({"name": "greet", "description": "Say hello. Use this for guests.", "inputSchema": schema}))
    sys.exit()
name = json.load(sys.stdin)["name"]
if name == "nobody":
    sys.exit("there is nobody")
time.sleep(600 if name == "sloth" else 0)
print("hello", name)
"""

BASH = """#!/usr/bin/env bash
case $1 in
schema) cat <<'JSON'
{"id": "greet", "version": "0.1.0", "args_mode": "flags", "tools": [{"type": "function", "function": {
 "name": "greet", "description": "Say hello. Use this for guests.",
 "parameters": {"type": "object", "properties": {"name": {"type": "string", "description": "Whom to greet."}},
 "required": ["name"]}}}]}
JSON
;;
preview) echo "greet $3" ;;
run)
    [[ $3 != nobody ]] || { echo "there is nobody" >&2; exit 3; }
    [[ $3 != sloth ]] || sleep 600
    echo "hello $3" ;;
*) exit 0 ;;
esac
"""

PYTHON = """
import time


class Greeter:
    def get_tool_schemas(self, state):
        name = {"type": "string", "description": "Whom to greet."}
        parameters = {"type": "object", "properties": {"name": name}, "required": ["name"]}
        return [{"name": "greet", "description": "Say hello. Use this for guests.", "parameters": parameters}]

    def execute_tool(self, name, arguments, state):
        if arguments["name"] == "nobody":
            raise LookupError("there is nobody")
        time.sleep(600 if arguments["name"] == "sloth" else 0)
        return f"hello {arguments['name']}"
"""

TEMPLATE = '''"""Greets."""

import argparse
import json
import time
from typing import Any

from pydantic import BaseModel, Field


class UserParameters(BaseModel):
    pass


class ToolParameters(BaseModel):
    name: str = Field(description="Say hello. Use this for guests.")


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    if args.name == "nobody":
        raise LookupError("there is nobody")
    time.sleep(600 if args.name == "sloth" else 0)
    return f"hello {args.name}"


OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    args = parser.parse_args()
    config = UserParameters(**json.loads(args.user_params))
    params = ToolParameters(**json.loads(args.tool_params))
    print(OUTPUT_KEY, run_tool(config, params))
'''

SERVER = """
import json, sys, time

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request["method"], request.get("params", {})
    result = {}
    if method == "initialize":
        info = {"name": "greeter", "version": "1"}
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        properties = {"name": {"type": "string", "description": "Whom to greet."}}
        schema = {"type": "object", "properties": properties, "required": ["name"]}
        result = {"tools": [{"name": "greet", "description": "Say hello. Use this for guests.", "inputSchema": schema}]}
    elif method == "tools/call":
        name = params["arguments"]["name"]
        time.sleep(600 if name == "sloth" else 0)
        text = "there is nobody" if name == "nobody" else f"hello {name}"
        result = {"content": [{"type": "text", "text": text}], "isError": name == "nobody"}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""

SPEC = """
program = ["bash", "-c", 'case $3 in nobody) exit 3 ;; sloth) sleep 600 ;; *) echo "hello $3" ;; esac', "greeter"]
prefix = ""

[[commands]]
name = "greet"
description = "Say hello. Use this for guests."
words = ["greet"]
[commands.parameters]
name = {help = "Whom to greet."}
"""

SKILL = "---\nname: sewing\ndescription: Say hello. Use this for guests.\n---\n\nhello Ann\n"


def _writes(path, text, *, mode=None):
    def write(workspace):
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if mode is not None:
            file.chmod(mode)

    return write


def _replaces(path, old, new):
    def replace(workspace):
        file = workspace / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return replace


def _case(source, file, text, *, mode=None, **rest):
    """A tool `greet` in one file, which says hello, and fails for `nobody`."""
    facts = {
        "tool": "greet",
        "write": _writes(file, text, mode=mode),
        "path": file,
        "change": _replaces(file, "Say hello.", "Greet somebody."),
        "spoil": lambda workspace: (workspace / file).write_text("#!/bin/sh\nexit 3\n"),
        "remove": lambda workspace: (workspace / file).unlink(),
        "arguments": {"name": "Ann"},
        "output": "hello Ann",
        "wrong_arguments": {"name": 7},
        "failing_arguments": {"name": "nobody"},
        "slow_arguments": {"name": "sloth"},
    }
    return SourceCase(source=source, **{**facts, **rest})


def _template(workspace):
    _writes("templates/greet/tool.py", TEMPLATE)(workspace)
    _writes("templates/greet/requirements.txt", "pydantic\n")(workspace)


_SERVERS = {"greeter": {"command": "python3", "args": ["-c", SERVER]}}

CASES = [
    _case("amp-toolbox", ".agents/tools/greet", TOOLBOX, mode=0o755, tool="tb__greet"),
    _case(
        "bash-plugin",
        "plugins/greet.bash",
        BASH,
        settings={"plugins": ["bash:<workspace>/plugins/greet.bash"], "plugin_policy.allow_bash_tools": True},
        loads=False,
    ),
    _case(
        "python-plugin",
        "plugins/greet.py",
        PYTHON,
        settings={"plugins": ["path:<workspace>/plugins/greet.py"]},
        path=None,
        has_sessions=True,
    ),
    _case(
        "agent-studio",
        "templates/greet/tool.py",
        TEMPLATE,
        write=_template,
        path="templates/greet",
        settings={"templates.paths": ["<workspace>/templates"]},
        remove=lambda workspace: shutil.rmtree(workspace / "templates/greet"),
    ),
    _case(
        "mcp",
        "server.py",
        "",
        tool="mcp__greeter__greet",
        settings={"providers": _SERVERS},
        path=None,
        change=None,
        spoil=None,
        remove=None,
        has_sessions=True,
        answers_late=True,
    ),
    _case("cli", "greet.toml", SPEC, settings={"cli": {"greeter": {"spec": "<workspace>/greet.toml"}}}, path=None),
    _case(
        "skill",
        ".agents/skills/sewing/SKILL.md",
        SKILL,
        tool="skill",
        path=None,
        change=None,  # the tool `skill` reads skills anew in each call
        spoil=None,
        remove=None,
        arguments={"name": "sewing"},
        failing_arguments=None,
        slow_arguments=None,
    ),
]
