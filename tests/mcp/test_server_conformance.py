"""The conformance suite of MCP against `haft serve mcp`, with fixtures that are ordinary haft tools.

`make test` runs one version of the protocol, chosen by the day; `HAFT_MORE` runs both, and the extensions that no
version requires. `scripts/conformance.py` runs the same and writes docs/reference/mcp-conformance.md.
"""

from urllib.parse import urlsplit

import pytest
from served_workspace import ServedWorkspace
from suite import EXTENSIONS, VERSIONS, Scenario, attribute_runs, run_suite, wants_runs
from token_proxy import TokenProxy

import npm_programs
import sampling

FEWEST_CHECKS = {"2026-07-28": 190, "2025-11-25": 84}


@pytest.mark.first
@pytest.mark.parametrize("version", sampling.some(VERSIONS, 1, "conformance"))
def test_every_scenario_of_the_suite_passes_and_its_calls_are_in_the_log(version, tmp_path):
    npm_programs.program("conformance")
    workspace = ServedWorkspace(tmp_path)
    with workspace.served() as (url, token), TokenProxy(urlsplit(url).port, token) as proxied:
        scenarios = run_suite(proxied, version, tmp_path / "results")
        if sampling.IS_WHOLE:
            for name in EXTENSIONS.get(version, ()):
                scenarios += run_suite(proxied, version, tmp_path / name, only=name)
        attribute_runs(scenarios, workspace.runs())
    assert [problem for scenario in scenarios for problem in scenario.problems()] == []
    assert sum(scenario.count("SUCCESS") for scenario in scenarios) >= FEWEST_CHECKS[version]
    assert [each.name for each in scenarios if wants_runs(each.name) and not each.runs] == []


def test_a_run_belongs_to_the_scenario_that_began_last_before_it():
    first, second = Scenario("first", 100.0, []), Scenario("second", 100.5, [])
    runs = [{"tool": name, "startedAt": f"1970-01-01T00:01:{at}Z"} for name, at in (("a", "40.499"), ("b", "59.000"))]
    attribute_runs([first, second], runs)
    assert (first.runs, second.runs) == (["a"], ["b"])
