"""The MCP servers of an open host: starts them, and asks them for their tools, resources and prompts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from haft.contracts import BadUsage, ToolFailed, near_miss
from haft.service.assembly import Host

SOURCE = "mcp"


class HostProviders:
    """The MCP servers of a host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def _source(self) -> Any:
        return self._host.discovery.source(SOURCE)

    def names(self) -> list[str]:
        """The names of the servers that are configured and not turned off."""
        self._source.find()
        return list(self._source.servers)

    async def describe(self, name: str, progress: Callable[[str], None] = lambda _line: None) -> list[str]:
        """Start a server if it does not run, and return the names of its tools. Raises `ToolFailed` if it does not
        start."""
        server = self._named(name)
        await server.describe(progress)
        return await self._tools(name)

    async def restart(
        self, name: str, progress: Callable[[str], None] = lambda _line: None, *, upgrade: bool = False
    ) -> list[str]:
        """End a server, start it again, and return the names of its tools. With `upgrade`, first install the newest
        version of its package that its command allows. Raises `ToolFailed` if it does not start."""
        server = self._named(name)
        await server.restart(progress, upgrade=upgrade)
        return await self._tools(name)

    def _named(self, name: str) -> Any:
        self._host.running()
        names = self.names()
        if name not in names:
            near = near_miss(name, names)
            hint = f"did you mean `{near}`?" if near else "`haft providers list` shows the MCP servers"
            raise BadUsage(f"there is no MCP server `{name}`", hint=hint)
        server = self._source.servers[name]
        if server.provider.problem is not None:
            raise ToolFailed(f"the MCP server `{name}` cannot be used: {server.provider.problem}")
        return server

    async def _tools(self, name: str) -> list[str]:
        await self._host.disk.renew()
        found = (one.spec for one in self._host.catalogue.listings(all=True))
        about = ((spec.name, spec.meta.get("mcp", {})) for spec in found)
        return [str(tool) for tool, each in about if each.get("server") == name and "tool" in each]
