"""Keeps the store of changes within its size and age limits while a host runs: now and then, in a background thread."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.changes import Bounds, Transactions, is_due
from haft.config import Config, load_config
from haft.contracts import HaftError
from haft.storage import StateHome

if TYPE_CHECKING:
    from haft.service.store import Tidied

EVERY_COMMITS: Final = 200
EVERY_SECONDS: Final = 3_600.0
GRACE_SECONDS: Final = 2.0
"""How long a closing host lets pruning continue. Without this time, hosts that make a single call would never finish
pruning."""
_log = logging.getLogger("haft")


def bounds_of(config: Config, env: Mapping[str, str]) -> Bounds:
    """The limits that the user set for the store. Limits in the configuration of a workspace do not count: all
    workspaces share the store, so one workspace must not decide what can be undone in another."""
    own = load_config(None, env)

    def value(name: str) -> Any:
        return own.values[name] if config.sources[name] in config.files else config.values[name]

    return Bounds(value("changes.store_bytes"), value("changes.store_days"))


class Housekeeping:
    """Prunes the store now and then, in a background thread."""

    def __init__(self, home: StateHome, bounds: Bounds, transactions: Transactions) -> None:
        self._home = home
        self._bounds = bounds
        self._transactions = transactions
        self._commits = 0
        self._end: float | None = None
        transactions.on_commit = self._committed

    def stop(self) -> None:
        """Stop pruning within `GRACE_SECONDS`, because the host closes."""
        self._end = time.monotonic() + GRACE_SECONDS

    def _stopped(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def _committed(self) -> None:
        if self._commits % EVERY_COMMITS == 0:
            self._transactions.run_later(self._tidy)
        self._commits += 1

    def _tidy(self) -> None:
        home = self._home
        if self._stopped() or not is_due(home.changes, self._transactions.ledger, EVERY_COMMITS, EVERY_SECONDS):
            return
        from haft.service.retention import retention_of
        from haft.service.store import StoreFacade  # Most hosts never need this module.

        facade = StoreFacade(home, self._bounds, retention_of(os.environ))
        try:
            self._tell(facade.tidy(self._stopped))
        except HaftError:
            pass  # Another process prunes the store, or the database is busy. A later pass tries again.
        finally:
            facade.close()

    def _tell(self, done: Tidied) -> None:
        lost = [each.row.run for each in done.pruned.runs if each.row.verb == "call"]
        if lost:
            named = ", ".join(lost[:3]) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
            _log.warning(
                "%s can no longer be undone: `changes.store_bytes` is %d, `changes.store_days` %g",
                named,
                self._bounds.bytes,
                self._bounds.days,
            )
