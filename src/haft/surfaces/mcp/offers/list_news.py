"""News for clients: that the list of tools, prompts or resources has changed.

Clients of 2026-07-28 listen for news with a request (`subscriptions/listen`). Older clients get it unasked.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)

from haft.contracts import Listing
from haft.surfaces.mcp.offers.log_messages import connection_of
from haft.surfaces.mcp.offers.skills import ServedSkills
from haft.surfaces.mcp.results import OUTPUT
from haft.surfaces.mcp.run_access import RunAccess

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from haft.contracts import Principal
    from haft.service import Run, ToolService

SECONDS_TO_TELL: Final = 0.5
"""How long one client may take to read news. The others, and the call that made the news, do not wait longer."""
_SUBSCRIBED = "haft subscriptions"


class ListNews:
    """Tells all clients of one server what changed."""

    def __init__(self, service: ToolService, skills: ServedSkills) -> None:
        self._service = service
        self._skills = skills
        self._runs = RunAccess(service)
        self._bus = InMemorySubscriptionBus()
        self._connections: dict[int, Any] = {}
        """The connections of older clients."""
        self.listen = ListenHandler(self._bus)

    def connected(self, context: ServerRequestContext[Any, Any]) -> None:
        """Remember the connection of an older client until it ends."""
        connection = connection_of(context)
        self._connections[id(connection)] = connection
        connection.exit_stack.callback(self._connections.pop, id(connection), None)

    async def watch(self) -> None:
        """Tell the clients of changes, until this task is cancelled."""
        tools: Any = None
        offers: Any = None
        async for listings in self._service.watch_tools():
            before, tools = tools, [(listing.spec.name, listing.spec.digest) for listing in listings]
            if before is not None and tools != before:
                await self.tools_changed()
            before, offers = offers, [*self._offer_marks(listings)]
            if before is not None and offers != before:
                await self.offers_changed()

    def _offer_marks(self, listings: Sequence[Listing]) -> Iterator[tuple[str, str]]:
        """What prompts and resources depend on: the skills, and the hosted servers as their tools show them."""
        for skill in self._skills.found():
            yield skill.name, skill.description
        for listing in listings:
            if listing.spec.kind == "mcp":
                yield listing.spec.name, listing.spec.digest

    async def tools_changed(self) -> None:
        """Tell the clients that the tools have changed."""
        await self._bus.publish(ToolsListChanged())
        await self._tell_all(lambda connection: connection.send_tool_list_changed())

    async def offers_changed(self) -> None:
        """Tell the clients that the prompts and resources have changed."""
        await self._bus.publish(PromptsListChanged())
        await self._bus.publish(ResourcesListChanged())
        await self._tell_all(lambda connection: connection.send_prompt_list_changed())
        await self._tell_all(lambda connection: connection.send_resource_list_changed())

    async def _tell_all(self, tell: Callable[[Any], Awaitable[None]]) -> None:
        async def told(connection: Any) -> None:
            with contextlib.suppress(Exception):  # The client may be gone, or read nothing.
                async with asyncio.timeout(SECONDS_TO_TELL):
                    await tell(connection)

        await asyncio.gather(*map(told, list(self._connections.values())))

    def subscribe(self, context: ServerRequestContext[Any, Any], uri: str, caller: Principal) -> None:
        """Remember that an older client wants to hear of a resource. The output of a run changes until the run ends;
        haft tells nothing about other resources, and nothing about runs of others."""
        state = connection_of(context).state
        subscribed: dict[str, asyncio.Task[None]] = state.setdefault(_SUBSCRIBED, {})
        matched = OUTPUT.fullmatch(uri)
        run = None if matched is None else self._runs.live(matched[1], caller)
        if run is not None and uri not in subscribed:
            subscribed[uri] = asyncio.create_task(self._tell_end(run, connection_of(context), uri))

    async def _tell_end(self, run: Run, connection: Any, uri: str) -> None:
        await run
        connection.state[_SUBSCRIBED].pop(uri, None)
        with contextlib.suppress(Exception):
            await connection.send_resource_updated(uri)

    def unsubscribe(self, context: ServerRequestContext[Any, Any], uri: str) -> None:
        """Forget it again."""
        task = connection_of(context).state.get(_SUBSCRIBED, {}).pop(uri, None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """End all streams of listening clients."""
        self.listen.close()
