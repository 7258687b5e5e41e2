"""The head: how far the audit log goes, in a file of its own, sealed with a key of this state home.

It is moved twice for each write: first it announces the last line to come, then it counts the lines that are there.
Each move is a single write in place of less than a disk's sector. The head of the first format announced only groups of
lines.
"""

from __future__ import annotations

import functools
import os
from typing import Final

from haft.audit.lines import ZERO, seal_of
from haft.storage import AuditLog
from haft.values import dataclass

_MARK: Final = b"haft-head-2"


@functools.cache
def boot_id() -> str:
    """What tells this start of the machine from others, as far as the system says."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read(36).strip().decode("ascii").ljust(36, "-")
    except (OSError, UnicodeDecodeError):
        return "-" * 36


@dataclass(frozen=True, slots=True)
class Head:
    """What the head file says."""

    seq: int
    hash: str
    """Of the last line that was written whole."""
    announced: int
    """The number that the last line of a write under way will have; else `seq`."""
    announced_hash: str
    announced_size: int = 0
    """The size of the log after that write."""
    sealed_from: int | None = 1
    """The number of the first line with a seal; None in the first format."""
    boot: str = ""
    """The start of the machine in which it was written."""
    genuine: bool = True
    """Whether the seal is right."""

    def to_bytes(self, key: bytes) -> bytes:
        words = b"%020d %s %020d %s" % (self.seq, self.hash.encode(), self.announced, self.announced_hash.encode())
        if self.sealed_from is not None:
            more = (self.announced_size, self.sealed_from, self.boot.encode())
            words = b"%s %s %020d %020d %s" % (_MARK, words, *more)
        return b"%s %s\n" % (words, seal_of(key, words))


def read_head(log: AuditLog) -> Head | None:
    """The head as it stands, None where there is none."""
    text = log.head()
    if not text:
        return None
    words, _, seal = text.partition(b"\n")[0].rpartition(b" ")
    key = log.key()
    genuine = key is not None and seal_of(key, words) == seal
    try:
        mark, *rest = words.split()
        if mark != _MARK:
            seq, digest, announced, announced_digest = words.split()
            return Head(
                int(seq), digest.decode(), int(announced), announced_digest.decode(), sealed_from=None, genuine=genuine
            )
        seq, digest, announced, announced_digest, size, sealed_from, boot = rest
        return Head(
            int(seq),
            digest.decode(),
            int(announced),
            announced_digest.decode(),
            int(size),
            int(sealed_from),
            boot.decode(),
            genuine,
        )
    except ValueError:
        return Head(0, "", 0, "", genuine=False)


def made_key(log: AuditLog) -> bytes:
    """The key, made at first use together with a head that knows no records, so that a head which is missing later was
    removed. A key that is made for a log which has lines already seals nothing: the old head then shows it."""
    with log.turn():
        key = log.key()
        if key is None:
            key = os.urandom(32)
            if log.size() == 0:
                log.set_head(Head(0, ZERO, 0, ZERO, boot=boot_id()).to_bytes(key))
            log.set_key(key)
        return key
