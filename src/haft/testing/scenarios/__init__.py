"""Test scenarios: calls of tools, written as data, that are run and compared with what they expect.

`read_scenario_file` and `scenarios_from` make scenarios, `run_scenario` and `run_scenarios` run them.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.scenarios.files import find_scenario_files, is_scenario_file, read_scenario_file
    from haft.testing.scenarios.junit import write_junit
    from haft.testing.scenarios.report import explained, last_words, lines_of, place, summary
    from haft.testing.scenarios.running import run_scenario
    from haft.testing.scenarios.scenario import Answer, Mismatch, Result, Scenario
    from haft.testing.scenarios.spellings import scenarios_from
    from haft.testing.scenarios.suite import run_scenarios
    from haft.testing.scenarios.update import Updated, update_files
    from haft.testing.scenarios.watching import Watch
else:
    __getattr__ = face(
        __name__,
        {
            "files": "find_scenario_files is_scenario_file read_scenario_file",
            "junit": "write_junit",
            "report": "explained lines_of place last_words summary",
            "running": "run_scenario",
            "scenario": "Answer Mismatch Result Scenario",
            "spellings": "scenarios_from",
            "suite": "run_scenarios",
            "update": "Updated update_files",
            "watching": "Watch",
        },
    )

__all__ = [
    "Answer",
    "Mismatch",
    "Result",
    "Scenario",
    "Updated",
    "Watch",
    "explained",
    "find_scenario_files",
    "is_scenario_file",
    "last_words",
    "lines_of",
    "place",
    "read_scenario_file",
    "run_scenario",
    "run_scenarios",
    "scenarios_from",
    "summary",
    "update_files",
    "write_junit",
]
