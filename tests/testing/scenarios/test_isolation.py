"""A scenario that leaves traces on purpose changes nothing for the scenarios before, beside and after it."""

import asyncio
import json
import random
import re

import pytest

from haft.testing import run_scenario, run_scenarios, scenarios_from

FUNCTIONS = """import os
from haft import tool

count = 0


@tool
def counted() -> str:
    "Counts its calls in this process."
    global count
    count += 1
    os.environ["TRACE"] = "left"
    return f"{count} {os.environ.get('TRACE_BEFORE')}"


@tool(readonly=True, cacheable=True)
def remembered(path: str) -> str:
    "Reads a file."
    with open(path) as file:
        return file.read()
"""
PLUGIN = """import os


class Plugin:
    def __init__(self, *args, **kwargs):
        self.calls = 0

    def get_tool_schemas(self, state):
        return [{"name": "kept", "description": "Counts.", "parameters": {"properties": {}}}]

    async def execute_tool(self, name, arguments, state):
        self.calls += 1
        here = os.path.expanduser("~/trace")
        seen = os.path.exists(here), os.path.exists("/tmp/trace")
        for path in (here, "/tmp/trace"):
            open(path, "w").close()
        return f"{self.calls} {seen}"
"""
SKILL = "---\nname: reading\ndescription: Reads.\n---\nRead.\n"
LOOK = "ls -A /tmp ~ 2>&1; env | grep -i trace; ls -A"
LEAVE = "touch /tmp/trace ~/trace .trace; echo 'export TRACE=1' >> ~/.bashrc; git config --global user.name trace; true"
SCENARIOS = [
    # Those that leave traces.
    {"tool": "shell", "args": {"command": LEAVE}, "expect": {"only_changed": "any"}},
    {
        "tool": "shell",
        "args": {"command": "touch a"},
        "approve": [{"scope": "always"}],
        "expect": {"files": {"a": ""}, "asked": 1},
    },
    {"tool": "skill", "args": {"name": "reading"}, "files": {".agents/skills/reading/SKILL.md": SKILL}},
    {"tool": "counted", "load": "functions.py", "env": {"TRACE_BEFORE": "given"}},
    {"tool": "remembered", "load": "functions.py", "args": {"path": "a"}, "files": {"a": "first"}},
    {"tool": "kept", "load": "plugin.py", "expect": {"only_changed": "any"}},
    # Those that would see them.
    {"tool": "shell", "args": {"command": LOOK}},
    {
        "tool": "shell",
        "args": {"command": "touch a"},
        "approve": [False],
        "expect": {"status": "rejected-by-user", "asked": 1},
    },
    {"tool": "skill", "args": {"name": "reading"}, "expect": {"status": "error"}},
    {"tool": "counted", "load": "functions.py"},
    {"tool": "remembered", "load": "functions.py", "args": {"path": "a"}, "files": {"a": "second"}},
    {"tool": "kept", "load": "plugin.py", "expect": {"only_changed": "any"}},
]
VOLATILE = ("run", "startedAt", "durationMs", "limits", "thread")


@pytest.fixture
def scenarios(tmp_path):
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "plugin.py").write_text(PLUGIN)
    made = [{**one, "name": str(number)} for number, one in enumerate(SCENARIOS)]
    return [scenarios_from(one, directory=str(tmp_path))[0] for one in made]


def what_counts(result):
    """A result without what is another in each run."""
    form = result.to_json()
    outcome = {key: value for key, value in (form["executionResult"] or {}).items() if key not in VOLATILE}
    text = json.dumps({**form, "executionResult": outcome}, sort_keys=True)
    text = re.sub(r"haft-scenario-\w+", "haft-scenario", text)
    return json.loads(re.sub(r"\b[a-z]{1,2}_[0-9a-zA-Z]{10,}\b", "ID", text))


def test_scenarios_that_leave_traces_change_no_other(scenarios):
    alone = [what_counts(asyncio.run(run_scenario(each))) for each in scenarios]
    assert [each["validationErrors"] for each in alone] == [[]] * len(alone)
    outputs = [each["executionResult"]["output"] for each in alone]
    assert outputs[3] == "1 given"
    assert outputs[9] == "1 None"
    assert outputs[4:6] == ["first", "1 (False, False)"]
    assert outputs[10:12] == ["second", "1 (False, False)"]
    assert "trace" not in outputs[6].lower()
    order = random.sample(range(len(scenarios)), len(scenarios))
    for index, result in zip(order, run_scenarios([scenarios[index] for index in order], jobs=3), strict=True):
        assert what_counts(result) == alone[index], order
