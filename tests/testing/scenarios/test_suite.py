"""Scenarios in worker processes."""

import os

from haft.testing import run_scenarios, scenarios_from


class Deadly(str):
    """Ends the process that reads it from a pipe."""

    def __reduce__(self):
        return os._exit, (1,)


def test_only_the_scenario_that_ends_its_process_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("HAFT_HOME", str(tmp_path))
    good = {"tool": "list_directory", "args": {"path": "."}, "expect": {"output": {"contains": "a.txt"}}}
    files = {"files": {"a.txt": ""}}
    deadly = {"tool": "list_directory", "args": {"path": Deadly()}}
    scenarios = [scenarios_from(each)[0] for each in [good | files, deadly, *[good | files] * 4, deadly]]
    seen = []
    results = run_scenarios(scenarios, jobs=2, report=seen.append)
    assert [each.passed for each in results] == [True, False, True, True, True, True, False]
    assert "the tool ended the process" in results[1].mismatches[0].message
    assert len(seen) == len(results)
