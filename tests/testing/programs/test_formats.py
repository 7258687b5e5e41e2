"""The tool of every format meets the stubs, and each call is recorded."""

import json
import sys
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "sandbox")]
from formats import COMMAND_LINE, FORMATS, SERVER, TEMPLATE, write
from loaded import OwnEnvironment

from sampling import today

pytestmark = pytest.mark.takes_turns

PROGRAMS = {"git": [{"args": ["status"], "stdout": "M a.txt\n"}, {"args": ["apply"], "writes": {"a.txt": "b"}}]}
FILES = {"a.txt": "b"}
CALLS = ["git status --short", {"command": "git apply -", "stdin": "a patch", "cwd": "."}]
WRITES_NOTHING = "python-plugin"
"""The process of a Python plugin writes in the workspace only by a grant, and so do its stubs."""


@pytest.mark.parametrize("form", today([*FORMATS], "stubs of formats"))
def test_a_tool_of_each_format_meets_the_stub(passes, tmp_path, form):
    tool, programs, expect = write(tmp_path, form), PROGRAMS, {"files": FILES, "programs": CALLS}
    if form == WRITES_NOTHING:
        programs, expect = {"git": {"stdout": "M a.txt\n"}}, {"programs": CALLS}
    result = passes(tool=tool, programs=programs, expect=expect)
    assert "M a.txt" in result.outcome["output"]


def test_a_call_that_is_missing_or_too_much_is_a_mismatch(failures, tmp_path):
    tool, programs = write(tmp_path, "amp-shell"), {"git": {}}
    (message,) = failures(tool=tool, programs=programs, expect={"programs": [*CALLS, "git commit"]})
    assert message == (
        "Program calls mismatch:\nExpected: git status --short\ngit apply -\ngit commit\n"
        "Actual: git status --short\ngit apply -"
    )
    (message,) = failures(tool=tool, programs=programs, expect={"programs": CALLS[:1]})
    assert message.endswith("Actual: git status --short\ngit apply -")


def test_programs_of_an_mcp_server_do_not_read_its_conversation(passes, tmp_path):
    (tmp_path / "server.py").write_text(SERVER)
    servers = {"gits": {"command": sys.executable, "args": ["./server.py"]}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    programs = {"git": {"stdout": "M a.txt\n"}}
    result = passes(tool="mcp__gits__runs_git", load=[".mcp.json"], programs=programs, expect={"programs": CALLS})
    assert [each["stdin"] for each in result.program_calls] == ["", "a patch"]


def test_a_stub_is_the_program_of_a_wrapped_command_line(passes, tmp_path):
    (tmp_path / "git.toml").write_text(COMMAND_LINE)
    (tmp_path / "haft.toml").write_text('[cli.git]\nspec = "./git.toml"\n')
    passes(
        tool="git-apply",
        load=["haft.toml"],
        args={"file": "a.patch", "check": True},
        programs={"git": {"stderr": "does not apply\n", "exit": 1}},
        expect={
            "status": "error",
            "exit": 1,
            "stderr": "does not apply\n",
            "programs": ["git apply --check -- a.patch"],
        },
    )


def test_a_template_meets_the_stub(passes, tmp_path, monkeypatch):
    environment = OwnEnvironment(tmp_path / "environment")
    environment.show_real_libraries()
    monkeypatch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: environment)
    folder = tmp_path / "runs_git"
    folder.mkdir()
    (folder / "tool.py").write_text(TEMPLATE)
    (folder / "requirements.txt").write_text("pydantic\n")
    passes(tool="./runs_git", programs=PROGRAMS, expect={"files": FILES, "programs": CALLS})
