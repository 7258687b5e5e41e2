"""The port (interface) of a whole storage: all data of a state home except the files of workspaces and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from haft.storage.ports.approvals import ApprovalStore
from haft.storage.ports.audit_log import AuditLog
from haft.storage.ports.change_sets import Ledger
from haft.storage.ports.leases import Lease, Leases
from haft.storage.ports.request_keys import RequestKeys
from haft.storage.ports.rules_and_pins import PinStore, RuleStore
from haft.storage.ports.runs import RunStore
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a storage, for `haft doctor`."""

    summary: str
    is_sound: bool = True
    hint: str | None = None


class Connection(Protocol):
    """A connection to the storage, opened on first use. Any thread of the process may use it; only one thread at a time
    accesses the data."""

    @property
    def runs(self) -> RunStore: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def approvals(self) -> ApprovalStore: ...

    @property
    def rules(self) -> RuleStore: ...

    @property
    def pins(self) -> PinStore: ...

    @property
    def request_keys(self) -> RequestKeys: ...

    def version(self) -> object:
        """A value that changes when anything was written through another connection. Cheap."""
        ...

    def close(self) -> None:
        """Close the connection. The next use opens it again."""
        ...


class Stores(Protocol):
    """The storage of one state home. Creating this object accesses no data."""

    def connect(self, lease: Lease | None = None) -> Connection:
        """A new connection. Code that must not wait for other threads uses a connection of its own. With a lease, every
        write raises `LeaseLost` after another process took that lease over."""
        ...

    def leases(self) -> Leases: ...

    def audit_log(self, lease: Lease | None = None) -> AuditLog:
        """The audit log, neither opened nor made yet. With a lease, `turn` fails after the lease was lost."""
        ...

    def exists(self) -> bool:
        """Whether anything was ever stored in this state home."""
        ...

    def health(self) -> Health:
        """Whether this machine supports the storage, and whether the stored data is intact."""
        ...

    def copy_to(self, path: str, fixing: AbstractContextManager[None]) -> None:
        """Write a consistent copy of the stored data into a new file, while others write. What it contains is fixed
        inside the context manager `fixing`."""
        ...

    def problem(self) -> str | None:
        """What is wrong with the stored data, after a check of all of it; None if nothing is."""
        ...

    def move_areas(self, places: Mapping[str, str]) -> None:
        """Note the new path of each area, in data that nobody else uses."""
        ...
