"""The scenarios of the tools in `examples/`."""

import subprocess
from pathlib import Path

import pytest

from haft.testing.scenarios import find_scenario_files, lines_of, read_scenario_file, run_scenarios

EXAMPLES = Path(__file__).parents[2] / "examples"
WITH_SCENARIOS = [
    "functions.scenario.json",
    *("bash-read-line-range", "command-line", "json-reader", "mcp-server", "python-functions", "python-plugin"),
    *("release-notes", "template-bash-tool", "toolbox-json", "toolbox-text"),
]


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "state"))


def test_every_scenario_belongs_to_an_example_below():
    named = find_scenario_files([str(EXAMPLES / each) for each in WITH_SCENARIOS])
    assert sorted(named) == sorted(find_scenario_files([str(EXAMPLES)]))


@pytest.mark.parametrize("name", WITH_SCENARIOS)
def test_an_example_does_what_its_scenarios_say(name):
    scenarios = [each for path in find_scenario_files([str(EXAMPLES / name)]) for each in read_scenario_file(path)]
    results = run_scenarios(scenarios, jobs=1)
    assert len(results) >= 3
    failed = [each for each in results if not each.passed]
    assert not failed, "\n".join(line for each in failed for line in lines_of(each))


def test_scenarios_leave_the_examples_as_they_are():
    words = ["git", "-C", EXAMPLES, "status", "--porcelain", "--ignored", "--untracked-files=all", "."]
    before = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    scenarios = read_scenario_file(str(EXAMPLES / "bash-read-line-range/read_line_range.scenario.yaml"))
    assert run_scenarios(scenarios[:1], jobs=1)[0].passed
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == before
