"""The port (storage interface) of leases. A lease is a host's claim on its runs, from the start to the end of the host.

A lease has a fencing number. A process that takes over the lease of a dead host gets a higher number. From then on
every write with the old number is refused, also a write of a host that was not dead, but only slept. On one machine the
kernel tells that a host is dead, by a lock that ends with its process. Over a network only time can tell: a host is
taken for dead if it has not renewed its lease.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from haft.contracts import HostId


class Lease(Protocol):
    """A lease that this process holds."""

    host: HostId
    number: int
    """The fencing number, higher than that of every earlier holder of this host's lease."""
    facts: Mapping[str, Any]
    """The facts about the host that were published so far, also by earlier holders."""

    def check(self) -> None:
        """Raise `LeaseLost` if the lease may have been lost. Cheap: it asks no other machine."""
        ...

    def tell(self, facts: Mapping[str, Any]) -> None:
        """Publish facts about the host to other processes, besides its pid and version. New facts replace earlier ones.
        Do not rely on facts: if the disk is full, nothing is published."""
        ...

    def release(self, *, done: bool) -> None:
        """Release the lease. With `done`, no recovery is needed; without it, the host counts as dead. A lost lease
        stays with its new holder."""
        ...


class Leases(Protocol):
    """The leases of a state home."""

    def take(self) -> Lease:
        """The lease of a new host. Raises `BadConfig` if the stored data has a format that this haft cannot use, or
        that it may not upgrade because another host is alive. Raises `StorageFailed` if nothing can be written."""
        ...

    def dead(self, own: HostId | None) -> Iterator[Lease]:
        """Take over the lease of each dead host except `own`. If several processes try, only one of them gets each
        lease."""
        ...

    def live(self) -> Iterator[tuple[HostId, dict[str, Any]]]:
        """Each host that is alive, and its facts. These have `pid`, `version` (of haft) and `format` (of the stored
        data), except for hosts of early versions of haft, which did not publish these facts."""
        ...

    def is_alive(self, host: HostId) -> bool: ...
