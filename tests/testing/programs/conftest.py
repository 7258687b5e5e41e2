"""Runs scenarios given as data."""

import asyncio

import pytest

from haft.testing.reading import scenarios_from
from haft.testing.running import run_scenario


@pytest.fixture
def run(tmp_path):
    """A function that runs one scenario, and skips the test if this machine cannot."""

    def run(**data):
        (scenario,) = scenarios_from(data, directory=str(tmp_path))
        result = asyncio.run(run_scenario(scenario))
        if result.skipped is not None:
            pytest.skip(result.skipped)
        return result

    return run


@pytest.fixture
def passes(run):
    """A function that runs one scenario, which must pass."""

    def passes(**data):
        result = run(**data)
        assert result.passed, "\n".join(each.message for each in result.mismatches)
        return result

    return passes


@pytest.fixture
def failures(run):
    """A function that runs one scenario, and returns its mismatches."""
    return lambda **data: [each.message for each in run(**data).mismatches]


@pytest.fixture(scope="session")
def missing_sandbox():
    """Why a scenario is skipped that needs the whole sandbox; None if it is not."""
    (scenario,) = scenarios_from({"tool": "shell", "args": {"command": "x"}, "programs": {"x": {}, "others": "refuse"}})
    return asyncio.run(run_scenario(scenario)).skipped


@pytest.fixture
def needs_sandbox(missing_sandbox):
    """Skips the test where a scenario is skipped that needs the whole sandbox."""
    if missing_sandbox is not None:
        pytest.skip(missing_sandbox)
