"""An open connection to an MCP server, over the pipes of a process or over HTTP, in both eras of the protocol.

The `mcp` package imports slowly, so other modules import this one on use, in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp_types import PaginatedRequestParams
from pydantic import ValidationError

from haft.contracts import HaftError, Session
from haft.sources.mcp import texts
from haft.sources.mcp.tasks import TasksExtension
from haft.sources.mcp.transport import ServerStreams, Streams
from haft.version import __version__

if TYPE_CHECKING:
    from haft.sources.mcp.remote.http import RemoteTransport

MOST_TOOLS: Final = 2_000
MOST_PAGES: Final = 200
MOST_BYTES: Final = 16_000_000
"""The most bytes of a list as JSON."""
LIST_SECONDS: Final = 60.0
RELISTEN_SECONDS: Final = 5.0
_MODERN: Final = "2026-07-28"
logging.getLogger("mcp").addHandler(logging.NullHandler())  # Otherwise Python prints texts of servers to stderr.

Elicit = Callable[[types.ElicitRequestParams], Awaitable[types.ElicitResult | types.ErrorData]]


class Connection:
    """One open connection. `session` and `streams` belong to the process of a stdio server."""

    def __init__(self, client: Client, session: Session | None, streams: ServerStreams | None) -> None:
        self.client = client
        self.session = session
        self.streams = streams
        self.is_lost = False
        """Whether the connection was closed by the other side."""
        self.remote: RemoteTransport | None = None
        """The transport to a server that is reached over HTTP."""
        self.tools: dict[str, dict[str, Any]] = {}
        """The tools that the server listed last, by their names."""
        self.more: str | None = None
        """What of the list was left out; None if nothing was."""

    @property
    def is_over(self) -> bool:
        """Whether the process of the server ended or was given up, or a remote server ended the session."""
        if self.is_lost or (self.streams is not None and self.streams.trouble is not None):
            return True
        if self.remote is not None and self.remote.is_over:
            return True
        return self.session is not None and self.session.is_over

    @property
    def is_modern(self) -> bool:
        return self.client.protocol_version >= _MODERN

    @property
    def instructions(self) -> str | None:
        """The instructions, without the part that nobody is shown: they count in the digest of every tool."""
        found = self.client.session.instructions
        return None if found is None else found[: texts.LONGEST_DESCRIPTION + 1]

    def facts(self) -> dict[str, Any]:
        """What haft keeps of the server."""
        capabilities = self.client.server_capabilities
        info = self.client.server_info
        return {
            "tools": list(self.tools.values()),
            "more": self.more,
            "instructions": self.instructions,
            "capabilities": [
                name
                for name in ("tools", "resources", "prompts", "completions")
                if getattr(capabilities, name) is not None
            ],
            "era": self.client.protocol_version,
            "server": None if info is None else {"name": texts.line(info.name), "version": texts.line(info.version)},
        }

    async def list_tools(self) -> bool:
        """Ask for the tools. Returns whether they changed since they were listed last."""
        if self.client.server_capabilities.tools is None:
            found: dict[str, dict[str, Any]] = {}
            more = None
        else:
            async with asyncio.timeout(LIST_SECONDS):
                found, more = await self._all_tools()
        changed = found != self.tools or more != self.more
        self.tools, self.more = found, more
        return changed

    async def _all_tools(self) -> tuple[dict[str, dict[str, Any]], str | None]:
        found: dict[str, dict[str, Any]] = {}
        size = 0
        async for page in self.pages(lambda params: self.client.session.list_tools(params=params)):
            if page is None:
                return found, f"its list of tools has more than {MOST_PAGES} pages, or repeats itself"
            for tool in page.tools:
                plain = tool.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"icons", "meta"})
                size += len(json.dumps(plain))
                if len(found) >= MOST_TOOLS or size > MOST_BYTES:
                    return found, f"it has more than {MOST_TOOLS:_} tools, or they are larger than {MOST_BYTES:_} bytes"
                found.setdefault(tool.name, plain)
        return found, None

    async def listed(self, kind: str) -> list[dict[str, Any]]:
        """All `resources`, `templates` or `prompts` of the server, as the server wrote them."""
        session = self.client.session
        asks: dict[str, tuple[str, Any]] = {
            "resources": ("resources", lambda params: session.list_resources(params=params)),
            "templates": ("resource_templates", lambda params: session.list_resource_templates(params=params)),
            "prompts": ("prompts", lambda params: session.list_prompts(params=params)),
        }
        name, ask = asks[kind]
        found: list[dict[str, Any]] = []
        size = 0
        async for page in self.pages(ask):
            for each in () if page is None else getattr(page, name):
                plain = each.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"icons", "meta"})
                size += len(json.dumps(plain))
                if len(found) >= MOST_TOOLS or size > MOST_BYTES:
                    return found
                found.append(plain)
        return found

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to `completion/complete`, as the server wrote it."""
        params = types.CompleteRequestParams.model_validate(request)
        context = None if params.context is None else params.context.arguments
        argument = {"name": params.argument.name, "value": params.argument.value}
        result = await self.client.session.complete(params.ref, argument, context)
        plain: dict[str, Any] = result.completion.model_dump(by_alias=True, mode="json", exclude_none=True)
        return plain

    @staticmethod
    async def pages(ask: Callable[[PaginatedRequestParams | None], Awaitable[Any]]) -> AsyncIterator[Any]:
        """The pages of a list. Ends with None if the list seems to have no end."""
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(MOST_PAGES):
            page = await ask(None if cursor is None else PaginatedRequestParams(cursor=cursor))
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                break
            seen.add(cursor)
        yield None


@contextlib.asynccontextmanager
async def connected(
    streams: AbstractAsyncContextManager[Streams],
    session: Session | None,
    output: ServerStreams | None,
    *,
    is_legacy: bool,
    elicit: Elicit,
    on_change: Callable[[], None],
) -> AsyncIterator[Connection]:
    """A connection over the two streams that `streams` yields. With `is_legacy`, the server is known to speak only the
    older protocol. `elicit` answers requests of the server for input; `on_change` is called when the server says that
    its tools changed."""

    async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
        return await elicit(params)

    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_change()

    client = Client(
        streams,
        mode="legacy" if is_legacy else "auto",
        client_info=types.Implementation(name="haft", version=__version__),
        elicitation_callback=answer,
        message_handler=hear,
        extensions=[TasksExtension()],
        cache=None,
    )
    async with client:
        # haft checks results itself, with bounds: a schema of a hostile server may be a bomb.
        client.session.validate_tool_result = _unchecked  # type: ignore[method-assign,assignment]
        connection = Connection(client, session, output)
        tools = client.server_capabilities.tools
        listening = None
        if connection.is_modern and tools is not None and tools.list_changed:
            listening = asyncio.create_task(_listen(client, on_change))
        try:
            yield connection
        finally:
            if listening is not None:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)


async def _unchecked(_name: str, _result: types.CallToolResult) -> None:
    return


async def _listen(client: Client, on_change: Callable[[], None]) -> None:
    """Call `on_change` whenever the server says that its tools changed. Ends if the server does not offer this."""
    while True:
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _event in events:
                    on_change()
        except (ListenNotSupportedError, MCPError):
            return
        except (SubscriptionLost, TimeoutError):
            pass
        await asyncio.sleep(RELISTEN_SECONDS)


def cause_of(error: BaseException) -> BaseException:
    """The only exception in a group of exceptions, which the `mcp` package raises; else the exception itself."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def reason(error: BaseException) -> str:
    """An error of a connection in words, without haft's own errors."""
    error = cause_of(error)
    if isinstance(error, MCPError):
        return f"it answered with the error {error.error.code}: {texts.line(error.error.message)}"
    if isinstance(error, ValidationError):
        return f"its answer is not valid: {texts.line(_first_problem(error))}"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, HaftError):
        return error.message if error.hint is None else f"{error.message}; {error.hint}"
    return texts.line(f"{type(error).__name__}: {error}")


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def is_closed(error: BaseException) -> bool:
    """Whether an error says that the connection was closed before the answer came."""
    error = cause_of(error)
    return isinstance(error, MCPError) and error.error.code == types.CONNECTION_CLOSED
