"""The same tool in every format: `note` writes a text to note.txt in the workspace. If it cannot, it fails, and leaves
nothing."""

import json
import stat
import sys
from pathlib import Path

SHELL = "cat >note.txt.new && mv note.txt.new note.txt && echo wrote the note || { rm -f note.txt.new; exit 1; }"
WRITE = """import os
def write(text):
    try:
        with open("note.txt.new", "w") as file:
            file.write(text)
        os.rename("note.txt.new", "note.txt")
    except OSError:
        os.unlink("note.txt.new")
        raise
"""
SCHEMA = '{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}'

AMP = f"""#!/bin/sh
if [ "$TOOLBOX_ACTION" = describe ]; then
  printf '%s' '{{"name": "note", "description": "Write a note.", "inputSchema": {SCHEMA}}}'
  exit
fi
{SHELL}
"""
BASH = f"""case "$1" in
schema) printf '%s' '{{"id": "note", "version": "1", "args_mode": "json",
"tools": [{{"type": "function", "function": {{"name": "note", "description": "Write a note.",
"parameters": {SCHEMA}}}}}]}}' ;;
run) {SHELL} ;;
esac
"""
PLUGIN = f"""{WRITE}
class Notes:
    def init(self, config):
        return {{}}
    def get_tool_schemas(self, state):
        return [{{"name": "note", "description": "Write a note.", "parameters": {SCHEMA}}}]
    def execute_tool(self, name, arguments, state):
        print("noting", flush=True)
        write(arguments["text"])
        return "wrote the note"
"""
FUNCTION = f'''{WRITE}
from haft import tool

@tool
def note(text: str) -> dict:
    """Write a note."""
    write(text)
    print("noting", flush=True)
    return {{"wrote": "the note"}}
'''
TEMPLATE = """from pydantic import BaseModel
import argparse, json, os

class UserParameters(BaseModel):
    pass

class ToolParameters(BaseModel):
    text: str

def run_tool(config: UserParameters, args: ToolParameters):
    try:
        with open("note.txt.new", "w") as file:
            file.write(args.text)
        os.rename("note.txt.new", "note.txt")
    except OSError:
        os.unlink("note.txt.new")
        raise
    return "wrote the note"

OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    args = parser.parse_args()
    params = ToolParameters(**json.loads(args.tool_params))
    print(OUTPUT_KEY, run_tool(UserParameters(), params))
"""
COMMANDS = """program = "/bin/sh"
[[commands]]
name = "note"
description = "Write a note."
words = ["-c", '''printf %s "$2" | ( SHELL )''', "sh"]
[commands.parameters]
text = {help = "The note", required = true}
""".replace("SHELL", SHELL)
SERVER = (
    f"import json, sys\n{WRITE}\nSCHEMA = {SCHEMA}\n"
    """
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "notes", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "note", "description": "Write a note.", "inputSchema": SCHEMA}]}
    elif method == "tools/call":
        write(asked["params"]["arguments"]["text"])
        result = {"content": [{"type": "text", "text": "wrote the note"}]}
    elif "id" in asked:
        result = {}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
)

FORMATS = ("shell", "toolbox", "bash", "plugin", "function", "template", "cli", "mcp")
"""Formats whose tools start programs. `edit_file` stands for those that do not."""
SESSIONS = ("plugin", "mcp")
"""Formats whose programs outlive their calls."""


def scenario_of(kind: str, directory: Path) -> dict:
    """The parts of a scenario that call `note` in a format. Writes the tool into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    if kind == "shell":
        return {"tool": "shell", "args": {"command": f"printf whole | ( {SHELL} )"}}
    if kind == "toolbox":
        return {"tool": str(written(directory / "note", AMP)), "args": {"text": "whole"}}
    if kind == "bash":
        return {
            "tool": str(written(directory / "note.bash", BASH)),
            "args": {"text": "whole"},
            "settings": {"plugin_policy.allow_bash_tools": True},
        }
    if kind == "plugin":
        entry = {"plugin": f"path:{written(directory / 'notes.py', PLUGIN)}", "grant": {"write": ["."]}}
        return {"tool": "note", "args": {"text": "whole"}, "settings": {"plugins": [entry]}}
    if kind == "function":
        return {"tool": str(written(directory / "functions.py", FUNCTION)), "args": {"text": "whole"}}
    if kind == "template":
        written(directory / "tool.py", TEMPLATE)
        written(directory / "requirements.txt", "pydantic\n")
        return {"tool": f"{directory}/", "args": {"text": "whole"}}
    if kind == "cli":
        written(directory / "notes.toml", COMMANDS)
        return {"tool": "sh-note", "load": [str(directory / "notes.toml")], "args": {"text": "whole"}}
    assert kind == "mcp"
    written(directory / "server.py", SERVER)
    server = {"command": sys.executable, "args": ["./server.py"], "grant": {"write": ["."]}}
    entry = json.dumps({"mcpServers": {"notes": server}})
    config = written(directory / ".mcp.json", entry)
    return {"tool": "mcp__notes__note", "load": [str(config)], "args": {"text": "whole"}}


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
