"""Storage: ports for everything that is kept, the SQLite implementation, and the files that only grow.

`open_stores` gives the packages above an implementation; none of them sees which. It knows tables and bytes, not what
they mean. Names are fetched when they are first used: whoever only asks where the state home lies must not pay for a
database.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.storage.appended import AppendedFile
    from haft.storage.definitions import KeptDefinitions
    from haft.storage.encoding import decode, encode, fragment
    from haft.storage.home import StateHome, default_home
    from haft.storage.opening import open_stores
    from haft.storage.ports.approvals import Answered, ApprovalStore, Waiting, digest_of
    from haft.storage.ports.audit_log import AuditLog
    from haft.storage.ports.change_sets import Ledger, Row, Verb
    from haft.storage.ports.leases import Lease, Leases
    from haft.storage.ports.remembered import KeptPin, KeptRule, PinStore, RuleStore
    from haft.storage.ports.runs import Filter, RunStore
    from haft.storage.ports.stores import Connection, Health, Stores

__getattr__ = face(
    __name__,
    {
        "appended": "AppendedFile",
        "definitions": "KeptDefinitions",
        "encoding": "decode encode fragment",
        "home": "StateHome default_home",
        "opening": "open_stores",
        "ports.approvals": "Answered ApprovalStore Waiting digest_of",
        "ports.audit_log": "AuditLog",
        "ports.change_sets": "Ledger Row Verb",
        "ports.leases": "Lease Leases",
        "ports.remembered": "KeptPin KeptRule PinStore RuleStore",
        "ports.runs": "Filter RunStore",
        "ports.stores": "Connection Health Stores",
    },
)
