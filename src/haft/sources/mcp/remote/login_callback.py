"""Waits on loopback for the browser to come back from a login.

The address has a random path that is good for one login only, so that no other page can answer in its place. The person
can also paste the address at which the browser ended, if the browser runs on another machine. The answer's `state` is
compared here, so that a wrong answer does not end the wait; the `mcp` package compares it again.
"""

from __future__ import annotations

import asyncio
import hmac
import os
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from haft.contracts import BadConfig, ToolFailed
from haft.files import shown

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_MOST_HEAD: Final = 32_768
_HEAD_SECONDS: Final = 10.0
_HEADERS: Final = (
    "Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
)


class LoginCallback:
    """The address to which the authorization server sends the browser back."""

    def __init__(self, provider: str, configured: str | None = None) -> None:
        """`configured` is the address that was registered for this client beforehand, if one was."""
        self._host, self._port, self._path = _place(provider, configured)
        self._configured = configured
        self._state: str | None = None
        self._answer: asyncio.Future[dict[str, str]] | None = None
        self._server: asyncio.Server | None = None
        self.uri = ""

    async def __aenter__(self) -> Self:
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._server = await asyncio.start_server(self._serve, self._host, self._port, limit=_MOST_HEAD)
        except OSError as error:
            raise ToolFailed(
                f"haft cannot wait for the login at {self._host}:{self._port}: {error.strerror or error}",
                hint="end the program that uses this port, or change `redirect_uri` under `oauth`",
            ) from error
        self._port = self._server.sockets[0].getsockname()[1]
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.uri = self._configured or f"http://{host}:{self._port}{self._path}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        if self._answer is not None:
            self._answer.cancel()

    def expect(self, state: str) -> None:
        """From now on, take an answer only if it has this state."""
        self._state = state

    def take(self, address: str) -> bool:
        """Take an address at which the browser ended. Returns whether it answers this login."""
        parts = urlsplit(address.strip())
        fields = {name: values[0] for name, values in parse_qs(parts.query).items()}
        is_ours = hmac.compare_digest(parts.path.encode(), self._path.encode())
        state = fields.get("state", "").encode()
        is_expected = self._state is not None and hmac.compare_digest(state, self._state.encode())
        if not (is_ours and is_expected and ("code" in fields or "error" in fields)):
            return False
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_result(fields)
        return True

    async def result(self, seconds: float) -> AuthorizationCodeResult:
        """The answer of the authorization server. Raises `ToolFailed` if it refused, or if no answer came."""
        assert self._answer is not None
        try:
            fields = await asyncio.wait_for(asyncio.shield(self._answer), seconds)
        except TimeoutError:
            raise ToolFailed(f"nobody logged in within {seconds / 60:g} minutes", hint="log in again") from None
        if "code" not in fields:
            words = shown(fields.get("error_description") or fields["error"])[:200]
            raise ToolFailed(f"the login was refused: {words}")
        self._answer = asyncio.get_running_loop().create_future()  # A server may ask for further rights.
        self._state = None
        return AuthorizationCodeResult(code=fields["code"], state=fields.get("state"), iss=fields.get("iss"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                writer.write(self._reply(head).encode())
                await writer.drain()
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # Another program knocked, or the browser went away.
        finally:
            writer.close()

    def _reply(self, head: str) -> str:
        request, *lines = head.split("\r\n")
        method, target, *_version = (*request.split(" "), "", "")
        names = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        own = {f"{name}:{self._port}" for name in (*_LOOPBACK[:2], "[::1]")}
        if method == "GET" and names.get("host", "").lower() in own and self.take(target):
            return _page("200 OK", "haft received the answer. You can close this page and return to the terminal.")
        return _page("404 Not Found", "This page belongs to no login that haft waits for.")


def _place(provider: str, configured: str | None) -> tuple[str, int, str]:
    if configured is None:
        return "127.0.0.1", 0, f"/callback/{os.urandom(18).hex()}"
    parts = urlsplit(configured)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK or port is None or parts.query or parts.fragment:
        raise BadConfig(
            f"`redirect_uri` of the provider `{provider}` must name a port on this machine, "
            "such as `http://127.0.0.1:8976/callback`"
        )
    return parts.hostname, port, parts.path or "/"


def _page(status: str, words: str) -> str:
    body = f"<!doctype html><meta charset=utf-8><title>haft</title><p>{words}</p>\n"
    return f"HTTP/1.1 {status}\r\n{_HEADERS}Content-Length: {len(body.encode())}\r\n\r\n{body}"
