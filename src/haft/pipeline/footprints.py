"""What a call reads and writes, from its arguments: see `Footprint`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from haft.contracts import NO_GRANTS, UNKNOWN, CallError, Decision, Footprint, Grants, Tool, Workspace


class Footprints:
    """Computes the footprints of a host's calls."""

    def __init__(self, workspace: Workspace, is_confined: Callable[[], Awaitable[bool]]) -> None:
        self._workspace = workspace
        self._is_confined = is_confined

    async def of(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        grants: Grants = NO_GRANTS,
        decision: Decision | None = None,
        workspace: Workspace | None = None,
        is_nested: bool = False,
    ) -> Footprint:
        """The footprint of a call."""
        spec = tool.spec
        if spec.hosting != "in-process" or spec.commands:
            return UNKNOWN
        reads = self._located(spec.reads if spec.reads is not None else spec.paths, arguments)
        if spec.effects.readonly:
            return Footprint(reads or None, ())
        writes = spec.writes if spec.writes is not None else spec.paths if spec.provenance == "builtin" else ()
        found = self._located(writes, arguments)
        return Footprint(reads, found) if found else UNKNOWN

    def _located(self, names: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[str, ...]:
        found = []
        for name in names:
            if isinstance(path := arguments.get(name), str):
                try:
                    found.append(self._workspace.locate(path))
                except (CallError, OSError):
                    return ()
        return tuple(found)
