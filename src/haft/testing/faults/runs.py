"""Runs scenarios that have a fault."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Mapping
from typing import Any, Final

from haft.contracts import BadUsage, HaftError
from haft.service import ToolService
from haft.testing.calls.approving import ScriptedApprover
from haft.testing.calls.injection import Injection
from haft.testing.calls.observing import judged, loading_of, observe
from haft.testing.calls.world import World
from haft.testing.faults.afterwards import with_ending
from haft.testing.faults.child import in_child
from haft.testing.faults.disk import SmallDiskWorld
from haft.testing.faults.moments import Deadline, HostKilled, Kill
from haft.testing.faults.resources import FullDisk, NoMemory, NoNetwork
from haft.testing.faults.streams import Garbage, PartialOutput, SlowPipes
from haft.testing.scenarios.comparing import Observed
from haft.testing.scenarios.scenario import Fault, Mismatch, Result, Scenario, Unfit
from haft.testing.scenarios.snapshots import snapshot
from haft.testing.stopping import run_stoppable
from haft.values import replace

INJECTIONS: Final[Mapping[Fault, type[Injection]]] = {
    "deadline": Deadline,
    "kill": Kill,
    "full-disk": FullDisk,
    "no-memory": NoMemory,
    "partial-output": PartialOutput,
    "garbage": Garbage,
    "slow-pipes": SlowPipes,
    "no-network": NoNetwork,
    "host-killed": HostKilled,
}


async def run_with_fault(scenario: Scenario) -> Result:
    """Run a scenario that has a fault. Raises `Unfit` if the machine or the tool cannot have it."""
    fault = injection_of(scenario)
    if isinstance(fault, HostKilled):
        with World(scenario) as world:
            return await _with_killed_host(scenario, world, fault)
    if isinstance(fault, FullDisk):
        return await _with_full_disk(scenario)
    with World(scenario) as world:
        if isinstance(fault, NoNetwork):
            scenario = replace(scenario, network=False, grant={**scenario.grant, "network": False})
        return _judged(scenario, await observe(scenario, world, fault=fault), fault)


def injection_of(scenario: Scenario) -> Injection:
    """The fault of a scenario, with its options."""
    assert scenario.fault is not None
    return INJECTIONS[scenario.fault](scenario.fault_options)


def wrong_option(fault: Fault, options: Mapping[str, Any]) -> str | None:
    """What is wrong with the options of a fault; None if nothing is."""
    try:
        INJECTIONS[fault](options)
    except BadUsage as error:
        return error.message
    return None


def _judged(scenario: Scenario, observed: Observed, fault: Injection) -> Result:
    assert scenario.fault is not None
    fault.check()
    _check_enforced(observed, fault)
    expected = with_ending(scenario.expect, scenario.fault, scenario.fault_options, fault.spec)
    result = judged(replace(scenario, expect=expected), observed)
    if expected is not scenario.expect:
        noted = (_with_reason(each, scenario.fault) for each in result.mismatches)
        result = replace(result, mismatches=tuple(noted))
    if fault.happened:
        return replace(result, scenario=scenario)
    return replace(result, scenario=scenario, mismatches=(_never_happened(scenario, observed), *result.mismatches))


def _with_reason(mismatch: Mismatch, fault: Fault) -> Mismatch:
    """A mismatch that says where the expected end of the call comes from."""
    if mismatch.path not in ("expect.status", "expect.error"):
        return mismatch
    why = f"The scenario does not say how the call ends, so it must end as the fault {fault} says."
    return replace(mismatch, note=why)


def _check_enforced(observed: Observed, fault: Injection) -> None:
    """Raise `Unfit` if this machine did not enforce what the fault needs."""
    outcome = observed.outcome
    if isinstance(fault, NoNetwork) and "cannot close the network" in ((outcome["error"] or {}).get("message") or ""):
        raise Unfit("the network cannot be closed here: this machine allows no network namespaces")


def _never_happened(scenario: Scenario, observed: Observed) -> Mismatch:
    outcome = observed.outcome
    error = outcome["error"]
    end = outcome["status"] if error is None else f"{outcome['status']}: {error['code']}: {error['message']}"
    what = f"The fault {scenario.fault} did not happen, because the call ended before ({end})"
    return Mismatch("fault", scenario.fault, None, what)


# haft's own process is killed.


async def _with_killed_host(scenario: Scenario, world: World, fault: HostKilled) -> Result:
    """Make the call in another process, which is killed, and take from the next service what became of the run."""
    before = snapshot(world.workspace)
    end = await in_child(_call_until_killed, scenario, world)
    told = dict(end.sent)
    _raise_if_told(told)
    if (observed := told.get("observed")) is not None:
        return _judged(scenario, observed, fault)
    if end.code != -signal.SIGKILL:
        raise BadUsage(f"the process that makes the call ended by itself, with exit code {end.code}")
    fault.happened = True
    loading = loading_of(scenario)
    async with ToolService.open(
        world.workspace,
        home=world.state,
        environ=world.environ(),
        settings={**loading.settings, **scenario.settings},
        installed=False,
    ) as service:
        runs = [each for each in await service.runs.find() if each.parent is None]
    if not runs:
        message = "haft knows nothing of the run after it was killed"
        return Result(scenario, (Mismatch("fault", scenario.fault, None, message),))
    form = runs[0].outcome
    asked = told.get("asked", 0)
    observed = Observed(
        form, world.workspace, before, snapshot(world.workspace), asked=asked, is_repository=scenario.git
    )
    return _judged(scenario, observed, fault)


def _call_until_killed(send: Callable[[tuple[str, Any]], None], scenario: Scenario, world: World) -> None:
    fault = injection_of(scenario)
    assert isinstance(fault, HostKilled)
    approver = ScriptedApprover(scenario.approve)
    fault.before = lambda: send(("asked", len(approver.requests)))
    work = functools.partial(observe, scenario, world, approver=approver, fault=fault)
    _send_result(send, "observed", lambda: run_stoppable(work()))


# The disk is full.


async def _with_full_disk(scenario: Scenario) -> Result:
    told = dict((await in_child(_run_on_small_disk, scenario)).sent)
    _raise_if_told(told)
    if "result" not in told:
        raise BadUsage("the process that runs the scenario ended before it had a result")
    result: Result = told["result"]
    return result


def _run_on_small_disk(send: Callable[[tuple[str, Any]], None], scenario: Scenario) -> None:
    async def run() -> Result:
        fault = injection_of(scenario)
        assert isinstance(fault, FullDisk)
        with SmallDiskWorld(scenario) as world:
            fault.fill, fault.empty = world.fill, world.empty
            return _judged(scenario, await observe(scenario, world, fault=fault), fault)

    _send_result(send, "result", lambda: run_stoppable(run()))


def _send_result(send: Callable[[tuple[str, Any]], None], name: str, work: Callable[[], Any]) -> None:
    try:
        send((name, work()))
    except Unfit as error:
        send(("unfit", str(error)))
    except Exception as error:
        known = isinstance(error, HaftError | OSError)
        send(("failed", (str(error) if known else repr(error), getattr(error, "hint", None))))


def _raise_if_told(told: Mapping[str, Any]) -> None:
    """Raise what a process could not do."""
    if "unfit" in told:
        raise Unfit(told["unfit"])
    if "failed" in told:
        message, hint = told["failed"]
        raise BadUsage(message, hint=hint)
