"""The requests to one server: with the token, in time, and again where that is safe."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx2
import orjson

from haft.contracts import BadConfig, BadUsage, HaftError, InvalidArguments
from haft.service.remote.address import ServerAddress, tls_context
from haft.service.remote.problems import ServerUnreachable, error_from, is_told_to_wait
from haft.version import __version__

if TYPE_CHECKING:
    import ssl

_CONNECT_SECONDS: Final = 10.0
_MOST_CONNECTIONS: Final = 64
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_LONGEST_EVENT: Final = 256_000_000
"""The outcome of a run is one event, and has the whole result."""


class ServerConnection:
    """The HTTP client of one server. Open it before the first request."""

    def __init__(
        self,
        address: ServerAddress,
        token: str,
        *,
        verify: bool | str | os.PathLike[str] | ssl.SSLContext = True,
        timeout: float = 30.0,
        retry_seconds: float = 60.0,
    ) -> None:
        """`timeout` is for how many seconds the server may be silent, and `retry_seconds` for how long a request is
        made again if the server cannot be reached."""
        self.address = address
        self.retry_seconds = retry_seconds
        self._token = token
        self._verify = tls_context(verify)
        self._seconds = timeout
        self._calls: httpx2.AsyncClient | None = None
        self._others: httpx2.AsyncClient | None = None
        self._streams: httpx2.AsyncClient | None = None
        self.skew = 0.0
        """How many seconds the clock of the server is ahead of that of this machine."""

    def __repr__(self) -> str:
        return f"<ServerConnection {self.address.base}>"

    def open(self) -> None:
        # Requests that wait for a call, and streams, have connections of their own: the answer to what a call asks must
        # never wait for the call.
        self._calls, self._others, self._streams = self._client(), self._client(), self._client()

    async def close(self) -> None:
        for client in (self._calls, self._others, self._streams):
            if client is not None:
                await client.aclose()
        self._calls = self._others = self._streams = None

    def _client(self) -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {self._token}", "user-agent": f"haft/{__version__}"}
        timeout = httpx2.Timeout(self._seconds, connect=min(_CONNECT_SECONDS, self._seconds), pool=None)
        limits = httpx2.Limits(max_connections=_MOST_CONNECTIONS, max_keepalive_connections=_MOST_CONNECTIONS)
        return httpx2.AsyncClient(
            headers=headers,
            timeout=timeout,
            limits=limits,
            verify=self._verify,
            trust_env=not self.address.is_local,
            follow_redirects=False,
        )

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
        is_repeatable: bool = False,
        waits: float | None = None,
    ) -> Any:
        """Make a request below `/api/v1`, and return the JSON of the answer. A GET, a request with a `key`, and one
        that `is_repeatable`, is sent again after the server may have seen it. `waits` is how many seconds the server
        may take to answer, if it waits for a call."""
        response = await self._answered(
            method,
            path,
            query=query,
            body=body,
            key=key,
            is_repeatable=is_repeatable or method == "GET" or key is not None,
            waits=waits,
        )
        try:
            return orjson.loads(response.content)
        except ValueError:
            raise error_from(response.status_code, response.content) from None

    async def ask_dated(self, path: str) -> tuple[Any, str | None]:
        """The JSON of an answer, and the time that the server has."""
        response = await self._answered("GET", path, query=None, body=None, key=None, is_repeatable=True, waits=None)
        return orjson.loads(response.content), response.headers.get("date")

    async def _answered(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        key: str | None,
        is_repeatable: bool,
        waits: float | None,
    ) -> httpx2.Response:
        client = self._others if waits is None else self._calls
        headers = {} if key is None else {"idempotency-key": key}
        content = None if body is None else written(body)
        if content is not None:
            headers["content-type"] = "application/json"
        timeout = httpx2.Timeout(
            self._seconds + (waits or 0.0), connect=min(_CONNECT_SECONDS, self._seconds), pool=None
        )
        pauses = Pauses(self.retry_seconds)
        while True:
            if client is None or client.is_closed:
                raise closed()
            try:
                response = await client.request(
                    method, self._url(path), params=query, content=content, headers=headers, timeout=timeout
                )
            except httpx2.RequestError as error:
                is_unseen = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                if is_unseen or is_repeatable:
                    await pauses.wait_or_raise(self._unreachable(error))
                    continue
                raise self._unreachable(error) from None
            if response.status_code < 300:
                return response
            if not is_told_to_wait(response.status_code):
                raise error_from(response.status_code, response.content)
            await pauses.wait_or_raise(
                error_from(response.status_code, response.content), response.headers.get("retry-after")
            )

    @contextlib.asynccontextmanager
    async def stream(self, path: str, *, last_id: str | None = None) -> AsyncIterator[AsyncIterator[Any]]:
        """The events of a stream, after the one with `last_id`. Raises `ServerUnreachable` if there is none now, and
        the server's error if it refuses. A stream that breaks off just ends."""
        client = self._streams
        if client is None:
            raise closed()
        headers = {"accept": "text/event-stream", **({} if last_id is None else {"last-event-id": last_id})}
        # The server shows a sign of life every few seconds.
        timeout = httpx2.Timeout(max(self._seconds, 30.0), connect=min(_CONNECT_SECONDS, self._seconds), pool=None)
        try:
            async with client.stream("GET", self._url(path), headers=headers, timeout=timeout) as response:
                if response.status_code != 200:
                    raise error_from(response.status_code, await response.aread())
                source = httpx2.EventSource(response, max_event_size=_LONGEST_EVENT)
                yield (event async for event in source if event.data)  # Others only say when to come back.
        except httpx2.RequestError as error:
            raise self._unreachable(error) from None

    @contextlib.asynccontextmanager
    async def lines(self, path: str) -> AsyncIterator[AsyncIterator[str]]:
        """The lines of an answer of any length."""
        client = self._streams
        if client is None:
            raise closed()
        try:
            async with client.stream("GET", self._url(path)) as response:
                if response.status_code != 200:
                    raise error_from(response.status_code, await response.aread())
                yield response.aiter_lines()
        except httpx2.RequestError as error:
            raise self._unreachable(error) from None

    def _url(self, path: str) -> str:
        return f"{self.address.base}/api/v1{path}"

    def _unreachable(self, error: Exception) -> ServerUnreachable:
        what = "did not answer in time" if isinstance(error, httpx2.TimeoutException) else "cannot be reached"
        reason = str(error).replace(self._token, "…") or type(error).__name__
        return ServerUnreachable(
            f"the server at {self.address.base} {what}: {reason}",
            hint="check the address and the network; `verify=FILE` names the certificate of a private authority",
        )


class Pauses:
    """How long a client waits before it asks again: longer each time, and not for ever."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._next = _FIRST_PAUSE

    async def wait_or_raise(self, error: HaftError, told: str | None = None) -> None:
        """Wait; raise `error` instead if the time is over. `told` is the header `Retry-After` of the answer."""
        pause = self._next * random.uniform(0.5, 1.0)  # noqa: S311  clients should not come back all at once
        if told is not None and told.isdecimal():
            pause = min(float(told), _LONGEST_PAUSE) + pause
        if time.monotonic() + pause > self._until:
            raise error
        self._next = min(self._next * 2, _LONGEST_PAUSE)
        await asyncio.sleep(pause)

    def begin_anew(self, seconds: float) -> None:
        """The server answered: the next trouble is another one."""
        self._until = time.monotonic() + seconds
        self._next = _FIRST_PAUSE


def closed() -> BadConfig:
    """The error for a service that was not entered, or has been closed."""
    return BadConfig("this service is not open", hint="use it inside `async with ToolService.connect(...)`")


def written(body: Mapping[str, Any]) -> bytes:
    """A body as JSON. Raises an error if it has values that JSON has not."""
    try:
        return orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS)
    except TypeError as error:
        if "surrogates" in str(error) or "UTF-8" in str(error):
            raise BadUsage(f"the request cannot be sent: {error}") from None
        raise InvalidArguments(str(body.get("tool", "the request")), [f"it cannot be sent as JSON: {error}"]) from None


def part(text: str) -> str:
    """A name as one part of a path. No name leads to another path."""
    return quote(text, safe="") if text not in (".", "..") else text.replace(".", "%2E")
