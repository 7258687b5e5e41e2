"""The older HTTP transport of MCP: one stream of events from the server, and a POST for each message to it.

The `mcp` package has this transport too, but there a failed POST leaves its caller waiting. Here it becomes an error of
that request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio
import httpx2
import mcp_types
from mcp.shared.message import SessionMessage

from haft.sources.mcp.remote.addresses import same_origin
from haft.sources.mcp.remote.failures import RemoteFailure, RemoteRequestFailed

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

    from haft.sources.mcp.remote.http import RemoteClient

_ENDPOINT_SECONDS: Final = 30.0


@asynccontextmanager
async def sse_streams(client: RemoteClient, url: str, most_bytes: int) -> AsyncIterator[TransportStreams]:
    """Open the stream of events, and wait for the address to which messages are sent. Raises `RemoteRequestFailed` if
    there is none."""
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_session, to_server = anyio.create_memory_object_stream[SessionMessage](0)
    async with to_session, from_server, from_session, to_server, _opened(client, url) as response:
        reader = _EventReader(client, url, to_session)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.read, httpx2.EventSource(response, max_event_size=most_bytes))
            endpoint = await reader.endpoint()
            tasks.start_soon(_post_all, client, endpoint, to_server, reader, tasks)
            yield from_server, from_session
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _opened(client: RemoteClient, url: str) -> AsyncIterator[httpx2.Response]:
    """The open stream of events."""
    request = client.build_request("GET", url, headers={"Accept": "text/event-stream", "Cache-Control": "no-store"})
    try:
        with anyio.fail_after(_ENDPOINT_SECONDS):
            response = await client.send(request, stream=True, follow_redirects=False)
    except TimeoutError:
        silence = httpx2.ReadTimeout(f"no answer within {_ENDPOINT_SECONDS:g} seconds")
        raise RemoteRequestFailed(client.failure_of(silence)) from None
    except Exception as error:
        raise RemoteRequestFailed(client.failure_of(error)) from error
    try:
        failure = await client.problem_of(response)
        if failure is None and not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            failure = client.failures.of_content(response.headers.get("content-type", ""))
        if failure is not None:
            raise RemoteRequestFailed(failure)
        yield response
    finally:
        await response.aclose()


class _EventReader:
    """Reads the events of the server, and passes its messages on."""

    def __init__(
        self, client: RemoteClient, url: str, to_session: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        self._client = client
        self._url = httpx2.URL(url)
        self._to_session = to_session
        self._endpoint: httpx2.URL | None = None
        self._failure: RemoteFailure | None = None
        self._is_known = anyio.Event()

    async def endpoint(self) -> httpx2.URL:
        """The address to which messages are sent, once the server has named it."""
        with anyio.move_on_after(_ENDPOINT_SECONDS):
            await self._is_known.wait()
        if self._endpoint is None:
            failures = self._client.failures
            silence = httpx2.ReadTimeout(f"it named no address for messages within {_ENDPOINT_SECONDS:g} seconds")
            raise RemoteRequestFailed(self._failure or failures.of_error(silence, has_connected=True))
        return self._endpoint

    async def read(self, events: httpx2.EventSource) -> None:
        async with self._to_session:
            try:
                async for event in events:
                    await self._handle(event)
                ended: Exception = httpx2.ReadError("the stream of events ended")
            except (httpx2.HTTPError, httpx2.SSEError, OSError) as error:
                ended = error
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            self._failure = self._client.failures.of_error(ended, has_connected=True)
            self._client.failures.has_ended = True
            self._is_known.set()

    async def fail(self, error: mcp_types.JSONRPCError) -> None:
        """Answer a request that failed on its way."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # Nobody waits any more.
            await self._to_session.send(SessionMessage(error))

    async def _handle(self, event: httpx2.ServerSentEvent) -> None:
        if event.event == "endpoint" and self._endpoint is None:
            endpoint = self._url.join(event.data)
            if same_origin(endpoint, self._url):
                self._endpoint = endpoint
            else:
                self._failure = self._client.failures.of_redirect(endpoint)
            self._is_known.set()
        elif event.event == "message" and event.data:
            try:
                message = mcp_types.jsonrpc_message_adapter.validate_json(event.data, by_name=False)
            except ValueError as error:
                await self._to_session.send(error)
            else:
                await self._to_session.send(SessionMessage(message))


async def _post_all(
    client: RemoteClient,
    endpoint: httpx2.URL,
    messages: MemoryObjectReceiveStream[SessionMessage],
    reader: _EventReader,
    tasks: TaskGroup,
) -> None:
    async for message in messages:
        tasks.start_soon(_post, client, endpoint, message, reader)


async def _post(client: RemoteClient, endpoint: httpx2.URL, sent: SessionMessage, reader: _EventReader) -> None:
    """Send one message. The answer comes as an event; a failure is answered here."""
    message = sent.message
    content = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    response = await client.send(client.build_request("POST", endpoint, json=content), follow_redirects=False)
    if response.is_success or not isinstance(message, mcp_types.JSONRPCRequest):
        return
    error = mcp_types.ErrorData(code=-32603, message=f"HTTP {response.status_code}")
    with suppress(ValueError):
        answer = mcp_types.jsonrpc_message_adapter.validate_json(response.content, by_name=False)
        error = answer.error if isinstance(answer, mcp_types.JSONRPCError) else error
    await reader.fail(mcp_types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
