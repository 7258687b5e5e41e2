"""The checkpoint: the last line up to which a check found the audit log intact, so that the next check can begin there.

The checkpoint lies beside the head and is sealed with the same key: no tool can forge a checkpoint, because no tool
sees the state home. If somebody restores an older checkpoint, the next check only takes longer. Only a check of the
whole log finds changes before the checkpoint. If the log does not contain the line of the checkpoint, it is not the log
that was checked.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

from haft.audit.lines import seal_of
from haft.storage import AuditLog

_MARK: Final = b"haft-checkpoint-1"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last line up to which a check found the log intact."""

    seq: int
    hash: str
    start: int
    """The position of this line in the log, in bytes."""


def read_checkpoint(log: AuditLog) -> Checkpoint | None:
    """The checkpoint of a log; None if there is none, or if it was not sealed with the log's key."""
    words, _, seal = log.checkpoint().removesuffix(b"\n").rpartition(b" ")
    key = log.key()
    if key is None or seal_of(key, words) != seal:
        return None
    with contextlib.suppress(ValueError):
        mark, seq, digest, start = words.split()
        if mark == _MARK:
            return Checkpoint(int(seq), digest.decode("ascii"), int(start))
    return None


def write_checkpoint(log: AuditLog, key: bytes, reached: Checkpoint) -> None:
    """Replace the checkpoint."""
    words = b"%s %d %s %d" % (_MARK, reached.seq, reached.hash.encode(), reached.start)
    log.set_checkpoint(b"%s %s\n" % (words, seal_of(key, words)))
