"""The port (storage interface) of request keys: which runs a request began that a client may send twice.

A client gives each request a key of its own. The key is stored before the runs begin, so whoever sends the same request
again gets the same runs, also after a restart.
"""

from __future__ import annotations

from typing import Protocol

from haft.contracts import HostId, RunId
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with a key."""

    key: str
    """A digest of the key and of whoever sent it."""
    request: str
    """A digest of what was asked."""
    runs: tuple[RunId, ...]
    """The ids of the runs that the request begins."""
    host: HostId
    """The host in which the runs begin."""
    at: float


class RequestKeys(Protocol):
    """The request keys of a state home. Any thread of the process may use this object."""

    def claim(self, wanted: KeyedRequest, since: float) -> KeyedRequest:
        """Store a request, unless its key is taken by one that was stored at the time `since` or later. Returns the
        request that has the key now. Older requests are forgotten."""
        ...

    def take_over(self, key: str, of: HostId, to: HostId) -> bool:
        """Make the request of this key one of the host `to`. Returns False if it is not one of the host `of` any
        more: if several processes try it, only one succeeds."""
        ...

    def forget(self, key: str) -> None:
        """Free a key."""
        ...
