"""Which client makes an MCP request, and in which thread: `Callers.of` answers both for every handler.

- Over HTTP, the client is the one whose token the request brought. `http_guard` has checked the token. What the client
  says about itself decides nothing.
- Over stdio, the client is the program at the other end of the pipe. Its first name in this process counts.

A client may name a thread in `_meta`, as Codex does. The name is a name among the threads of this client: haft's thread
is a digest of the client and the name, so no name opens the answers, the `/tmp` or the skills of another client's
thread. Nothing in `_meta` gives a right.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import Principal, ThreadId, new_thread_id
from haft.values import dataclass

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from haft.service import ClientToken

SCOPE_KEY: Final = "haft.client"
"""The key in the ASGI scope under which `http_guard` puts the `ClientToken` of a request."""
SESSION_HEADER: Final = "mcp-session-id"
_NAMELESS: Final = "mcp-client"
_LONGEST_NAME: Final = 64
_LONGEST_THREAD: Final = 1000
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class Caller:
    """The client that makes a request."""

    name: str
    """How runs, approvals and the audit log name the client."""
    key: str
    """What the client is told apart by. Request states are bound to it: see `request_state`."""
    thread: ThreadId
    software: str = ""
    """The name that the client's program gives itself, such as `codex-mcp-client`. It may decide how haft waits for
    this client, and never what the client may do."""

    @property
    def principal(self) -> Principal:
        """Who acts in the calls of this client."""
        return Principal(self.name, thread=self.thread, kind="agent")


class Callers:
    """The clients of one server."""

    def __init__(
        self,
        person: str,
        *,
        clock: Callable[[], float] = time.time,
        token_names: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """`person` is the name of the person for whom the server runs: no client gets this name. `token_names` returns
        the names of the clients with a token: no client over stdio gets one of these, because it needs no token to say
        a name."""
        self._person = person
        self._token_names = token_names
        self._clock = clock
        self._pipe = new_thread_id()
        self._pipe_name: str | None = None

    def principal_of(self, context: ServerRequestContext[Any, Any]) -> Principal:
        """Who acts in a request."""
        return self.of(context).principal

    def of(self, context: ServerRequestContext[Any, Any]) -> Caller:
        """The client that makes this request. Raises `PermissionError` if an HTTP request brought no checked token."""
        software = _software(context)
        if context.request is None:
            return self._over_stdio(context.meta, software)
        token: ClientToken | None = context.request.scope.get(SCOPE_KEY)
        if token is None:  # Only a route that bypasses `http_guard` gets here.
            raise PermissionError("this request has no token")
        key = f"token:{token.id}"
        named = thread_name(context.meta)
        session = context.request.headers.get(SESSION_HEADER)
        if named is not None:
            thread = thread_of(key, "named", named)
        elif session is not None:
            thread = thread_of(key, "session", session)
        else:
            thread = thread_of(key, "day", str(int(self._clock() // _DAY)))
        return Caller(token.name, key, thread, software)

    def _over_stdio(self, meta: Mapping[str, Any] | None, software: str) -> Caller:
        if self._pipe_name is None and software:
            self._pipe_name = self._name_of(software)
        name = self._pipe_name or self._name_of(_NAMELESS)
        key = f"stdio:{name}"
        named = thread_name(meta)
        return Caller(name, key, self._pipe if named is None else thread_of(key, "named", named), software)

    def _name_of(self, software: str) -> str:
        """The name of a client over stdio. Its runs must look neither like runs of the person, nor like runs of a
        client that has a token."""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", software)[:_LONGEST_NAME]
        taken = self._token_names()
        if name == self._person:
            name = f"{name}-client"
        while name in taken:
            name = f"{name}-stdio"
        return name


def thread_of(key: str, kind: str, name: str) -> ThreadId:
    """haft's thread for a name that a client or its transport gave. The same client and name always give the same
    thread, and no other client can reach it."""
    told = json.dumps(["haft thread", key, kind, name]).encode()
    return ThreadId(f"T-{uuid.UUID(bytes=hashlib.sha256(told).digest()[:16], version=5)}")


def thread_name(meta: Mapping[str, Any] | None) -> str | None:
    """The name of the conversation that a client sent in `_meta`; None if it sent none."""
    if not meta:
        return None
    turn = meta.get("x-codex-turn-metadata")
    if isinstance(turn, str):
        try:
            turn = json.loads(turn)
        except (ValueError, RecursionError):
            turn = None
    named = (
        meta.get("haft/thread"),
        meta.get("threadId"),
        turn.get("thread_id") if isinstance(turn, Mapping) else None,
    )
    return next((name for name in named if isinstance(name, str) and 0 < len(name) <= _LONGEST_THREAD), None)


def _software(context: ServerRequestContext[Any, Any]) -> str:
    params = context.session.client_params
    return "" if params is None else params.client_info.name[:_LONGEST_NAME]
