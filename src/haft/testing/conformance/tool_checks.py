"""Checks of single tools that call them: `haft tools check --conformance`.

The calls of a tool have a workspace of their own, which is empty and removed afterwards, and neither the network nor
any grant. So they reach only files that everything on this machine may read. Tools that work elsewhere, or whose own
process has grants beyond its workspace, are not called.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

from haft.contracts import BadUsage, Listing, Outcome, ToolSpec
from haft.schema import shortened
from haft.service import ToolService
from haft.sources.checks import Finding, Report
from haft.testing.calls.loading import Loading
from haft.testing.calls.world import World
from haft.testing.conformance.sample_arguments import sample_arguments
from haft.testing.scenarios import Scenario

CALL_SECONDS: Final = 30.0
"""The deadline of a call. Nothing that a tool does with a few short arguments in an empty workspace takes so long."""
_TRACES: Final = ("Traceback (most recent call last)", "unbound variable", "syntax error", "panic:", "UnhandledPromise")
_RAISING: Final = ("python", "agent-studio", "mcp")
"""Kinds of tools that fail by raising an exception, whose text is the message."""
_FIRST_SIGNAL: Final = 129
_LAST_SIGNAL: Final = 159


async def check_tools(path: str) -> list[Report]:
    """The reports about the tools at a path: a tool of any format, a folder of tools, or a configuration file. Raises
    `BadUsage` if there is no tool."""
    loading = Loading()
    loading.add(os.path.abspath(path))
    first = await _listed(loading)
    second = {each.spec.name: each for each in await _listed(loading)}
    if not first:
        raise BadUsage(f"{path} has no tools")
    return [await _checked(each, second.get(each.spec.name), loading, path) for each in first]


async def _listed(loading: Loading) -> list[Listing]:
    """The tools, described in a state home that knows nothing yet."""
    with World(Scenario("")) as world:
        async with _opened(world, loading) as service:
            own = {each.spec.name for each in service.tools(all=True) if each.spec.provenance == "builtin"}
            for path in loading.files:
                await service.load(path)
            for server in loading.settings.get("providers", ()):
                await service._host.disk.renew(f"mcp__{server}__tools")
            listed = service.tools(all=True)
            return [each for each in listed if each.spec.name not in own and each.spec.provenance != "builtin"]


def _opened(world: World, loading: Loading) -> ToolService:
    return ToolService.open(
        world.workspace,
        home=world.state,
        environ=world.environ(),
        approver=lambda _request: True,
        settings=loading.settings,
        installed=False,
    )


async def _checked(listing: Listing, again: Listing | None, loading: Loading, path: str) -> Report:
    spec = listing.spec
    findings = list(_stability(listing, again))
    if (reason := _why_not_called(listing)) is not None:
        findings.append(Finding("tool-not-called", reason))
    else:
        findings += [each async for each in _faults_of_calls(spec, loading)]
    once = {each.code: each for each in reversed(findings)}
    return Report(path, spec.kind, spec.name, list(reversed(once.values())))


def _stability(listing: Listing, again: Listing | None) -> Iterator[Finding]:
    spec = listing.spec
    if again is None:
        yield Finding("description-unstable", "it was there when haft looked first, and not when haft looked again")
        return
    for part in ("description", "input_schema", "output_schema", "effects"):
        if getattr(spec, part) != getattr(again.spec, part):
            yield Finding(
                "description-unstable",
                f"two descriptions differ in `{part}`",
                "print the same text each time: no times, no random order, nothing from the environment",
            )
            return


def _why_not_called(listing: Listing) -> str | None:
    if not listing.enabled:
        return f"it was not called: {listing.why_not}"
    grants = listing.spec.grants
    if listing.spec.hosting == "remote":
        return "it was not called, because it works on another machine"
    if grants.network or grants.env or grants.read or any(not each.startswith(".") for each in grants.write):
        return "it was not called, because its process has grants"
    return None


async def _faults_of_calls(spec: ToolSpec, loading: Loading) -> AsyncIterator[Finding]:
    with World(Scenario(spec.name)) as world:
        async with _opened(world, loading) as service:
            for path in loading.files:
                await service.load(path)
            for arguments in sample_arguments(spec.input_schema):
                outcome = await service.call(spec.name, arguments, timeout=CALL_SECONDS)
                for each in _faults(spec, arguments, outcome):
                    yield each
                    if each.code == "call-hangs":
                        return  # The others would probably hang too.


def _faults(spec: ToolSpec, arguments: Mapping[str, Any], outcome: Outcome) -> Iterator[Finding]:
    """What a call with valid arguments must not do, whether it is done or fails."""
    with_these = f"with {shortened(str(dict(arguments)), 120)}"
    code = None if outcome.error is None else outcome.error.code
    if code == "timed-out":
        hint = "read only the input that you were given, and limit every wait"
        yield Finding("call-hangs", f"{with_these}, it did not end within {CALL_SECONDS:g} s", hint)
        return
    if outcome.exit_code is not None and _FIRST_SIGNAL <= outcome.exit_code <= _LAST_SIGNAL:
        yield Finding("call-crashes", f"{with_these}, a signal ended it: exit code {outcome.exit_code}")
    said = f"{outcome.output}\n{outcome.stderr}\n{'' if outcome.error is None else outcome.error.message}"
    has_traces = outcome.status == "error" and spec.kind not in _RAISING
    if trace := next((each for each in _TRACES if has_traces and each in said), None):
        hint = "check the arguments, and say on stderr what is wrong with them"
        yield Finding("call-traceback", f"{with_these}, it failed with an error of its own code: {trace}", hint)
    if outcome.status == "done" and outcome.ended_children:
        left = shortened(outcome.ended_children[0].command, 80)
        yield Finding("call-leaves-processes", f"{with_these}, it left `{left}` running", "wait for it before you end")
    if spec.effects.readonly and (outcome.changes.files or code == "sandbox-denied"):
        what = outcome.changes.files[0].path if outcome.changes.files else "a file"
        yield Finding("readonly-writes", f"it claims that it only reads, and {with_these}, it wrote {what}")
