"""One scenario, in three spellings, against a tool of every format that replaces a text in a file."""

import asyncio

import pytest

from haft.testing import check_scenario, read_scenario_file, scenarios_from
from haft.testing.running import run_scenario
from haft.values import replace
from sampling import today

CONTENT = 'console.log("hello")\nmore code'
WANTED = 'console.log("goodbye")\nmore code'
ARGS = {"path": "test.js", "old_string": 'console.log("hello")', "new_string": 'console.log("goodbye")'}
SPELLINGS = {
    "own": {"args": ARGS, "files": {"test.js": CONTENT}, "expect": {"files": {"test.js": WANTED}}},
    "harness": {
        "arguments": ARGS,
        "initialFiles": {"test.js": CONTENT},
        "expectedFiles": [{"path": "test.js", "content": WANTED}],
    },
    "printed": {
        "args": ARGS,
        "files": {"test.js": CONTENT},
        "expectedFiles": [{"path": "test.js", "content": WANTED}],
    },
}
# As the example stands in the specification of such harnesses, to the letter.
PRINTED_TEXT = r"""{
  tool: 'edit_file',
  args: {
    path: 'test.js',
    old_string: 'console.log("hello")',
    new_string: 'console.log("goodbye")'
  },
  files: {
    'test.js': 'console.log("hello")\nmore code'
  },
  expectedFiles: [{
    path: 'test.js',
    content: 'console.log("goodbye")\nmore code'
  }]
}
"""

EDIT = """
def edit(path, old_string, new_string):
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace(old_string, new_string, 1))
    return "edited"
"""
SCHEMA = '{"type": "object", "properties": {"path": {"type": "string"}, "old_string": {"type": "string"}, \
"new_string": {"type": "string"}}, "required": ["path", "old_string", "new_string"]}'
AMP = (
    "#!/usr/bin/env python3\nimport json, os, sys\n"
    + EDIT
    + f"""
if os.environ["TOOLBOX_ACTION"] == "describe":
    print(json.dumps({{"name": "edit", "description": "Edits.", "inputSchema": {SCHEMA}}}))
else:
    print(edit(**json.load(sys.stdin)))
"""
)
BASH = (
    """#!/usr/bin/env bash
case "$1" in
schema) cat <<'END'
{"id": "edit", "version": "1", "args_mode": "json", "tools": [{"type": "function", "function": {"name": "edit",
 "parameters": SCHEMA}}]}
END
;;
run) python3 -c "$(cat <<'END'
import json, sys
EDIT
edit(**json.load(sys.stdin))
END
)" ;;
esac
""".replace("SCHEMA", SCHEMA)
).replace("EDIT", EDIT)
PLUGIN = EDIT + (
    f"""

class Plugin:
    def get_tool_schemas(self, state):
        return [{{"name": "edit", "description": "Edits.", "parameters": {SCHEMA}}}]

    async def execute_tool(self, name, arguments, state):
        return edit(**arguments)
"""
)
FUNCTION = """from haft import tool
EDIT

@tool(name="edit")
def edit_text(path: str, old_string: str, new_string: str) -> str:
    return edit(path, old_string, new_string)
""".replace("EDIT", EDIT)
TEMPLATE = """import argparse, json

from pydantic import BaseModel
EDIT
OUTPUT_KEY = "tool_output"


class UserParameters(BaseModel):
    pass


class ToolParameters(BaseModel):
    path: str
    old_string: str
    new_string: str


def run_tool(config: UserParameters, args: ToolParameters):
    return edit(args.path, args.old_string, args.new_string)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params")
    parser.add_argument("--tool-params")
    given = parser.parse_args()
    print(OUTPUT_KEY, run_tool(UserParameters(), ToolParameters(**json.loads(given.tool_params))))
""".replace("EDIT", EDIT)
SERVER = """import json, sys
EDIT
for line in sys.stdin:
    message = json.loads(line)
    given = message.get("params", {})
    if message["method"] == "initialize":
        capabilities = {"tools": {}}
        info = {"name": "editor", "version": "1"}
        result = {"protocolVersion": given["protocolVersion"], "capabilities": capabilities, "serverInfo": info}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "edit", "description": "Edits.", "inputSchema": SCHEMA}]}
    elif message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": edit(**given["arguments"])}]}
    else:
        result = None
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
""".replace("EDIT", EDIT).replace("SCHEMA", SCHEMA)
PROGRAM = f"""import sys
{EDIT}
path, old, new = sys.argv[-3:]
edit(path, old, new)
"""
SPEC = """program = ["python3", "./program.py"]

[[commands]]
name = "edit"
description = "Edit a file."
words = ["edit"]
[commands.parameters]
path = {required = true, help = "The file"}
old_string = {required = true, help = "What to replace"}
new_string = {required = true, help = "What to put there"}
"""
FORMATS = {
    "built-in": ({}, "edit_file", []),
    "amp": ({"edit": AMP}, "./edit", []),
    "bash-plugin": ({"edit.bash": BASH}, "edit", []),
    "python-plugin": (
        {
            "plugin.py": PLUGIN,
            "haft.toml": 'plugins = [{plugin = "path:./plugin.py", grant = {write = ["."]}}]\n',
        },
        "edit",
        [],
    ),
    "function": ({"words.py": FUNCTION}, "edit", ["words.py"]),
    "template": ({"edit/tool.py": TEMPLATE, "edit/requirements.txt": "pydantic\n"}, "./edit", []),
    "mcp": (
        {
            "server.py": SERVER,
            "haft.toml": '[providers.editor]\ncommand = "python3"\nargs = ["./server.py"]\ngrant.write = ["."]\n',
        },
        "mcp__editor__edit",
        [],
    ),
    "command-line": (
        {
            "program.py": PROGRAM,
            "editor.toml": SPEC,
            "haft.toml": '[cli.editor]\nspec = "./editor.toml"\nprogram = ["python3", "./program.py"]\n',
        },
        "program_py-edit",
        [],
    ),
}


@pytest.fixture
def tool(request, tmp_path):
    files, name, load = FORMATS[request.param]
    for path, text in files.items():
        full = tmp_path / path
        full.parent.mkdir(exist_ok=True)
        full.write_text(text)
        if text.startswith("#!"):
            full.chmod(0o755)
    tmp_path.chmod(0o755)
    return {"tool": name, "load": load}


@pytest.mark.every_user
@pytest.mark.parametrize("tool", today([*FORMATS], "scenarios of formats"), indirect=True)
def test_the_same_scenario_runs_against_every_format(tool, tmp_path):
    own, harness, printed = (scenarios_from({**tool, **one}, directory=str(tmp_path))[0] for one in SPELLINGS.values())
    assert own == harness == printed
    result = asyncio.run(run_scenario(own))
    assert result.passed, (result.to_json()["validationErrors"], result.skipped)
    wrong = replace(own, args={**own.args, "new_string": "other"})
    failed = asyncio.run(run_scenario(wrong)).to_json()
    assert set(failed) == {"passed", "validationErrors", "executionResult", "mismatches", "skipped"}
    assert failed["passed"] is False
    assert failed["validationErrors"] == [
        f"File test.js content mismatch:\nExpected: {WANTED}\nActual: other\nmore code"
    ]
    assert failed["executionResult"]["status"] == "done"
    assert failed["mismatches"][0]["path"] == "expect.files.test.js"


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_each_spelling_runs_against_the_built_in_tool(spelling):
    assert check_scenario({"tool": "edit_file", **SPELLINGS[spelling]}).passed


def test_the_printed_example_runs_to_the_letter(tmp_path):
    path = tmp_path / "printed.yaml"
    path.write_text(PRINTED_TEXT)
    (scenario,) = read_scenario_file(str(path))
    result = asyncio.run(run_scenario(scenario))
    assert result.to_json()["validationErrors"] == []


def test_a_file_that_is_missing_is_a_mismatch_and_not_a_crash():
    (scenario,) = scenarios_from(
        {"tool": "list_directory", "args": {"path": "."}, "expectedFiles": [{"path": "a/b.txt", "content": "x"}]}
    )
    result = asyncio.run(run_scenario(scenario))
    assert result.to_json()["validationErrors"] == [
        "File a/b.txt content mismatch:\nExpected: x\nActual: (no such file)"
    ]
