"""The port of leases: a host's claim on its runs, from its start to its end.

A lease carries a fencing number. Whoever takes over from a dead host gets a higher one, and from then on every write
under the old number is refused, also one of a host that only slept. Locally the kernel says who is dead: a lock that
ends with its process. Over a network only time can: a lease that its host did not renew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from haft.contracts import HostId


class Lease(Protocol):
    """A lease that this process holds."""

    host: HostId
    number: int
    """Higher than that of every earlier holder of this host's lease."""
    facts: Mapping[str, Any]
    """What was told of the host so far, also by earlier holders."""

    def check(self) -> None:
        """`LeaseLost` where the lease may have been lost by now. Cheap: it asks no other machine."""
        ...

    def tell(self, facts: Mapping[str, Any]) -> None:
        """Let other processes know this of the host, besides its process and version; it stands in for what was told
        before. Nobody relies on it: where the disk is full, nothing is told."""
        ...

    def release(self, *, done: bool) -> None:
        """Let go. With `done`, nothing is left to see to; else the host counts as dead. A lease that was lost stays
        with its new holder."""
        ...


class Leases(Protocol):
    """The leases of a state home."""

    def take(self) -> Lease:
        """The lease of a new host. `BadConfig` where what is kept has a format that this haft cannot work with, or may
        not change because of a host that lives; `StorageFailed` where nothing can be written."""
        ...

    def dead(self, own: HostId | None) -> Iterator[Lease]:
        """The lease of each dead host but `own`, taken over: of all who ask, one gets it."""
        ...

    def live(self) -> Iterator[tuple[HostId, dict[str, Any]]]:
        """Each host that lives, and what it told of itself. It has `pid`, `version` (of haft) and `format` (of what is
        kept) unless it is of a version that did not tell them."""
        ...

    def is_alive(self, host: HostId) -> bool: ...
