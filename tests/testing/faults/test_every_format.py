"""Each fault, with the same tool in every format: what it does to the call, and what the workspace looks like then."""

import asyncio
import sys
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parent), str(Path(__file__).parent.parent.parent / "sandbox")]
from loaded import OwnEnvironment
from noting import FORMATS, SESSIONS, scenario_of

from haft.testing import run_scenario, scenarios_from
from sampling import IS_DAILY, some

pytestmark = pytest.mark.takes_turns

WRITTEN = {"note.txt": {"contains": "whole"}}
UNCHANGED = {}
ANSWERS = {"plugin", "function", "template", "mcp"}
"""The formats whose programs send their answer in a form of its own."""
FAULTS = {
    "deadline": UNCHANGED,
    "kill": UNCHANGED,
    "no-memory": UNCHANGED,
    "full-disk": UNCHANGED,
    "host-killed": UNCHANGED,
    "garbage": WRITTEN,
    "slow-pipes": WRITTEN,
}
IN_THE_SAME_PROCESS = {"deadline", "kill", "no-memory", "garbage", "slow-pipes", "partial-output"}
"""The faults that the environment of a template reaches, which the test gives to this process alone."""
PAIRS = [
    (fault, kind)
    for fault in FAULTS
    for kind in FORMATS
    if not (kind in SESSIONS and fault == "no-memory") and not (kind == "template" and fault not in IN_THE_SAME_PROCESS)
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    environment = OwnEnvironment(tmp_path / "environment")
    environment.show_real_libraries()
    monkeypatch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: environment)

    def run_one(kind, fault, **parts):
        data = {**scenario_of(kind, tmp_path / kind), "fault": fault, **parts}
        (scenario,) = scenarios_from(data, directory=str(tmp_path))
        result = asyncio.run(run_scenario(scenario))
        if result.skipped is not None:
            pytest.skip(result.skipped)
        return result

    return run_one


def check(result):
    assert [each.message for each in result.mismatches] == []


@pytest.mark.parametrize(("fault", "kind"), some(PAIRS, 12, "faults") if IS_DAILY else PAIRS)
def test_after_a_fault_the_outcome_and_the_workspace_are_as_the_fault_promises(run, fault, kind):
    result = run(kind, fault, expect={"files": FAULTS[fault]})
    check(result)


@pytest.mark.parametrize("kind", ["edit_file", "mcp"])
def test_the_deadline_and_the_death_of_haft_reach_tools_that_need_no_program_of_their_own(run, tmp_path, kind):
    parts = (
        {"tool": "edit_file", "args": {"path": "a.txt", "old_string": "one", "new_string": "two"}}
        if kind == "edit_file"
        else {}
    )
    for fault, code in (("deadline", "timed-out"), ("host-killed", "interrupted")):
        result = run("shell" if parts else kind, fault, **parts, files={"a.txt": "one\n"})
        check(result)
        assert result.outcome["error"]["code"] == code


@pytest.mark.parametrize("kind", ["shell", "function", "mcp"])
def test_partial_output_loses_the_answer_only_where_there_is_one(run, kind):
    result = run(kind, {"kind": "partial-output", "bytes": 5}, expect={"files": WRITTEN})
    check(result)
    assert result.outcome["status"] == ("error" if kind in ANSWERS else "done")
    if kind == "shell":
        assert result.outcome["output"] == "wrote"


def test_garbage_instead_of_the_output_is_all_that_comes(run):
    result = run("shell", {"kind": "garbage", "where": "instead"}, expect={"files": WRITTEN})
    check(result)
    assert "garbage" in result.outcome["output"]
    assert "wrote" not in result.outcome["output"]
