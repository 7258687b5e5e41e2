"""Makes the calls of a fuzz run: each in a layer that is dropped, in a workspace, a state home and a home directory
that exist only for the run. No call has the network, and nothing that a person granted or approved elsewhere counts.

Tools whose process outlives a call, or that run elsewhere, cannot have a layer for each call. Their calls work in the
temporary workspace itself, which is made anew after each call that changed it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from haft.contracts import NO_GRANTS, BadUsage, Listing, Outcome, ToolSpec
from haft.service import SyncToolService, ToolService, unknown_tool
from haft.testing.calls.observing import loading_of
from haft.testing.calls.unguarded import unguard
from haft.testing.calls.world import World, remove_tree, write_files
from haft.testing.scenarios.scenario import GivenFile, Scenario
from haft.testing.scenarios.snapshots import FoundFile, differences, snapshot
from haft.values import dataclass

SAMPLES: Final[Mapping[str, GivenFile]] = {
    "notes.txt": GivenFile(b"one\ntwo\nthree\n"),
    "data.json": GivenFile(b'{"name": "value", "list": [1, 2, 3]}\n'),
    "empty.txt": GivenFile(b""),
    "bytes.bin": GivenFile(bytes(range(256))),
    "folder/inner.txt": GivenFile(b"inner\n"),
}
"""The files in the temporary workspace. Texts among the arguments are sometimes their names."""
NAMES: Final = (*SAMPLES, "folder")
_ELSEWHERE: Final = "it works on another machine, and haft cannot take back what it does there"
_SETTINGS: Final = {"approval.expires_seconds": 0.0, "plugin_policy.allow_bash_tools": True}


@dataclass(frozen=True)
class Called:
    """What one call did."""

    outcome: Mapping[str, Any]
    """The outcome as JSON."""
    changed: tuple[str, ...]
    """The paths that the call changed."""


class Calls:
    """An open service with one tool, for as long as the tool is fuzzed."""

    def __init__(self, tool: str, load: Sequence[str], *, timeout: float, really: bool = False) -> None:
        """`tool` is the name of a tool, or "" for the only one in `load`. `load` are absolute paths of tools or of
        configuration files. Without `really`, a tool that the sandbox does not hold is refused."""
        self._scenario = Scenario(tool, load=tuple(load), files=SAMPLES)
        self._timeout = timeout
        self._really = really
        self._has_layers = True
        self._world: World | None = None
        self._remote: list[str] = []
        """The MCP servers on other machines that are left out."""
        self._before: Mapping[str, FoundFile] = {}
        self._service: ToolService | None = None
        self._blocking: SyncToolService | None = None
        self.spec: ToolSpec
        """The tool as it describes itself."""

    def __enter__(self) -> Self:
        self._world = World(self._scenario).__enter__()
        self._before = snapshot(self._world.workspace)
        try:
            self._open(approves=False)
            if self.spec.provenance != "builtin" and self.spec.hosting != "per-call":
                self._without_layers()
        except BaseException:
            self.close()
            raise
        return self

    def _open(self, *, approves: bool) -> None:
        assert self._world is not None
        loading = loading_of(self._scenario)
        providers = loading.settings.get("providers", {})
        self._remote = [] if self._really else [key for key, each in providers.items() if "url" in each]
        if self._remote:  # They are not even asked for their tools.
            kept = {key: each for key, each in providers.items() if key not in self._remote}
            loading.settings["providers"] = kept
        self._service = ToolService.open(
            self._world.workspace,
            home=self._world.state,
            environ=self._world.environ(),
            approver=(lambda _request: True) if approves else None,
            settings={**loading.settings, **_SETTINGS},
            installed=False,
        )
        self._blocking = SyncToolService(self._service).__enter__()
        for path in loading.files:
            self._blocking.load(path)
        self.spec = self._listing(self._scenario.tool).spec
        name = self.spec.name
        if not self._really and (why := self._why_not_held()) is not None:
            raise _not_held(name, why)
        self._blocking._on_loop(lambda: unguard(self._service, name))  # type: ignore[arg-type]

    def _listing(self, name: str) -> Listing:
        """The tool with this name; for "", the only one that was loaded."""
        assert self._blocking is not None
        found = [each for each in self._blocking.tools(all=True) if each.spec.name == name]
        if name and not found and self._blocking.look_again(name):  # Starts the MCP server that may have the tool.
            return self._listing(name)
        if not name:
            found = [each for each in self._blocking.tools(all=True) if each.spec.provenance != "builtin"]
            if len(found) != 1:
                path = self._scenario.load[0]
                names = ", ".join(f"`{each.spec.name}`" for each in found) or "no tool"
                raise BadUsage(f"{path} has {names}", hint=f"`haft tools fuzz NAME --load {path}` takes one of them")
        if not found:
            if any(name.startswith(f"mcp__{each}__") for each in self._remote):
                raise _not_held(name, _ELSEWHERE)
            known = self._blocking.tools(all=True)
            server = next((each for each in known if each.reason and name.startswith(f"{each.spec.name}__")), None)
            if server is not None:
                raise BadUsage(f"`{name}` cannot be called: {server.reason}")
            raise unknown_tool(name, known)
        listing = max(found, key=lambda each: each.enabled)
        if not listing.enabled:
            raise BadUsage(f"`{listing.spec.name}` cannot be called: {listing.why_not}")
        return listing

    def _why_not_held(self) -> str | None:
        """Why calls of the tool could change something outside of the temporary workspace; None if they cannot."""
        spec = self.spec
        assert self._service is not None
        assert self._blocking is not None
        if spec.hosting == "remote":
            return _ELSEWHERE
        if spec.delegates or (spec.kind == "builtin" and spec.name == "task"):
            return "its work is done by other calls, and by models that cost money"
        if spec.provenance == "builtin" and spec.hosting == "in-process":
            return None
        if spec.hosting == "in-process":
            return "it runs in haft's own process, without a sandbox"
        if spec.grants != NO_GRANTS:
            return "its configuration grants it more than the workspace"
        if not self._blocking._wait(self._service._sandbox.ready()).namespaces:
            return "this machine has no sandbox that would hold it"
        return None

    def _without_layers(self) -> None:
        """Go on without a layer for each call."""
        self._has_layers = False
        self._close_service()
        self._open(approves=True)

    def call(self, arguments: Mapping[str, Any], timeout: float | None = None) -> Called:
        """Make one call, and take back what it changed. Raises `BadUsage` if the tool cannot be called here."""
        outcome = self._call(arguments, timeout)
        if self._has_layers and _is_unanswered(outcome):  # There are no layers on this machine.
            self._without_layers()
            outcome = self._call(arguments, timeout)
        error = outcome.error
        if error is not None and error.code in ("rejected", "bad-config", "bad-usage", "unknown-tool"):
            raise BadUsage(f"`{self.spec.name}` cannot be called: {error.message}", hint=error.hint)
        return Called(outcome.to_json(), self._take_back(outcome))

    def _call(self, arguments: Mapping[str, Any], timeout: float | None) -> Outcome:
        assert self._blocking is not None
        run = self._blocking.call(
            self.spec.name,
            arguments,
            timeout=timeout or self._timeout,
            trial=self._has_layers,
            uses_cache=False,
        )
        try:
            return run.wait()
        except BaseException:
            run.cancel()
            raise

    def _take_back(self, outcome: Outcome) -> tuple[str, ...]:
        assert self._blocking is not None
        assert self._world is not None
        changed = tuple(each.path for each in outcome.changes.files)
        if outcome.changes.state == "held":
            self._blocking.drop(outcome.run_id).wait()
            return changed
        found = differences(self._before, snapshot(self._world.workspace))
        if found:
            self._renew()
        return tuple(found) or changed

    def _renew(self) -> None:
        """Bring the workspace back to its first state."""
        assert self._world is not None
        for entry in os.scandir(self._world.workspace):
            if entry.is_dir(follow_symlinks=False):
                remove_tree(entry.path)
            else:
                os.unlink(entry.path)
        write_files(self._world.workspace, SAMPLES)

    def _close_service(self) -> None:
        service, self._blocking = self._blocking, None
        if service is not None:
            service.close()

    def close(self) -> None:
        """Close the service, and remove everything that the run made."""
        try:
            self._close_service()
        finally:
            world, self._world = self._world, None
            if world is not None:
                world.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _not_held(name: str, why: str) -> BadUsage:
    return BadUsage(
        f"`{name}` was not fuzzed: {why}", hint="`--really` calls it with arguments made by chance nevertheless"
    )


def _is_unanswered(outcome: Outcome) -> bool:
    """Whether the call needed an approval that nobody could give."""
    decision = outcome.decision
    return outcome.status == "rejected-by-user" and decision is not None and decision.by in ("nobody", "expiry")
