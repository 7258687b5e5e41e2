"""The tools of a host. They are in memory, so that only loading a tool from a path takes time."""

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
        """The tools that can be called, in the service's thread or another. With `all`, also the other tools, each with
        the reason why it cannot be called."""
        return self._host.catalogue.listings(all=all, thread=thread or self._host.principal.thread)

    def add(self, tool: ToolLike) -> Listing:
        """Add a tool, as if it was passed to `open`."""
        return self._host.catalogue.add(as_tool(tool))

    def remove(self, name: str) -> None:
        """Remove a tool; `UnknownTool` if there is none of this name."""
        self._host.catalogue.remove(name)

    def watch(self) -> AsyncIterator[list[Listing]]:
        """Yield the list of tools now, and again after every change."""
        return self._host.catalogue.watch(thread=self._host.principal.thread)

    async def look_again(self, name: str) -> Listing | None:
        """Discover a missing or broken tool again, by name, and return it if it can be called now; else None."""
        self._host.running()
        await self._host.disk.renew(name)
        return next((one for one in self() if one.spec.name == name), None)

    async def load(self, path: str, *, grants: Grants | Mapping[str, Any] | None = None) -> Listing:
        """Load the tool at a path outside all toolboxes, or find the loaded tool of that path. While haft describes the
        tool, it has the network, the variables and the readable files of `grants`."""
        self._host.running()
        return await self._host.disk.load(path, self._host.thread, grants_from(grants))
