"""The head: the end of the audit log, in a separate file, sealed with a key of this state home.

Each write updates the head twice: the first update announces the last line to come, the second counts the lines that
were written. Each update overwrites the head in place with one write that is smaller than a disk sector. In the first
format, haft announced only writes of several lines.
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
    """An identifier that changes with every boot of the machine; empty if the system provides none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read(36).strip().decode("ascii").ljust(36, "-")
    except (OSError, UnicodeDecodeError):
        return "-" * 36


@dataclass(frozen=True)
class Head:
    """The content of the head file."""

    seq: int
    hash: str
    """The hash of the last line that was written completely."""
    announced: int
    """The number of the last line of a write in progress; the same as `seq` if there is none."""
    announced_hash: str
    announced_size: int = 0
    """The size of the log after the announced write."""
    sealed_from: int | None = 1
    """The number of the first line with a seal; None in the first format."""
    boot: str = ""
    """The `boot_id` of the machine when this head was written."""
    genuine: bool = True
    """Whether the seal of this head matches its content."""

    def to_bytes(self, key: bytes) -> bytes:
        words = b"%020d %s %020d %s" % (self.seq, self.hash.encode(), self.announced, self.announced_hash.encode())
        if self.sealed_from is not None:
            more = (self.announced_size, self.sealed_from, self.boot.encode())
            words = b"%s %s %020d %020d %s" % (_MARK, words, *more)
        return b"%s %s\n" % (words, seal_of(key, words))


def read_head(log: AuditLog) -> Head | None:
    """The head of a log; None if there is none."""
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


def get_or_create_key(log: AuditLog) -> bytes:
    """The key of a log. The first use makes the key together with an empty head, so if a head is missing later, someone
    removed it. If somebody removed the key of a log with lines, the new key does not match the old head, and a check
    reports that."""
    with log.turn():
        key = log.key()
        if key is None:
            key = os.urandom(32)
            if log.size() == 0:
                log.set_head(Head(0, ZERO, 0, ZERO, boot=boot_id()).to_bytes(key))
            log.set_key(key)
        return key
