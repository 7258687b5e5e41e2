"""The checkpoint: up to where the audit log was found intact, so that the next check can begin there.

The checkpoint lies beside the head and is sealed with the same key: no tool can make one, because no tool sees the
state home. If somebody restores an older checkpoint, the next check only takes longer. Changes of the lines before it
are found only by a check of the whole log. A log without the checkpoint's line is not the log that was checked.
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
    """The last line that was checked."""

    seq: int
    hash: str
    start: int
    """Its position in the log."""


def read_checkpoint(log: AuditLog) -> Checkpoint | None:
    """The last checkpoint that was made with this key; None if there is none."""
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
