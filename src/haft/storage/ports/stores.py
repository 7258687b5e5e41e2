"""The port of a whole storage: everything that a state home keeps but the files of its workspaces and outputs."""

from __future__ import annotations

from typing import Protocol

from haft.storage.ports.approvals import ApprovalStore
from haft.storage.ports.audit_log import AuditLog
from haft.storage.ports.change_sets import Ledger
from haft.storage.ports.leases import Lease, Leases
from haft.storage.ports.remembered import PinStore, RuleStore
from haft.storage.ports.runs import RunStore
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """What `haft doctor` says of a storage."""

    words: str
    is_sound: bool = True
    hint: str | None = None


class Connection(Protocol):
    """One line to what is kept, opened by its first use. Any thread may use it: they take turns."""

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

    def version(self) -> object:
        """A value that is another one after anything was written through another connection. It costs little."""
        ...

    def close(self) -> None:
        """Let go. The next use opens it again."""
        ...


class Stores(Protocol):
    """The storage of one state home. Making it touches nothing."""

    def connect(self, lease: Lease | None = None) -> Connection:
        """A new line. Who waits for nobody has one of its own. Every write through a line with a lease is refused, with
        `LeaseLost`, once someone took that lease over."""
        ...

    def leases(self) -> Leases: ...

    def audit_log(self, lease: Lease | None = None) -> AuditLog:
        """The audit log, neither opened nor made yet. Who writes under a lease that was lost gets no turn."""
        ...

    def exists(self) -> bool:
        """Whether anything was ever kept here."""
        ...

    def health(self) -> Health:
        """Whether this machine can do what the storage needs, and whether what is kept is sound."""
        ...
