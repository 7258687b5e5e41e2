"""A scenario as one line of a test."""

from __future__ import annotations

import asyncio
import os
import unittest
from collections.abc import Mapping
from typing import Any

from haft.contracts import BadUsage
from haft.testing.reading import scenarios_from
from haft.testing.running import run_scenario
from haft.testing.scenarios import Result, Scenario, failure


def check_scenario(scenario: Scenario | Mapping[str, Any], *, directory: str | os.PathLike[str] = ".") -> Result:
    """Run a scenario, which is a value or a mapping with the keys of scenario files. Paths of tools begin at
    `directory`. Raises `AssertionError` with all mismatches, and `unittest.SkipTest` if this machine cannot run it."""
    if not isinstance(scenario, Scenario):
        found = scenarios_from(scenario, directory=os.path.abspath(os.fspath(directory)))
        if len(found) != 1:
            raise BadUsage(f"the scenario has {len(found)} cases", hint="check each case of `scenarios_from` by itself")
        scenario = found[0]
    result = asyncio.run(run_scenario(scenario))
    if result.skipped is not None:
        raise unittest.SkipTest(result.skipped)
    if result.mismatches:
        raise AssertionError("\n".join([f"{scenario.name or scenario.tool} failed", *failure(result)]))
    return result
