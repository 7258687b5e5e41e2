"""The source of MCP tools, with the servers that the configuration of a host names. Most hosts have no server, so the
modules that use servers are imported only if there is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from haft.contracts import NO_SECRETS, DescribeLauncher, DiscoveredTool, Secrets, ToolSpec
from haft.sources import ProgressCallback, ToolSource
from haft.toolsets.formats import Host
from haft.toolsets.providers.finding import provider_places, providers_of, start_trust

if TYPE_CHECKING:
    from haft.sources.mcp import Completion, CompletionTool, McpServer, McpServers, Provider


class ProviderSource(ToolSource):
    """The tools of the MCP servers of one workspace and its user."""

    name = "mcp"

    def __init__(self, host: Host) -> None:
        self._host = host
        self._opened: McpServers | None = None

    @property
    def _has_servers(self) -> bool:
        return self._opened is not None or bool(providers_of(self._host))

    @property
    def opened(self) -> McpServers:
        """The source that uses the servers."""
        if self._opened is None:
            from haft.sources.mcp import McpServers
            from haft.toolsets.providers.packages import PackagedServers

            host = self._host
            packages = PackagedServers(host.config, host.state_home, host.env, host.workspace)
            self._opened = McpServers(host, lambda: providers_of(host), start_trust(host), packages, self._is_active)
        return self._opened

    def _is_active(self, provider: Provider) -> bool:
        return provider.skill is None or provider.skill[1] in self._host.activations.anywhere()

    @property
    def servers(self) -> Mapping[str, McpServer]:
        """All configured servers, by name, as they were found last."""
        return self.opened.servers

    async def listed_by(self, kind: str) -> list[dict[str, Any]]:
        """What all usable servers offer of a kind: `resources`, `templates` or `prompts`."""
        return await self.opened.listed_by(kind) if self._has_servers else []

    def left_out(self, kind: str) -> list[str]:
        """What the last list of this kind left out, and why."""
        return [] if self._opened is None else self._opened.left_out(kind)

    def completion(self, server: str, params: Mapping[str, Any]) -> tuple[Completion, CompletionTool]:
        """The completion that these parameters of `completion/complete` want of a server, and the tool that asks it."""
        return self.opened.completion(server, params)

    async def describe_new(self) -> None:
        """Ask all servers for their tools whose tools are not known."""
        if self._has_servers:
            await self.opened.describe_new()

    def find(self) -> Iterable[DiscoveredTool]:
        return self.opened.find() if self._has_servers else ()

    async def refresh(
        self, launcher: DescribeLauncher, progress: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool] | None:
        return await self.opened.refresh(launcher, progress, retry_name=retry_name) if self._has_servers else ()

    async def find_unlisted(self, name: str) -> None:
        if name.startswith("mcp__") and self._has_servers:
            await self.opened.find_unlisted(name)

    def places(self) -> Iterable[str]:
        return provider_places(self._host)

    def due(self) -> bool:
        return self._opened is not None and self._opened.due()

    def cure(self, spec: ToolSpec) -> str:
        return self.opened.cure(spec)

    @property
    def secrets(self) -> Secrets:
        return NO_SECRETS if self._opened is None else self._opened.secrets

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
