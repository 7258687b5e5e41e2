"""What all routes of one server share: its workspaces, who may enter, and whether it is ready."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from haft.service import LOOPBACK_NAMES, RequestCounts
from haft.values import dataclass, field

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from haft.service import Identity, ServedWorkspaces, StateHome
    from haft.surfaces.http.asgi import Scope


class Authenticator(Protocol):
    """Finds out who makes a request."""

    async def identity_of(self, scope: Scope) -> Identity | None:
        """The identity of a request, from its `Authorization` header or its cookie; None if it has none that is good
        now."""
        ...

    async def is_valid(self, identity: Identity) -> bool:
        """Whether this identity is still good: False once its token is revoked, or its session has ended."""
        ...


class Readiness:
    """Whether the server takes new requests."""

    def __init__(self) -> None:
        self.reason: str | None = None
        """Why it does not; None while it does."""

    @property
    def is_ready(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits that protect the server from its clients."""

    body_bytes: int = 32_000_000
    """The longest request. haft's own tools take files of 10 MB, which are longer in JSON."""
    open_requests: int = 200
    """How many requests of one identity can be open at once, so that each leaves room for the others."""


@dataclass
class Server:
    """One server. Its routes get it from `scope["app"].state.server`, or when they are made."""

    workspaces: ServedWorkspaces
    authenticator: Authenticator
    home: StateHome
    names: frozenset[str] = LOOPBACK_NAMES
    """The host names under which this server is reached. Any port will do, because ports can be forwarded."""
    has_tls: bool = False
    """Whether browsers reach this server over TLS, here or at a proxy."""
    limits: ServerLimits = field(default_factory=ServerLimits)
    readiness: Readiness = field(default_factory=Readiness)
    resumes: bool = False
    """Whether calls that wait for a person outlive this server, so that the next one goes on with them."""
    requests: RequestCounts = field(default_factory=RequestCounts)
    """Counts the HTTP requests, for metrics."""
    hub: Any = None
    """The hub of the event streams."""
    more_routes: tuple[Callable[[Server], list[BaseRoute]], ...] = ()
    """Further routes, such as MCP, each made when the application is."""
