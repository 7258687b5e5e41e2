"""The tools of a host. All of them are in memory: only loading a tool from a path, and searching for a tool again, take
time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from haft.contracts import Grants, Listing, grants_from
from haft.service.assembly import Host
from haft.toolsets import ToolLike, as_tool


class HostTools:
    """The tools of a host. Calling this object lists them."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __call__(self, *, all: bool = False, thread: str | None = None) -> list[Listing]:  # noqa: A002  as `--all`
        """The tools that can be called in `thread`, by default the service's thread. With `all`, also the tools that
        cannot be called, each with the reason."""
        return self._host.catalogue.listings(all=all, thread=thread or self._host.principal.thread)

    def add(self, tool: ToolLike) -> Listing:
        """Add a tool, as if it had been passed to `ToolService.open`."""
        return self._host.catalogue.add(as_tool(tool))

    def remove(self, name: str) -> None:
        """Remove the tool with this name. Raises `UnknownTool` if there is no such tool."""
        self._host.catalogue.remove(name)

    def watch(self) -> AsyncIterator[list[Listing]]:
        """Yield the list of tools now, and again after every change."""
        return self._host.catalogue.watch(thread=self._host.principal.thread)

    async def look_again(self, name: str) -> Listing | None:
        """Search again for a missing or broken tool of this name. Returns the tool if it can be called now, else
        None."""
        self._host.running()
        await self._host.disk.renew(name)
        return next((one for one in self() if one.spec.name == name), None)

    async def load(self, path: str, *, grants: Grants | Mapping[str, Any] | None = None) -> Listing:
        """Load the tool at a path outside all toolboxes. If it is loaded already, return it as it is. While haft
        describes the tool, the tool has the network, the variables and the readable files of `grants`."""
        self._host.running()
        return await self._host.disk.load(path, self._host.thread, grants_from(grants))
