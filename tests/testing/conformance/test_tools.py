"""`haft tools check --conformance`: single tools, with what their calls show."""

import asyncio
import json
import os
from pathlib import Path

import pytest

import sampling
from haft.contracts import BadUsage
from haft.sources.checks import CODES
from haft.sources.checks.codes.calls import CALLS
from haft.testing.conformance import check_tools, tool_checks

pytestmark = pytest.mark.takes_turns

EXAMPLES = Path(__file__).parents[3] / "examples"
SHELL = """#!/usr/bin/env bash
if [[ $TOOLBOX_ACTION == describe ]]; then
    echo "name: toy"
    echo "description: DESCRIPTION"
    echo "word: string? a word"
    exit
fi
IFS= read -r line || true
BODY
"""
FUNCTION = '''
from pathlib import Path

from haft import tool


@tool(readonly=True)
def toy(word: str = "") -> str:
    """Say a word. Use this never."""
    Path("said.txt").write_text(word)
    return word
'''
WRONG = {
    "description-unstable": {"description": "It is $RANDOM $RANDOM now."},
    "call-hangs": {"body": "sleep 600"},
    "call-crashes": {"body": "kill -SEGV $$"},
    "call-traceback": {"body": "set -u; echo $undefined"},
    "call-leaves-processes": {"body": "(setsid sleep 600 > /dev/null 2>&1 < /dev/null &)"},
}


def write(path, description="Say a word.", body='echo "${line:-nothing}"'):
    path.write_text(SHELL.replace("DESCRIPTION", description).replace("BODY", body))
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "state"))


def codes_of(path):
    reports = asyncio.run(check_tools(str(path)))
    return {each.name: [finding.code for finding in each.findings] for each in reports}


def test_a_tool_that_does_nothing_wrong_has_no_findings(tmp_path):
    assert codes_of(write(tmp_path / "toy")) == {"tb__toy": []}


TODAY = sampling.some([*WRONG], 2, "wrong tools") if sampling.IS_DAILY else [*WRONG]


@pytest.mark.parametrize("code", TODAY)
def test_a_wrong_tool_has_exactly_its_finding(code, tmp_path, monkeypatch):
    monkeypatch.setattr(tool_checks, "CALL_SECONDS", 2.0 if code == "call-hangs" else 30.0)
    assert codes_of(write(tmp_path / "toy", **WRONG[code])) == {"tb__toy": [code]}


def test_a_tool_that_says_it_only_reads_and_writes_is_found(tmp_path):
    (tmp_path / "toy.py").write_text(FUNCTION)
    assert codes_of(tmp_path / "toy.py") == {"toy": ["readonly-writes"]}


def test_a_tool_whose_process_has_the_network_is_not_called(tmp_path):
    server = {"command": "python3", "args": [str(EXAMPLES / "mcp-server/todo_server.py")], "grant": {"network": True}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"todo": server}}))
    found = codes_of(tmp_path / ".mcp.json")
    assert found == {f"mcp__todo__{each}": ["tool-not-called"] for each in ("add", "finish", "open")}


def test_every_code_has_a_test():
    tested = {*WRONG, "readonly-writes", "tool-not-called"}
    assert {each.code for each in CALLS} == tested <= {*CODES}


def test_a_folder_without_tools_is_an_error(tmp_path):
    with pytest.raises(BadUsage, match="has no tools"):
        codes_of(tmp_path)


def test_the_command_adds_what_calls_show_to_the_other_findings(tmp_path, monkeypatch, capsys):
    from haft.surfaces.cli.main import run

    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "toy", description="Do stuff", body="kill -SEGV $$")
    assert run(["tools", "check", "--conformance", "--json", os.path.relpath(path)]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    codes = [each["code"] for each in report["findings"]]
    assert codes[-1] == "call-crashes" and "vague-description" in codes
    assert run(["tools", "check", "--conformance"]) == 2
    assert "needs their names or paths" in capsys.readouterr().err
