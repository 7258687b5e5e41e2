"""Makes the call of a scenario through a whole service, and compares what came of it."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from haft.contracts import BadUsage, Conditions, Grants, Listing, near_miss
from haft.service import ToolService
from haft.testing.calls.approving import ScriptedApprover
from haft.testing.calls.injection import Injection
from haft.testing.calls.loading import Loading
from haft.testing.calls.unguarded import unguard
from haft.testing.calls.world import World
from haft.testing.programs import ProgramStubs
from haft.testing.promises import broken_promise
from haft.testing.scenarios.comparing import Observed, mismatches
from haft.testing.scenarios.scenario import Result, Scenario, Unfit
from haft.testing.scenarios.snapshots import expectations, snapshot


async def observe(
    scenario: Scenario, world: World, *, approver: ScriptedApprover | None = None, fault: Injection | None = None
) -> Observed:
    """Make the call of a scenario in its world, and return what it did."""
    environ = world.environ()
    with contextlib.ExitStack() as around:
        stubs = around.enter_context(ProgramStubs(scenario.programs, world.programs, path=environ.get("PATH")))
        loading = loading_of(scenario)
        approver = approver or ScriptedApprover(scenario.approve)
        async with ToolService.open(
            world.workspace,
            home=world.state,
            environ=environ,
            approver=approver if fault is None else fault.answering(approver),
            settings={**_settings(loading, scenario, world), **({} if fault is None else fault.settings())},
            installed=False,
            conditions=Conditions(
                stubs.stand_ins,
                Grants(network=scenario.network, env=tuple(world.own_variables), read=tuple(loading.reads)),
                faults=fault,
                clock=None if fault is None else fault.clock,
            ),
        ) as service:
            if (why := await service.missing_conditions()) is not None:
                raise Unfit(why)
            name = await _load(service, loading, scenario)
            if fault is not None:
                fault.check(next((each.spec for each in service.tools(all=True) if each.spec.name == name), None))
            listing = service.catalogue.listing(name)
            if scenario.unguarded:
                if listing is None:  # Its MCP server has not started yet.
                    listing = await service.look_again(name)
                unguard(service, name)
            before = snapshot(world.workspace)
            outcome = await service.call(
                name,
                scenario.args,
                timeout=scenario.timeout,
                cwd=scenario.cwd,
                env=world.own_variables or None,
                config=scenario.config or None,
                grants=_grants(scenario),
            )
            if outcome.error is not None and outcome.error.code == "unknown-tool" != scenario.expect.error:
                raise _unknown_tool(service, name)
        after = snapshot(world.workspace)
        form, asked = outcome.to_json(), len(approver.requests)
        broken = None if listing is None else broken_promise(listing.spec, form)
        calls, problems = stubs.calls(), stubs.problems()
        unused = approver.unused if scenario.fault is None else 0  # A fault may end the call before it asks.
        return Observed(form, world.workspace, before, after, calls, asked, unused, problems, broken, scenario.git)


def judged(scenario: Scenario, observed: Observed) -> Result:
    """The result of a scenario whose call did this. The world must still exist."""
    found = mismatches(scenario.expect, observed)
    calls = tuple(observed.calls)
    changed = expectations(observed.workspace, observed.before, observed.after) if found else {}
    return Result(scenario, found, observed.outcome, program_calls=calls, workspace=observed.workspace, changed=changed)


def _settings(loading: Loading, scenario: Scenario, world: World) -> dict[str, Any]:
    """The settings of the service. Processes of plugins that start before a call get `config` from there."""
    settings = {**loading.settings, **scenario.settings}
    if scenario.mcp:
        servers = {each.name: each.provider(world.programs) for each in scenario.mcp}
        settings["providers"] = {**settings.get("providers", {}), **servers}
    if scenario.config:
        settings["config"] = {**settings.get("config", {}), **scenario.config}
    return settings


def _grants(scenario: Scenario) -> dict[str, Any]:
    network = {"network": True} if scenario.network else {}
    return {**network, **scenario.grant}


def loading_of(scenario: Scenario) -> Loading:
    """The tools that a scenario names: those in `load`, the tool itself if `tool` is a path, else what lies beside the
    scenario under the name of the tool."""
    loading = Loading()
    for path in scenario.load:
        loading.add(_placed(path, scenario))
    if "/" in scenario.tool:
        loading.add(_placed(scenario.tool, scenario))
    elif not scenario.load and (beside := _beside(scenario)) is not None:
        loading.add(beside)
    return loading


def _placed(path: str, scenario: Scenario) -> str:
    return os.path.normpath(os.path.join(scenario.directory, os.path.expanduser(path)))


def _beside(scenario: Scenario) -> str | None:
    """The tool in the folder of the scenario, or the one above: the folder itself if it is a plugin or a template, the
    configuration there, a file with the name of the tool, or a program with the name of the scenario's file."""
    own = os.path.basename(scenario.location.path).partition(".scenario.")[0]
    name = scenario.tool.removeprefix("tb__")
    for folder in (scenario.directory, os.path.dirname(scenario.directory)):
        if any(os.path.lexists(os.path.join(folder, each)) for each in ("agent_plugin.json", "tool.py")):
            return folder
        for each in ("haft.toml", "haft.json", ".mcp.json"):
            if os.path.lexists(os.path.join(folder, each)):
                return os.path.join(folder, each)
        try:
            entries = sorted(os.listdir(folder))
        except OSError:
            continue
        named = [os.path.join(folder, each) for each in entries if _is_named(each, name)]
        programs = [os.path.join(folder, each) for each in entries if _is_named(each, own)]
        if found := named or [each for each in programs if each.endswith(".py") or os.access(each, os.X_OK)]:
            return found[0]
    return None


def _is_named(entry: str, name: str) -> bool:
    stem = entry if "." not in entry else entry.rpartition(".")[0]
    return stem.replace("-", "_") == name.replace("-", "_") and ".scenario." not in entry


def _unknown_tool(service: ToolService, name: str) -> BadUsage:
    names = sorted(each.spec.name for each in service.tools() if each.spec.provenance != "builtin")
    near = near_miss(name, names)
    known = (
        f"did you mean `{near}`?" if near else f"the tools loaded are {', '.join(names)}" if names else "none is loaded"
    )
    return BadUsage(
        f"there is no tool called `{name}`; {known}",
        hint="write the path of its file, or of the configuration that names it, under `load`",
    )


async def _load(service: ToolService, loading: Loading, scenario: Scenario) -> str:
    """Load the tools, and return the name of the scenario's tool."""
    loaded = [await service.load(path) for path in loading.files]
    if "/" not in scenario.tool:
        return scenario.tool
    path = _placed(scenario.tool, scenario)
    found: dict[str, Listing] = {}
    for each in (*loaded, *service.tools(all=True)):
        if each.spec.origin == path or each.spec.origin.startswith(f"{path.rstrip('/')}/"):
            found[each.spec.name] = each
    if len(found) != 1:
        names = ", ".join(f"`{name}`" for name in found) or "none"
        raise BadUsage(
            f"{scenario.tool} must have one tool, and has {names}",
            hint="write the path under `load`, and the name of the tool under `tool`",
        )
    return next(iter(found))
