"""`haft store verify`: checks all of a state home: the database, every kept content, the audit log, and that every run
which can be undone really can."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from haft.changes import Blobs, DamagedBlob, broken_promises
from haft.service.audit_log import AuditLogFacade
from haft.storage import StateHome, open_stores
from haft.values import dataclass

MOST_NAMED: Final = 100


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """Something that is wrong, and what it means."""

    part: str
    """database | contents | audit log | undo"""
    what: str

    def to_json(self) -> dict[str, str]:
        return {"part": self.part, "what": self.what}


@dataclass(frozen=True, slots=True)
class StoreVerdict:
    """The result of the check."""

    contents: int
    """How many contents were compared with their digests."""
    records: int
    """How many records the audit log has."""
    undoable: int
    """How many runs were found that can be undone."""
    problems: tuple[StoreProblem, ...]

    @property
    def intact(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        return {
            "intact": self.intact,
            "contents": self.contents,
            "records": self.records,
            "undoable": self.undoable,
            "problems": [each.to_json() for each in self.problems],
        }


def verify_store(home: StateHome) -> StoreVerdict:
    """Check a state home. Reads everything; calls go on meanwhile."""
    stores = open_stores(home)
    problems = []
    if (wrong := stores.problem()) is not None:
        problems.append(StoreProblem("database", wrong))
    contents, damaged = _check_contents(Blobs(home.blobs))
    problems += [StoreProblem("contents", f"{digest} is not what its name says") for digest in damaged]
    verdict = AuditLogFacade(home).verify()
    if not verdict.intact:
        problems.append(StoreProblem("audit log", str(verdict.problem)))
    undoable = 0
    if wrong is None:
        with contextlib.closing(stores.connect()) as connection:
            broken = list(broken_promises(home.changes, connection.ledger, Blobs(home.blobs)))
            undoable = sum(count for count, _oldest in connection.ledger.undoable().values())
        undoable -= sum(row.state == "committed" for row, _reason in broken)
        problems += [StoreProblem("undo", f"{row.run} cannot be undone: {reason}") for row, reason in broken]
    return StoreVerdict(contents, verdict.records, undoable, tuple(problems[:MOST_NAMED]))


def _check_contents(blobs: Blobs) -> tuple[int, list[str]]:
    count, damaged = 0, []
    for digest in blobs.digests():
        count += 1
        try:
            blobs.check(digest)
        except FileNotFoundError:
            count -= 1  # Pruned meanwhile.
        except (DamagedBlob, OSError, ValueError):
            damaged.append(digest)
    return count, damaged
