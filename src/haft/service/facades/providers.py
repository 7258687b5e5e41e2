"""The MCP servers of an open host: starts them, and asks them for their tools, resources and prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from haft.contracts import BadUsage, Call, Decision, Principal, ToolFailed, near_miss, new_run_id
from haft.pipeline import Run
from haft.policy import PolicyQuery
from haft.service.assembly import Host
from haft.values import replace

if TYPE_CHECKING:
    from haft.sources.mcp import McpServer, McpServers

SOURCE: Final = "mcp"

Offer = tuple[str, dict[str, Any]]
"""The name of a server, and something that it offers, as MCP writes it."""


class HostProviders:
    """The MCP servers of a host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def _source(self) -> McpServers:
        return cast("McpServers", self._host.discovery.source(SOURCE))

    def names(self) -> list[str]:
        """The names of the servers that are configured and not turned off."""
        self._source.find()
        return list(self._source.servers)

    async def describe(self, name: str, progress: Callable[[str], None] = lambda _line: None) -> list[str]:
        """Start a server if it does not run, and return the names of its tools. Raises `ToolFailed` if it does not
        start."""
        await self._named(name).describe(progress)
        return await self._tools(name)

    async def restart(
        self, name: str, progress: Callable[[str], None] = lambda _line: None, *, upgrade: bool = False
    ) -> list[str]:
        """End a server, start it again, and return the names of its tools. With `upgrade`, first install the newest
        version of its package that its command allows. Raises `ToolFailed` if it does not start."""
        await self._named(name).restart(progress, upgrade=upgrade)
        return await self._tools(name)

    async def resources(self) -> list[Offer]:
        """The resources of all servers. Starts the servers that are known to have some."""
        return await self._offers("resources")

    async def templates(self) -> list[Offer]:
        """The templates of resources of all servers."""
        return await self._offers("templates")

    async def prompts(self) -> list[Offer]:
        """The prompts of all servers."""
        return await self._offers("prompts")

    def left_out(self, kind: str) -> list[str]:
        """What the last list of `resources`, `templates` or `prompts` left out, because it cannot be shown: a text for
        each of them."""
        return self._source.left_out(kind)

    def complete(
        self,
        server: str,
        params: Mapping[str, Any],
        *,
        who: str | Principal | None = None,
        thread: str | None = None,
    ) -> Run:
        """Ask a server for the completion of an argument. `params` are those of `completion/complete`, as MCP writes
        them; the result of the run is the answer. The rules decide about it as about the call of `get_prompt` or
        `read_resource` with this argument. A completion asks nobody: if that call would need approval, the run is
        rejected, and the server gets nothing. Raises `BadUsage` if the server has no such argument."""
        host = self._host
        pipeline = host.running()
        caller = pipeline.within()
        wanted, tool = self._source.completion(server, params)
        principal = host.acting(who, thread, caller)
        call = Call(
            run=new_run_id(),
            name=tool.spec.name,
            arguments={"tool": wanted.tool, "arguments": wanted.arguments, "argument": wanted.argument},
            principal=principal,
            parent=None if caller is None else caller.id,
            tool=tool,
            secrets=host.known(),
        )
        query = PolicyQuery(
            host.catalogue.get(wanted.tool, call.thread).spec,
            wanted.arguments,
            thread=call.thread,
            subagent=call.subagent,
            rights=call.rights,
        )
        return pipeline.call(replace(call, decision=_without_asking(host.policy_engine.decide(query))))

    async def _offers(self, kind: str) -> list[Offer]:
        self._host.running()
        found = await self._source.listed_by(kind)
        return [(str(one["server"]), {key: value for key, value in one.items() if key != "server"}) for one in found]

    def _named(self, name: str) -> McpServer:
        self._host.running()
        names = self.names()
        if name not in names:
            near = near_miss(name, names)
            hint = f"did you mean `{near}`?" if near else "`haft providers list` shows the MCP servers"
            raise BadUsage(f"there is no MCP server `{name}`", hint=hint)
        server = self._source.servers[name]
        if server.provider.problem is not None:
            raise ToolFailed(server.provider.problem)
        return server

    async def _tools(self, name: str) -> list[str]:
        await self._host.disk.renew()
        about = ((one.spec.name, one.spec.meta.get("mcp", {})) for one in self._host.catalogue.listings(all=True))
        return [str(tool) for tool, each in about if each.get("server") == name and "tool" in each]


def _without_asking(decision: Decision) -> Decision:
    """A decision that needs no person and no program: what is not allowed now is rejected."""
    if decision.action in ("allow", "reject"):
        return decision
    reason = f"{decision.reason}, and a completion asks nobody"
    return replace(decision, action="reject", by="nobody", reason=reason, delegates=(), to_allow=())
