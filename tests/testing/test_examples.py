"""The tools in `examples/` have test scenarios. pytest collects these by itself; this says that none is forgotten."""

import subprocess
from pathlib import Path

import pytest

from haft.testing import read_scenario_file, run_scenarios
from haft.testing.reading import find_scenario_files

EXAMPLES = Path(__file__).parents[2] / "examples"
KINDS = {
    "functions.scenario.json": "python",
    "bash-read-line-range": "bash-plugin",
    "command-line": "cli",
    "json-reader": "agent-studio",
    "mcp-server": "mcp",
    "python-functions": "python",
    "python-plugin": "python-plugin",
    "reading_time": "agent-studio",
    "release-notes": "amp-toolbox",
    "template-bash-tool": "bash-plugin",
    "toolbox-json": "amp-toolbox",
    "toolbox-text": "amp-toolbox",
}


def scenarios_of(name):
    return [each for path in find_scenario_files([str(EXAMPLES / name)]) for each in read_scenario_file(path)]


def test_every_scenario_file_belongs_to_one_of_these_examples():
    named = find_scenario_files([str(EXAMPLES / each) for each in KINDS])
    assert sorted(named) == sorted(find_scenario_files([str(EXAMPLES)]))


def test_every_format_has_an_example():
    from haft.toolsets.formats import FORMATS

    assert {each.name for each in FORMATS} - {*KINDS.values()} == {"skill"}  # the tools of skills are executables
    assert (EXAMPLES / "release-notes/SKILL.md").is_file()


@pytest.mark.parametrize("name", KINDS)
def test_an_example_has_at_least_three_scenarios(name):
    assert len(scenarios_of(name)) >= 3


def test_scenarios_leave_the_examples_as_they_are():
    words = ["git", "-C", EXAMPLES, "status", "--porcelain", "--ignored", "--untracked-files=all", "."]
    before = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert run_scenarios(scenarios_of("bash-read-line-range")[:1], jobs=1)[0].passed
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == before
