"""Removes runs that are older than `[retention]` says, with their outputs; the audit log keeps what they were.

A run that can be undone, or whose changes are held, stays as long as that is so: `changes.store_days` ends it. Before
anything is removed, the audit log gets a record of the type `retention`. The audit log itself is never shortened.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from haft.audit import Redactor, Trail
from haft.config import load_config
from haft.contracts import RunId, iso_time
from haft.runs import remove_output_of
from haft.service.principals import this_user
from haft.storage import StateHome, encode, open_stores
from haft.values import dataclass, field

DAY: Final = 86_400.0
AT_ONCE: Final = 500
NAMED: Final = 1_000
"""How many runs a record of the audit log names at most."""


@dataclass(frozen=True, slots=True)
class Retention:
    """For how many days something is kept; 0: for ever."""

    runs_days: float = 0
    workspaces: Mapping[str, float] = field(default_factory=dict)
    """Days for the runs of single workspaces."""

    def cuts(self, now: float) -> Iterator[tuple[str | None, tuple[str, ...], float]]:
        """For each workspace with days of its own, and then for all others: the workspace, the workspaces that do not
        count, and the time before which runs are removed."""
        for workspace, days in self.workspaces.items():
            if days:
                yield workspace, (), now - days * DAY
        if self.runs_days:
            yield None, tuple(self.workspaces), now - self.runs_days * DAY


def retention_of(environ: Mapping[str, str]) -> Retention:
    """What the user's own configuration says. That of a workspace does not count, because all share the state home."""
    values = load_config(None, environ).values
    own = values["retention.workspaces"].items()
    workspaces = {os.path.realpath(os.path.expanduser(path)): days for path, days in own}
    return Retention(values["retention.runs_days"], workspaces)


def remove_old_runs(home: StateHome, retention: Retention, *, dry_run: bool = False) -> int:
    """Remove the runs that are too old, and return how many there were. With `dry_run`, remove nothing."""
    count = 0
    stores = open_stores(home)
    if not stores.exists():
        return 0
    with contextlib.closing(stores.connect()) as connection:
        kept = {row.run for row in connection.ledger.all() if row.state == "held" or row.kept}
        for workspace, others, before in retention.cuts(time.time()):
            found = [run for run in connection.runs.ended_before(before, workspace, others) if run not in kept]
            count += len(found)
            for start in range(0, 0 if dry_run else len(found), AT_ONCE):
                some = found[start : start + AT_ONCE]
                _record(home, some, workspace, before)
                for run in some:
                    remove_output_of(home.outputs, run)
                connection.runs.remove(some)
    return count


def _record(home: StateHome, runs: list[RunId], workspace: str | None, before: float) -> None:
    entry: dict[str, Any] = {
        "type": "retention",
        "at": iso_time(time.time()),
        **this_user().to_json(),
        "removed": "runs",
        "before": iso_time(before),
        "workspace": workspace,
        "count": len(runs),
        "runs": runs[:NAMED],
    }
    with contextlib.closing(open_stores(home).audit_log()) as log:
        trail = Trail(log, Redactor())
        try:
            trail.append([encode(entry)])
        finally:
            trail.close()
