"""A storage has a method for everything that its ports ask for: what it only inherits from a port does nothing."""

import pytest

from haft.storage import (
    ApprovalStore,
    AuditLog,
    Connection,
    Lease,
    Leases,
    Ledger,
    PinStore,
    RuleStore,
    RunStore,
    Stores,
)

COMPLETE = {"find", "checkpoint", "set_checkpoint"}
"""Those that a port has itself."""


@pytest.mark.parametrize(
    ("port", "made"),
    [
        (Stores, lambda stores: stores),
        (Connection, lambda stores: stores.connect()),
        (RunStore, lambda stores: stores.connect().runs),
        (Ledger, lambda stores: stores.connect().ledger),
        (ApprovalStore, lambda stores: stores.connect().approvals),
        (RuleStore, lambda stores: stores.connect().rules),
        (PinStore, lambda stores: stores.connect().pins),
        (Leases, lambda stores: stores.leases()),
        (Lease, lambda stores: next(stores.leases().dead(None))),
        (AuditLog, lambda stores: stores.audit_log()),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_every_method_of_a_port_is_there(stores, port, made):
    stores.leases().take().release(done=False)
    kind = type(made(stores))
    asked = {name for name in vars(port) if not name.startswith("_")} - COMPLETE
    assert {name for name in asked if getattr(kind, name, None) is vars(port)[name]} == set()
