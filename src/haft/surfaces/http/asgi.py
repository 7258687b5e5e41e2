"""The types of ASGI, and the keys under which the routes find in the scope what the guard put there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

IDENTITY: Final = "haft.identity"
"""The `Identity` that makes the request; None where a route is public and nobody signed in."""
TRACE: Final = "haft.trace"
"""The trace id of the request: 32 hexadecimal digits."""
ROUTE: Final = "haft.route"
"""The route that answers: a `GuardedRoute` or `GuardedMount`; missing until one was found."""
