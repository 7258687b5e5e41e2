"""A scenario controls the environment and the network of its tool."""

import socket
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.takes_turns

sys.path.append(str(Path(__file__).parent))

READS = """#!/usr/bin/env python3
import os
if os.environ["TOOLBOX_ACTION"] == "describe":
    print('{"name": "reads", "description": "Reads a variable.", "args": {}}')
else:
    print(os.environ.get("GIVEN"), os.environ.get("SOMEBODYS"))
"""
PLUGIN = """import os


class Plugin:
    def get_tool_schemas(self, state):
        return [{"name": "reads", "description": "Reads a variable.", "parameters": {"properties": {}}}]

    async def execute_tool(self, name, arguments, state):
        return f'{os.environ.get("GIVEN")} {os.environ.get("SOMEBODYS")}'
"""
CONNECTS = "exec 3<>/dev/tcp/127.0.0.1/PORT && echo connected"


@pytest.mark.parametrize(("file", "text"), [("reads", READS), ("reads.py", PLUGIN)])
def test_variables_of_the_scenario_reach_the_tool(passes, tmp_path, file, text, monkeypatch):
    monkeypatch.setenv("SOMEBODYS", "secret of whoever runs the test")
    (tmp_path / file).write_text(text)
    (tmp_path / file).chmod(0o755)
    found = passes(tool=f"./{file}", env={"GIVEN": "by the scenario"})
    assert found.outcome["output"].strip().strip('"') == "by the scenario None"


def test_there_is_no_network_unless_the_scenario_says_so(passes, failures, needs_sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = CONNECTS.replace("PORT", str(server.getsockname()[1]))
        (message,) = failures(tool="shell", args={"command": command})
        assert message.startswith("Status mismatch:")
        passes(tool="shell", args={"command": command}, network=True, expect={"output": "connected\n"})
