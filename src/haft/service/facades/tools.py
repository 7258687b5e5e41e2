"""The tools of a host. They lie in memory: only loading one from a path waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from haft.contracts import Grants, Listing, grants_from
from haft.service.assembly import Host
from haft.toolsets import ToolLike, as_a_tool


class HostTools:
    """Called, it lists them."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __call__(self, *, all: bool = False, thread: str | None = None) -> list[Listing]:  # noqa: A002  as `--all`
        """The tools that can be called, in the service's thread or another; with `all`, also those that cannot, and
        why."""
        return self._host.catalogue.listings(all=all, thread=thread or self._host.principal.thread)

    def add(self, tool: ToolLike) -> Listing:
        """Take in another tool, as if handed over at the start."""
        return self._host.catalogue.add(as_a_tool(tool))

    def remove(self, name: str) -> None:
        """`UnknownTool` where there is none."""
        self._host.catalogue.remove(name)

    def watch(self) -> AsyncIterator[list[Listing]]:
        """The tools now, and again after every change."""
        return self._host.catalogue.watch(thread=self._host.principal.thread)

    async def look_again(self, name: str) -> Listing | None:
        """Look at the disk again because a tool is wanted that is not there, or is broken; the tool, where it is there
        now and can be called."""
        self._host.running()
        await self._host.disk.renew(name)
        return next((one for one in self() if one.spec.name == name), None)

    async def load(self, path: str, *, grants: Grants | Mapping[str, Any] | None = None) -> Listing:
        """Take in the tool at a path that no toolbox has, or find the one that has it. The network, variables and files
        to read that `grants` name are its own while it is asked what it is."""
        self._host.running()
        return await self._host.disk.load(path, self._host.thread, grants_from(grants))
