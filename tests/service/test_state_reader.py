"""Whoever only reads a state home leaves no trace in it."""

import os

from haft.service import recover_dead_hosts
from haft.storage import StateHome, open_stores


def test_the_audit_log_is_not_opened_for_writing_where_no_host_was_killed(tmp_path):
    home = StateHome(str(tmp_path / "home"))
    home.prepare()
    lease = open_stores(home).leases().take()
    assert recover_dead_hosts(home) == 0
    assert os.listdir(home.audit) == []
    lease.release(done=True)
