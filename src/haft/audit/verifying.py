"""Checking the audit log from its first line to its head. It names the first line that is not what was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from haft.audit.head import read_head
from haft.audit.lines import ZERO
from haft.audit.walk import Walk, raw_lines
from haft.storage import AuditLog


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `haft audit verify` found."""

    intact: bool
    records: int
    """How many are good, from the first on."""
    head: str
    """The hash of the last good record: keep it elsewhere to prove more."""
    problem: str | None = None
    """What is wrong, naming the record."""
    torn: tuple[int, ...] = field(default=())
    """Records that vouch for a line torn by a crash: harmless, and said."""
    interrupted: str | None = None
    """What a crash left at the end, where nobody has written since: harmless, and said."""

    def to_json(self) -> dict[str, Any]:
        return {
            "intact": self.intact,
            "records": self.records,
            "head": self.head,
            "problem": self.problem,
            "torn": list(self.torn),
            "interrupted": self.interrupted,
        }


def verify(log: AuditLog) -> Verdict:
    """Walk the whole record and compare with its head."""
    # Looked for first: the record is made before its head and key, so who finds these must find that.
    has_begun = read_head(log) is not None or log.key() is not None
    if not log.exists():
        if not has_begun:
            return Verdict(intact=True, records=0, head=ZERO)
        return Verdict(intact=False, records=0, head=ZERO, problem="the record is missing, its head or key is there")
    with log.turn():  # As they stand at one moment, between two writers.
        head, size = read_head(log), log.size()
    key = log.key()
    if size == 0 and key is None and (head is None or head.seq == 0):
        return Verdict(intact=True, records=0, head=ZERO)  # The first writer is about to begin, or died before it did.
    walk = Walk(head, key)
    problem = next((found for raw in raw_lines(log, end=size) if (found := walk.step(raw)) is not None), None)
    if problem is None:
        problem = walk.end(size)
    return Verdict(problem is None, walk.seq, walk.hash, problem, tuple(walk.torn), walk.interrupted)
