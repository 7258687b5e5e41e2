"""Checking the audit log from its first line to its head. It names the first line that is not what was written."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from haft.audit.head import LOCK_SECONDS, Head, read_head, read_key
from haft.audit.lines import ZERO
from haft.audit.walk import Walk, raw_lines
from haft.contracts import StorageFailed
from haft.files import locked


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


def snapshot(directory: str) -> tuple[Head | None, int]:
    """The head and the size of the record as they stood at one moment, between two writers."""
    path = os.path.join(directory, "record.log")
    try:
        descriptor = os.open(os.path.join(directory, "head"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, os.path.getsize(path)
    try:
        with locked(descriptor, LOCK_SECONDS):
            return read_head(directory), os.path.getsize(path)
    except TimeoutError as error:
        raise StorageFailed("the record is locked by another process", error) from error
    finally:
        os.close(descriptor)


def verify(directory: str) -> Verdict:
    """Walk the whole record and compare with its head."""
    path = os.path.join(directory, "record.log")
    # Looked for first: the record is made before its head and key, so who finds these must find that.
    has_begun = read_head(directory) is not None or read_key(directory) is not None
    if not os.path.exists(path):
        if not has_begun:
            return Verdict(intact=True, records=0, head=ZERO)
        return Verdict(intact=False, records=0, head=ZERO, problem="the record is missing, its head or key is there")
    head, size = snapshot(directory)
    key = read_key(directory)
    if size == 0 and key is None and (head is None or head.seq == 0):
        return Verdict(intact=True, records=0, head=ZERO)  # The first writer is about to begin, or died before it did.
    walk = Walk(head, key)
    problem = next((found for raw in raw_lines(path, size) if (found := walk.step(raw)) is not None), None)
    if problem is None:
        problem = walk.end(size)
    return Verdict(problem is None, walk.seq, walk.hash, problem, tuple(walk.torn), walk.interrupted)
