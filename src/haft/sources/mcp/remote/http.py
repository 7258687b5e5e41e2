"""Connects to a remote MCP server: streamable HTTP, and the older transport with server-sent events.

`open_http` returns a transport for `mcp.Client`. The host process itself connects, because the tools of a remote server
run elsewhere: the sandbox and its network settings are about programs on this machine. The provider names the host, so
trust in the start of the provider covers the connection.

A failed request becomes an error of that request alone, and the connection goes on; `RemoteTransport.explained` turns
the error into words for a person. `addresses` checks where connections go, and `oauth` adds tokens. Deadlines of calls
are the caller's: this module only limits the time to connect, and the size of answers.
"""

from __future__ import annotations

import contextlib
import json
import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth
from mcp.client.streamable_http import streamable_http_client

from haft.contracts import BadConfig, HaftError, Secrets
from haft.sources.mcp.remote.addresses import EVENTS, CheckedTransport, EventStream, same_origin
from haft.sources.mcp.remote.failures import RemoteFailure, RemoteFailures
from haft.sources.mcp.remote.logins import Logins
from haft.sources.mcp.remote.oauth import StoredTokens
from haft.sources.mcp.remote.sse import sse_streams

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from haft.sources.mcp.provider import Provider

MOST_BYTES: Final = 20_000_000
"""The longest answer, and the longest event, that haft reads."""
_TIMEOUT: Final = httpx2.Timeout(30.0, read=None, connect=10.0)
"""A call may take long, and has a deadline of its own."""
_LOGIN_SECONDS: Final = 30.0
_LONGEST_REFUSAL: Final = 4096
"""The most bytes with which a server says that it does not know a session."""

# Without a handler, Python would print warnings of the packages among haft's own messages.
for _name in ("mcp", "httpx2", "httpcore2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


def open_http(provider: Provider, state_home: str, *, auth: httpx2.Auth | None = None) -> RemoteTransport:
    """A transport to a provider whose transport is `http` or `sse`. Without `auth`, the tokens of an earlier login are
    used, unless the provider has an `Authorization` header of its own."""
    return RemoteTransport(provider, state_home, auth)


class RemoteTransport:
    """A connection to a remote MCP server, as `mcp.Client` takes it: a context manager that gives two streams."""

    def __init__(self, provider: Provider, state_home: str, auth: httpx2.Auth | None = None) -> None:
        self._provider = provider
        self._url = checked_url(provider)
        self._auth = auth
        self._logins = Logins(state_home, provider.name, provider.url or "")
        port = self._url.port or (443 if self._url.scheme == "https" else 80)
        self.failures: Final = RemoteFailures(provider.name, self._url.host, port, self._masked)
        self.client: RemoteClient | None = None
        """The HTTP client while the connection is open."""
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> TransportStreams:
        async with contextlib.AsyncExitStack() as stack:
            client = self.client = await stack.enter_async_context(self._client())
            if self._provider.transport == "sse":
                streams = await stack.enter_async_context(sse_streams(client, str(self._url), MOST_BYTES))
            else:
                opened = streamable_http_client(str(self._url), http_client=client, max_sse_event_size=MOST_BYTES)
                streams = await stack.enter_async_context(opened)
            self._stack = stack.pop_all()
            return streams

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, traceback)

    def explained(self, error: BaseException) -> HaftError | None:
        """The error for a person, if a request failed on its way; None if the server itself answered with an error."""
        failure = self.failures.found_in(error)
        return None if failure is None else failure.error()

    @property
    def is_over(self) -> bool:
        """Whether the server ended this connection for good."""
        return self.failures.has_ended or (self.client is not None and self.client.checked.flood.is_seen)

    def failure_of(self, error: BaseException) -> RemoteFailure | None:
        """Why the request failed that ended with this error; None if the server itself answered with an error."""
        return self.failures.found_in(error)

    @property
    def secrets(self) -> Secrets:
        """The secrets of the provider, and the tokens that are in use now."""
        login = self._logins.current
        return self._provider.secrets if login is None else self._provider.secrets | login.secrets

    def _masked(self, text: str) -> str:
        return self.secrets.masked_text(text)

    def _client(self) -> RemoteClient:
        auth = self._auth
        is_configured = any(name.lower() == "authorization" for name in self._provider.headers)
        if auth is None and not is_configured and not self._url.userinfo:
            auth = StoredTokens(self._logins)
        return RemoteClient(self._url, self.failures, headers=dict(self._provider.headers), auth=auth)


def checked_url(provider: Provider) -> httpx2.URL:
    """The address of a remote provider. Raises `BadConfig` if it is none."""
    try:
        url = httpx2.URL(provider.url or "")
    except httpx2.InvalidURL as error:
        raise BadConfig(f"the `url` of the provider `{provider.name}` is no address: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise BadConfig(
            f"the `url` of the provider `{provider.name}` must begin with `https://` or `http://`, and name a host"
        )
    return url.copy_with(fragment=None)


class RemoteClient(httpx2.AsyncClient):
    """The HTTP client of one remote server. It answers a failed request to the server with a JSON-RPC error, because
    an exception would end the requests of all other calls."""

    def __init__(
        self, url: httpx2.URL, failures: RemoteFailures, *, headers: dict[str, str], auth: httpx2.Auth | None
    ) -> None:
        self._server = url
        self._streams: WeakValueDictionary[int | str, EventStream] = WeakValueDictionary()
        self.failures: Final = failures
        self.checked: Final = CheckedTransport(url, MOST_BYTES, _LOGIN_SECONDS)
        super().__init__(headers=headers, auth=auth, timeout=_TIMEOUT, transport=self.checked, trust_env=False)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request, and answer with a JSON-RPC error if that fails."""
        if request.method != "POST":  # Streams and their ends: the transports notice an error by themselves.
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
        except Exception as error:  # An error of one request must not end the others.
            return self._failed(request, self.failure_of(error))
        try:
            failure = await self.problem_of(response)
        except (httpx2.HTTPError, OSError) as error:
            failure = self.failure_of(error)
        if failure is None:
            self._note_stream(request, response)
            return response
        await response.aclose()
        return self._failed(request, failure)

    def _note_stream(self, request: httpx2.Request, response: httpx2.Response) -> None:
        """Remember for which message a stream of events is, and abandon the stream of a message that is cancelled: the
        `mcp` package reads it on until the server ends it."""
        stream = response.extensions.get(EVENTS)
        is_cancellation = b'"notifications/cancelled"' in request.content[:500]
        if stream is None and not is_cancellation:
            return
        with contextlib.suppress(ValueError, TypeError, KeyError):
            message = json.loads(request.content)
            if is_cancellation and message["method"] == "notifications/cancelled":
                if (found := self._streams.pop(message["params"]["requestId"], None)) is not None:
                    found.is_abandoned = True
            elif stream is not None:
                self._streams[message["id"]] = stream

    def failure_of(self, error: Exception) -> RemoteFailure:
        """Why a request failed that raised an error."""
        if isinstance(error, HaftError):
            return RemoteFailure("login", error.message, error.hint)
        if isinstance(error, OAuthFlowError):
            return self.failures.of_failed_login(str(error))
        connecting = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.InvalidURL)
        return self.failures.of_error(error, has_connected=not isinstance(error, connecting))

    async def problem_of(self, response: httpx2.Response) -> RemoteFailure | None:
        """Why the answer is of no use; None if it is a message, or if the transport handles it."""
        following = response.next_request
        if following is not None:
            return None if same_origin(following.url, self._server) else self.failures.of_redirect(following.url)
        content_type = response.headers.get("content-type", "").lower()
        if response.status_code == 401:
            if "authorization" in response.request.headers and self.auth is None:
                return self.failures.of_configured()
            return self.failures.of_login(had_token="authorization" in response.request.headers)
        if response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope":
            return self.failures.of_scope(extract_scope_from_www_auth(response) or "")
        if response.status_code >= 400:
            return await self._problem_of_error(response, content_type)
        if content_type.startswith("application/json"):
            await response.aread()  # Here a failure becomes an error of this request alone.
            return None
        is_message = response.status_code == 202 or content_type.startswith("text/event-stream")
        return None if is_message or response.status_code == 204 else self.failures.of_content(content_type)

    async def _problem_of_error(self, response: httpx2.Response, content_type: str) -> RemoteFailure | None:
        await response.aread()
        is_json = content_type.startswith("application/json")
        if "mcp-session-id" in response.request.headers and _has_no_session(response):
            return self.failures.of_session()
        if is_json and response.status_code != 403 and b'"jsonrpc"' in response.content[:65_536]:
            return None  # The server's own error.
        return self.failures.of_status(response, response.text[:4096])

    def _failed(self, request: httpx2.Request, failure: RemoteFailure) -> httpx2.Response:
        content = self.failures.body(failure)
        return httpx2.Response(502, headers={"content-type": "application/json"}, content=content, request=request)


def _has_no_session(response: httpx2.Response) -> bool:
    """Whether the server refused a request only because it does not know the session. Then it took no notice of the
    request, and haft may send the request again. The protocol says 404. Older servers say 400 and give the reason as
    text, or as a JSON-RPC error without an id. An error with an id is the answer to a request that the server read."""
    if response.status_code != 400:
        return response.status_code == 404
    if len(response.content) > _LONGEST_REFUSAL:
        return False
    text = response.content.lower()
    try:
        message: Any = json.loads(response.content)
    except (ValueError, RecursionError):
        message = {}
    if not isinstance(message, dict) or message.get("id") is not None:
        return False
    # The body may come from a program in front of the server, so text alone must name the session id.
    return b"session" in text if "jsonrpc" in message else b"session id" in text or b"session-id" in text
