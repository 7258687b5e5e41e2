"""How far the audit log was found intact, so that the next look can begin there.

The checkpoint lies beside the head, under a seal of the same key: no tool can make one, since none sees the state home.
An older one that somebody puts back only makes the next look longer. What becomes of the lines before it afterwards is
seen by whoever checks the whole log. A log that does not have its line any more is not the one that was checked.
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
    """Where it begins in the log."""


def read_checkpoint(log: AuditLog) -> Checkpoint | None:
    """The one that was made last with this key; None where there is none."""
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
    """Put it in place of the one before."""
    words = b"%s %d %s %d" % (_MARK, reached.seq, reached.hash.encode(), reached.start)
    log.set_checkpoint(b"%s %s\n" % (words, seal_of(key, words)))
