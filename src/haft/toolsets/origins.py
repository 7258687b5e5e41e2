"""Finds the tools that exported executables stand for: tools of this host, or of another workspace.

A tool of another workspace is found with that workspace's configuration, trust, plugins and user parameters. A call of
the tool runs in this workspace, under this host's rules.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Protocol

from haft.contracts import BadConfig, DescribeLauncher, DiscoveredTool, HaftError, Listing, ToolSpec, clean_tool_name
from haft.registry import Catalogue
from haft.sources.amp_toolbox import Export


class Elsewhere(Protocol):
    """The tools of another workspace."""

    def fill(self, catalogue: Catalogue) -> bool: ...

    def is_current(self, listing: Listing) -> bool: ...

    async def renew(self, catalogue: Catalogue, launcher: DescribeLauncher) -> None: ...

    async def close(self) -> None: ...


class Origins:
    """Finds the tools that exported executables stand for. `here` returns this host's catalogue; None before there is
    one."""

    def __init__(
        self, here: Callable[[], Catalogue | None], opened: Callable[[str], tuple[Elsewhere, Catalogue]]
    ) -> None:
        """`opened` opens another workspace, and returns it with a catalogue for its tools."""
        self.are_unasked = False
        """Whether another workspace has tools that are not described yet."""
        self._here = here
        self._opened = opened
        self._others: dict[str, tuple[Elsewhere, Catalogue]] = {}

    def __call__(self, export: Export) -> DiscoveredTool:
        try:
            catalogue = self._here() if export.workspace is None else self._other(export.workspace)[1]
            tool = None if catalogue is None else catalogue.peek(export.name)
            listings = [] if catalogue is None else catalogue.listings(all=True)
            listing = next((one for one in listings if one.spec.name == export.name), None)
            if listing is not None and not listing.enabled:
                return DiscoveredTool(listing.spec, None, listing.state, listing.reason)
        except (HaftError, OSError) as error:
            return _missing(export, error.message if isinstance(error, HaftError) else str(error))
        if tool is None:
            where = f" in {export.workspace}" if export.workspace is not None else ""
            return _missing(export, f"there is no tool `{export.name}`{where} any more: export it again")
        return DiscoveredTool(tool.spec, tool)

    def is_current(self, export: Mapping[str, str | None]) -> bool:
        """Whether the tool that an exported executable stands for has not changed since the last refresh."""
        workspace, name = export["workspace"], export["name"]
        if workspace is None or workspace not in self._others:
            return True
        discovery, catalogue = self._others[workspace]
        listing = catalogue.listing(name or "")
        return listing is not None and discovery.is_current(listing)

    async def renew(self, launcher: DescribeLauncher) -> bool:
        """Refresh the tools of other workspaces. Returns True if any of these tools have changed."""
        before = [catalogue.version for _discovery, catalogue in self._others.values()]
        self.are_unasked = False
        for discovery, catalogue in self._others.values():
            await discovery.renew(catalogue, launcher)
        return before != [catalogue.version for _discovery, catalogue in self._others.values()]

    async def close(self) -> None:
        """Close the other workspaces."""
        for discovery, _catalogue in self._others.values():
            await discovery.close()

    def _other(self, workspace: str) -> tuple[Elsewhere, Catalogue]:
        known = self._others.get(workspace)
        if known is None:
            if not os.path.isdir(workspace):
                raise BadConfig(f"the workspace {workspace}, which configures it, does not exist")
            discovery, catalogue = known = self._others[workspace] = self._opened(workspace)
            self.are_unasked |= discovery.fill(catalogue)
        return known


def _missing(export: Export, why: str) -> DiscoveredTool:
    spec = ToolSpec(
        name=clean_tool_name(export.name),
        kind="amp-toolbox",
        description="",
        input_schema={"type": "object", "properties": {}},
        provenance="user",
        hosting="per-call",
    )
    return DiscoveredTool(spec, None, "broken", why)
