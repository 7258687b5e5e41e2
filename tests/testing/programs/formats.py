"""One tool in each format that starts `git status`, and passes a line to `git apply`."""

AMP_SHELL = """#!/bin/sh
if [ "$TOOLBOX_ACTION" = describe ]; then
  echo '{"name": "runs_git", "description": "Runs git.", "args": {}}'; exit
fi
git status --short
printf 'a patch' | git apply -
"""
AMP_PYTHON = """#!/usr/bin/env python3
import json, os, subprocess
if os.environ["TOOLBOX_ACTION"] == "describe":
    print(json.dumps({"name": "runs_git", "description": "Runs git.", "args": {}}))
else:
    subprocess.run(["git", "status", "--short"], check=True)
    subprocess.run(["git", "apply", "-"], input=b"a patch", check=True)
"""
BASH_PLUGIN = """#!/usr/bin/env bash
case "$1" in
schema) printf '%s' '{"id": "runs_git", "version": "1", "args_mode": "json",
"tools": [{"type": "function", "function": {"name": "runs_git", "parameters": {"type": "object"}}}]}' ;;
run) git status --short; printf 'a patch' | git apply - ;;
esac
"""
PYTHON_PLUGIN = """import subprocess


class Plugin:
    def get_tool_schemas(self, state):
        return [{"name": "runs_git", "description": "Runs git.", "parameters": {"properties": {}}}]

    async def execute_tool(self, name, arguments, state):
        shown = subprocess.run("git status --short", shell=True, capture_output=True, text=True, check=True)
        applied = subprocess.run(["git", "apply", "-"], input="a patch", capture_output=True, text=True, check=True)
        return shown.stdout + applied.stdout
"""
FUNCTION = """import subprocess

from haft import tool


@tool
def runs_git() -> str:
    shown = subprocess.run("git status --short", shell=True, capture_output=True, text=True, check=True)
    applied = subprocess.run(["git", "apply", "-"], input="a patch", capture_output=True, text=True, check=True)
    return shown.stdout + applied.stdout
"""
TEMPLATE = """import argparse, json, os, subprocess

from pydantic import BaseModel

OUTPUT_KEY = "tool_output"


class UserParameters(BaseModel):
    pass


class ToolParameters(BaseModel):
    pass


def run_tool(config: UserParameters, args: ToolParameters):
    subprocess.run(["git", "status", "--short"], check=True)
    return subprocess.run(["git", "apply", "-"], input="a patch", capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params")
    parser.add_argument("--tool-params")
    parser.parse_args()
    print(OUTPUT_KEY, run_tool(UserParameters(), ToolParameters()))
"""

FORMATS = {
    "amp-shell": ("runs_git", AMP_SHELL),
    "amp-python": ("runs_git", AMP_PYTHON),
    "bash-plugin": ("runs_git.bash", BASH_PLUGIN),
    "python-plugin": ("plugin.py", PYTHON_PLUGIN),
    "function": ("functions.py", FUNCTION),
}


def write(directory, name):
    """Write the tool of a format, and return its path."""
    file, text = FORMATS[name]
    path = directory / file
    path.write_text(text)
    path.chmod(0o755)
    return f"./{file}"


SERVER = """import json, subprocess, sys

TOOL = {"name": "runs_git", "description": "Runs git.", "inputSchema": {"type": "object"}}


def run_git():
    subprocess.run(["git", "status", "--short"], stdout=sys.stderr)  # It has the stdin of the server.
    subprocess.run(["git", "apply", "-"], input=b"a patch", stdout=sys.stderr)
    return {"content": [{"type": "text", "text": "done"}]}


for line in sys.stdin:
    message = json.loads(line)
    result = {
        "initialize": lambda: {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "gits", "version": "1"},
        },
        "tools/list": lambda: {"tools": [TOOL]},
        "tools/call": run_git,
    }.get(message["method"])
    if "id" in message:
        unknown = {"error": {"code": -32601, "message": "no such method"}}
        answer = {"result": result()} if result else unknown
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
COMMAND_LINE = """program = "git"

[[commands]]
name = "apply"
description = "Apply a patch."
words = ["apply"]
[commands.parameters]
check = {type = "boolean", option = "--check", help = "Only look"}
file = {help = "The patch"}
"""
