"""The source of MCP tools, with the servers that the configuration of a host names."""

from __future__ import annotations

from haft.sources.mcp import McpServers
from haft.toolsets.formats import Host
from haft.toolsets.providers.finding import provider_places, providers_of, start_trust
from haft.toolsets.providers.packages import PackagedServers


class ProviderSource(McpServers):
    """The tools of the MCP servers of one workspace and its user."""

    def __init__(self, host: Host) -> None:
        super().__init__(
            host,
            lambda: providers_of(host),
            start_trust(host),
            PackagedServers(host.config, host.state_home, host.env, host.workspace),
            lambda: provider_places(host),
        )
