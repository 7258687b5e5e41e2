"""Reads the state home without a host: for processes that look at runs and make no calls.

Every reader first marks the runs of killed hosts as ended, so that no dead run looks open. Reading never creates a
state home.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os

from haft.audit import Redactor, Trail, secret_values
from haft.contracts import BadConfig, StorageFailed
from haft.runs import History
from haft.service.changes import ChangesFacade
from haft.service.recovery import recover_into
from haft.storage import StateHome, open_stores


def has_state(home: StateHome) -> bool:
    """Whether a host ever used this state home. Checks the journals, because they exist before the database does."""
    if os.path.lexists(home.path):
        if not os.path.isdir(home.path):
            raise BadConfig(f"the state home {home.path} is not a directory", hint="set HAFT_HOME")
        if not os.access(home.path, os.R_OK | os.X_OK):
            cause = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            raise StorageFailed(f"the state home {home.path} cannot be read", cause)
    return os.path.isdir(home.hosts) and os.path.isdir(home.audit)


def recover_dead_hosts(home: StateHome) -> int:
    """End the runs of killed hosts, and return how many there were."""
    if not has_state(home):
        return 0
    with contextlib.ExitStack() as ending:

        @functools.cache
        def trail() -> Trail:
            opened = Trail(open_stores(home).audit_log(), Redactor(secret_values(os.environ)))
            ending.callback(opened.close)
            return opened

        return recover_into(home, None, trail)


def open_history(home: StateHome) -> History | None:
    """The history of runs; None if no host ever used this state home."""
    return History(home) if has_state(home) else None


def open_changes(home: StateHome) -> ChangesFacade | None:
    """The change sets; None if no host ever used this state home."""
    return ChangesFacade(home) if has_state(home) else None
