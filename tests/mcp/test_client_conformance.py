"""haft is the client of the conformance suite: `conformance_client.py` says how.

`make test` runs a few scenarios, others on other days; `make test-more` runs all of both versions.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import npm_programs
from sampling import some

sys.path.insert(0, str(Path(__file__).parent / "conformance"))
from client_suite import ALL, SCENARIOS, run_client


@pytest.mark.parametrize(("version", "scenario"), some(ALL, 2, "client conformance"))
def test_haft_conforms_as_a_client(version, scenario, tmp_path):
    npm_programs.program("conformance")
    found, printed = run_client(version, scenario, tmp_path)
    assert found.problems() == [], printed
    assert found.count("SUCCESS")
    assert printed.startswith("exit 0\n"), printed


@pytest.mark.parametrize("version", SCENARIOS)
def test_no_scenario_of_the_suite_is_left_out(version):
    command = [*npm_programs.program("conformance"), "list", "--client", "--spec-version", version]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert {*re.findall(r"^ +- (\S+)", listed, flags=re.MULTILINE)} == {*SCENARIOS[version]}
