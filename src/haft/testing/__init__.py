"""For tool writers: tests of tools of any format, through the whole service, as an agent calls them.

With pytest, the fixture `haft_tools` is there as soon as haft is installed, and scenario files are collected:

def test_it_counts_lines(haft_tools):
    haft_tools.load("plugins/count-lines")
    haft_tools.write({"a.txt": "1\\n2\\n"})
    outcome = haft_tools.call("count_lines", path="a.txt")
    assert (outcome.status, outcome.output) == ("done", "2\\n")

Without pytest, use `ToolBench`, which is the value of the fixture, and `check_scenario`. Only the module `plugin`
imports pytest.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.bench import ToolBench
    from haft.testing.calls import ScriptedApprover
    from haft.testing.plugin import haft_tools
    from haft.testing.reading import read_scenario_file, scenarios_from
    from haft.testing.running import check_scenario, run_scenario, run_scenarios
    from haft.testing.scenarios import Answer, Result, Scenario
    from haft.testing.scripted_model import ScriptedModel
else:
    __getattr__ = face(
        __name__,
        {
            "bench": "ToolBench",
            "calls": "ScriptedApprover",
            "plugin": "haft_tools",
            "reading": "read_scenario_file scenarios_from",
            "running": "check_scenario run_scenario run_scenarios",
            "scenarios": "Answer Result Scenario",
            "scripted_model": "ScriptedModel",
        },
    )

__all__ = [
    "Answer",
    "Result",
    "Scenario",
    "ScriptedApprover",
    "ScriptedModel",
    "ToolBench",
    "check_scenario",
    "haft_tools",
    "read_scenario_file",
    "run_scenario",
    "run_scenarios",
    "scenarios_from",
]


def __dir__() -> list[str]:
    return __all__  # pytest looks for fixtures among these, where a `conftest.py` names this package.
