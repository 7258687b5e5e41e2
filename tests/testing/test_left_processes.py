"""A scenario whose tool leaves a process behind."""

import os
import stat
import sys

import pytest

from haft.contracts import BadUsage
from haft.testing.reading import scenarios_from
from haft.testing.running import run_scenarios

LEAVER = """#!/bin/sh
[ "$TOOLBOX_ACTION" = describe ] && { echo "name: leaver"; echo "description: Leaves a process."; exit 0; }
(setsid sleep 1000 > /dev/null 2>&1 < /dev/null &)
echo left
"""


@pytest.fixture
def leaver(tmp_path, monkeypatch):
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "state"))
    path = tmp_path / "leaver"
    path.write_text(LEAVER)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"tool": os.fspath(path)}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which processes haft ended")
def test_a_process_that_is_left_behind_is_a_mismatch_unless_the_scenario_allows_it(leaver):
    cases = [{"name": "strict"}, {"name": "lenient", "expect": {"children": "any", "output": "left\n"}}]
    strict, lenient = run_scenarios(scenarios_from({**leaver, "cases": cases}), jobs=1)
    assert [each.path for each in strict.mismatches] == ["expect.children"]
    assert strict.mismatches[0].message.startswith("Processes left behind mismatch:\nExpected: (none)\nActual: ")
    assert lenient.passed


def test_children_are_none_or_any(leaver):
    with pytest.raises(BadUsage, match="must be `none` or `any`, not 2"):
        scenarios_from({**leaver, "expect": {"children": 2}})
