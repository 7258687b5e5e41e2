"""The source of MCP tools in one workspace: all configured servers. Listing tools starts no server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import NO_SECRETS, BadUsage, DescribeLauncher, DiscoveredTool, HaftError, Secrets, ToolSpec
from haft.sources.mcp import definitions, texts
from haft.sources.mcp.completions import Completion, CompletionTool, completion_of
from haft.sources.mcp.names import listed_name, server_of
from haft.sources.mcp.offers import shown_offer
from haft.sources.mcp.provider import Provider, ServerPackages, StartTrust
from haft.sources.mcp.remote.logins import login_secrets
from haft.sources.mcp.server import McpServer
from haft.sources.mcp.server_log import log_path
from haft.sources.mcp.tool import McpTool, prompt_tool, resource_tool
from haft.sources.port import ProgressCallback, SourceHost, ToolSource

if TYPE_CHECKING:
    import asyncio


BACKGROUND_SECONDS: Final = 3.0
"""How long a host must be open before it starts servers that were never asked for their tools. Most commands end
earlier."""
MOST_AT_ONCE: Final = 4
"""How many servers are started at the same time in the background."""
RETRY_SECONDS: Final = 300.0
"""How long haft waits before it starts a server again for nothing else than its list of tools."""


class McpServers(ToolSource):
    """The tools of all configured MCP servers."""

    name = "mcp"

    def __init__(
        self,
        host: SourceHost,
        providers: Callable[[], Sequence[Provider]],
        trust: StartTrust | None = None,
        packages: ServerPackages | None = None,
        is_active: Callable[[Provider], bool] = lambda _provider: True,
    ) -> None:
        """`providers` reads the configured servers. `is_active` says whether a server may be needed: the server of a
        skill is, if the skill is active in any thread."""
        self._is_active = is_active
        self._host = host
        self._providers = providers
        self._trust = trust
        self._packages = packages
        self._servers: dict[str, McpServer] = {}
        self._gone: list[McpServer] = []
        """Servers that are to be ended, because the configuration no longer names them."""
        self._login_secrets = NO_SECRETS
        self._why_not: dict[str, str | None] = {}
        """Why each server may not start, when that was last asked; None if it may."""
        self._opened_at = time.monotonic()
        self._background: asyncio.Task[None] | None = None
        self._tried: dict[str, float] = {}
        self._found: dict[str, tuple[Any, list[DiscoveredTool]]] = {}
        """The tools of each server, and what they were made from."""
        self._left_out: dict[str, list[str]] = {}
        self._reading = resource_tool(self.usable)
        self._prompting = prompt_tool(self.usable)

    @property
    def servers(self) -> Mapping[str, McpServer]:
        """All configured servers, by name."""
        return self._servers

    def usable(self) -> dict[str, McpServer]:
        """The servers that may start."""
        return {
            name: each
            for name, each in self._servers.items()
            if each.provider.problem is None and self._why_not.get(name) is None
        }

    def _why_off(self) -> str | None:
        """Why no server may start, because all MCP tools are disabled; None if they are not."""
        disabled = self._host.settings.get("tools.disable") or ()
        return "MCP tools disabled" if {"mcp:*", "*"} & set(disabled) else None

    def find(self) -> Iterable[DiscoveredTool]:
        self._read_providers()
        return list(self._listed())

    def _read_providers(self) -> None:
        """Read the configuration again. Servers that are no longer configured as they were are ended later."""
        wanted = {each.name: each for each in self._providers()}
        for name in [name for name, each in self._servers.items() if wanted.get(name) != each.provider]:
            self._gone.append(self._servers.pop(name))
        self._servers = {name: self._servers.get(name) or self._server(each) for name, each in wanted.items()}
        for each in self._servers.values():
            each.kept.reload()
        self._why_not = {
            name: each.why_not_start() for name, each in self._servers.items() if each.provider.problem is None
        }
        if self._servers:
            self._login_secrets = login_secrets(self._host.state_home)

    def _server(self, provider: Provider) -> McpServer:
        host = self._host
        return McpServer(
            provider,
            definitions.ServerDefinitions(host.definitions, provider),
            host.workspace,
            log_path(host.state_home, provider.name),
            host.sessions,
            self._packages,
            self._trust,
            host.state_home,
            self._tell_host,
        )

    async def _tell_host(self) -> None:
        await self._host.renew()

    def _listed(self) -> Iterator[DiscoveredTool]:
        names: dict[str, tuple[str, DiscoveredTool]] = {}
        for server in self._servers.values():
            for found in self._tools_of(server):
                if found.tool is None:
                    yield found
                    continue
                holder, first = names.setdefault(found.spec.name, (server.name, found))
                if first is found:
                    yield found
                else:
                    tool = texts.line(found.spec.meta["mcp"]["tool"], 100)
                    why = f"the tool `{tool}` would have the same name as another tool of the MCP server `{holder}`"
                    yield DiscoveredTool(found.spec, None, "duplicate", why)
        if self.usable():
            yield DiscoveredTool(self._reading.spec, self._reading)
            yield DiscoveredTool(self._prompting.spec, self._prompting)

    def _tools_of(self, server: McpServer) -> Sequence[DiscoveredTool]:
        provider = server.provider
        bare = definitions.bare_spec(provider)
        if (why := self._why_off()) is not None and server.known is None:
            return [DiscoveredTool(bare, None, "disabled", why)]
        if provider.problem is not None:
            return [DiscoveredTool(bare, None, "broken", provider.problem)]
        if (why := self._why_not.get(server.name)) is not None:
            return [DiscoveredTool(bare, None, "changed", why)]
        known = server.known
        if known is None:
            why = (
                f"haft has not asked this MCP server for its tools yet: `haft providers restart {provider.name}`, or"
                f" call a tool `{listed_name(provider.name)}__TOOL`"
            )
            return [DiscoveredTool(bare, None, "inactive", why)]
        if "problem" in known:
            cure = known.get("cure") or f"try again: `haft providers restart {provider.name}`"
            why = f"{known['problem']}; {cure}"
            return [DiscoveredTool(bare, None, "unreachable", why)]
        before = self._found.get(server.name)
        if before is None or before[0] != (server, known):
            self._found[server.name] = before = ((server, known), list(_described(server, known)))
        return before[1]

    async def refresh(
        self, launcher: DescribeLauncher, progress: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool] | None:
        self._read_providers()
        await self._end_gone()
        self._describe_later()
        return list(self._listed())

    async def _end_gone(self) -> None:
        while self._gone:
            await self._gone.pop().end("was removed from the configuration, or changed there")

    async def find_unlisted(self, name: str) -> None:
        """Start the server that a call names, if its tools are not known yet, or if it does not run and may have other
        tools by now."""
        self._read_providers()
        found = server_of(name, self._servers)
        if self._host.sessions is None or found is None or self._why_off() or self._why_not.get(found) is not None:
            return
        server = self._servers[found]
        known = server.known
        if known is not None and "problem" not in known:
            if server.connection is not None or not self._is_time(server):
                return
            self._tried[server.name] = time.monotonic()
        with contextlib.suppress(HaftError):  # The listing says what is wrong.
            await server.describe()

    def _is_time(self, server: McpServer) -> bool:
        """Whether a server was not started for nothing lately."""
        return time.monotonic() - self._tried.get(server.name, -RETRY_SECONDS) >= RETRY_SECONDS

    def _describe_later(self) -> None:
        """Start the servers whose tools are not known, in the background, if this host is open for long."""
        import asyncio

        is_running = self._background is not None and not self._background.done()
        if self._host.sessions is None or is_running or time.monotonic() - self._opened_at < BACKGROUND_SECONDS:
            return
        if wanted := self._undescribed():
            self._background = asyncio.create_task(self._describe_all(wanted))

    def _undescribed(self) -> list[McpServer]:
        if self._why_off() is not None:
            return []
        return [
            each
            for each in self.usable().values()
            if (each.known is None or "problem" in each.known)
            and self._is_active(each.provider)
            and self._is_time(each)
        ]

    async def describe_new(self) -> None:
        """Ask all servers for their tools whose tools are not known, at once. Errors are in the listing."""
        self._read_providers()
        await self._describe_all(self._undescribed())

    async def _describe_all(self, servers: Sequence[McpServer]) -> None:
        import asyncio

        slots = asyncio.Semaphore(MOST_AT_ONCE)

        async def one(server: McpServer) -> None:
            async with slots:
                self._tried[server.name] = time.monotonic()
                with contextlib.suppress(HaftError):
                    await server.describe()

        await asyncio.gather(*(one(each) for each in servers), return_exceptions=True)
        if servers:
            with contextlib.suppress(Exception):
                await self._host.renew()

    async def listed_by(self, kind: str) -> list[dict[str, Any]]:
        """What all usable servers offer of a kind: `resources`, `templates` or `prompts`, as MCP writes it, each with
        the name of its server under `server`. Starts the servers that are known to offer it. A server that fails is
        left out, and so is an offer that cannot be shown: see `left_out`."""
        import asyncio

        capability = "resources" if kind == "templates" else kind
        servers = [each for each in self.usable().values() if capability in (each.known or {}).get("capabilities", ())]
        found = await asyncio.gather(*(each.listed(kind) for each in servers), return_exceptions=True)
        shown: list[dict[str, Any]] = []
        left_out: list[str] = []
        for server, listed in zip(servers, found, strict=True):
            for one in () if isinstance(listed, BaseException) else listed:
                try:
                    shown.append({**shown_offer(server.name, kind, one), "server": server.name})
                except ValueError as problem:
                    left_out.append(str(problem))
        self._left_out[kind] = left_out
        return shown

    def left_out(self, kind: str) -> list[str]:
        """What the last list of this kind left out, and why: a text for each offer."""
        return self._left_out.get(kind, [])

    def completion(self, server: str, params: Mapping[str, Any]) -> tuple[Completion, CompletionTool]:
        """The completion that these parameters of `completion/complete` want of a server, and the tool that asks the
        server. Raises `BadUsage` if the server cannot be asked."""
        if server not in self.usable():
            raise BadUsage(f"there is no MCP server `{server}` that can be used", hint="`haft providers list`")
        wanted = completion_of(server, params)
        return wanted, CompletionTool(self._servers[server], wanted.request)

    def due(self) -> bool:
        # Trust may be given, and servers may be described, by another process.
        return any(each.known is None or self._why_not.get(name) for name, each in self._servers.items())

    def cure(self, spec: ToolSpec) -> str:
        server = spec.meta.get("mcp", {}).get("server")
        return f"`haft providers list` shows the state of the MCP server `{server}`"

    @property
    def secrets(self) -> Secrets:
        found = self._login_secrets
        for each in self._servers.values():
            if each.provider.secrets.values:
                found |= each.provider.secrets
        return found

    async def close(self) -> None:
        import asyncio

        if self._background is not None:
            self._background.cancel()
            await asyncio.gather(self._background, return_exceptions=True)
        ending = (*self._servers.values(), *self._gone)
        await asyncio.gather(*(each.end() for each in ending), return_exceptions=True)


def _described(server: McpServer, known: definitions.Known) -> Iterator[DiscoveredTool]:
    provider = server.provider
    for tool in definitions.tools_in(provider, known):
        try:
            spec = definitions.spec_of(provider, known, tool)
        except ValueError as error:
            bare = definitions.bare_spec(provider, tool["name"])
            yield DiscoveredTool(bare, None, "broken", f"the MCP server `{provider.name}`: {error}")
        else:
            yield DiscoveredTool(spec, McpTool(spec, server))
    if known.get("more"):
        yield DiscoveredTool(definitions.bare_spec(provider), None, "broken", f"{known['more']}: the rest is left out")
