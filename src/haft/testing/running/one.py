"""Runs one scenario."""

from __future__ import annotations

import time

from haft.contracts import HaftError
from haft.testing import faults
from haft.testing.calls import World, judged, observe
from haft.testing.scenarios import Mismatch, Result, Scenario, Unfit
from haft.values import replace


async def run_scenario(scenario: Scenario) -> Result:
    """Run a scenario. Every failure is a mismatch or a reason to skip in the result, and not an exception."""
    began = time.perf_counter()
    try:
        result = await _run(scenario)
    except Unfit as error:
        result = Result(scenario, skipped=str(error))
    except (HaftError, OSError) as error:
        message = f"The scenario could not run: {error}"
        if hint := getattr(error, "hint", None):
            message += f"\nhint: {hint}"
        result = Result(scenario, (Mismatch("tool", scenario.tool, None, message),))
    return replace(result, seconds=time.perf_counter() - began)


async def _run(scenario: Scenario) -> Result:
    if scenario.fault is not None:
        return await faults.run_with_fault(scenario)
    with World(scenario) as world:
        if scenario.clock is None:
            return judged(scenario, await observe(scenario, world))
        passing = faults.PassingTime(scenario.clock, world.environ())
        observed = await observe(scenario, world, fault=passing)
        passing.check()  # Some tools are known only when they are called.
        return judged(scenario, observed)
