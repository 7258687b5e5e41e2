"""Checks the audit log line by line: finds the first line that was changed, and incomplete lines that a crash left.

`verify` checks the whole log. A writer checks the end of the log before it continues, so that it never confirms lines
that others put there.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from typing import Any, Final

from haft.audit.head import Head, boot_id
from haft.audit.lines import ZERO, Line, begins_line, is_sealed_with, is_whole, parse_line
from haft.storage import AuditLog, decode

_PIECE: Final = 1 << 16


def raw_lines(log: AuditLog, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield every line from the position `start` up to `end`, with its newline; an incomplete last line has none."""
    with io.BufferedReader(_Bytes(log, start), 1 << 20) as file:
        seen = start
        for raw in file:
            seen += len(raw)
            if end is not None and seen > end:
                return
            yield raw


def last_raw_lines(log: AuditLog) -> Iterator[bytes]:
    """Yield every line, the last one first. Reads only as much of the log as needed."""
    at, rest = log.size(), b""
    while at:
        start = max(0, at - _PIECE)
        data = log.read(start, at) + rest
        at = start
        # The first line may have begun earlier.
        rest = data[: data.find(b"\n") + 1] or data if at else b""
        yield from reversed(list(io.BytesIO(data[len(rest) :])))


class _Bytes(io.RawIOBase):
    """A log as a binary file object."""

    def __init__(self, log: AuditLog, start: int) -> None:
        self._log = log
        self._at = start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._log.read(self._at, self._at + len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def body_of(line: Line) -> dict[str, Any]:
    """The record in a line; an empty dictionary if the record cannot be decoded."""
    try:
        body = decode(line.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


class LineChecker:
    """The state of the check: the last good line, and the bytes after it that are not a line. If a crash left these
    bytes, the next line records their digest."""

    def __init__(self, head: Head | None, key: bytes | None) -> None:
        self.seq = 0
        self.hash = ZERO
        self.torn: list[int] = []
        self.interrupted: str | None = None
        """A sentence about an announced write that a crash interrupted, or None; known after `end`."""
        self._head = head
        self._key = key
        self._known = {} if head is None else {head.seq: ZERO, head.announced: ZERO}
        """The hashes of the lines that the head names."""
        self.torn_bytes: bytes | None = None
        self._torn_problem = ""

    def begin_at(self, line: Line) -> None:
        """Accept `line` as good and continue after it."""
        self.seq, self.hash = line.seq, line.hash
        if line.seq in self._known:
            self._known[line.seq] = line.hash

    def step(self, raw: bytes) -> str | None:
        """Check the next line. Returns the problem, or None."""
        line = parse_line(raw[:-1]) if raw.endswith(b"\n") else None
        if line is None or not is_whole(line):
            # The line was changed, or a crash tore it. If a crash tore it, the next good line confirms that.
            if self.torn_bytes is None:
                self.torn_bytes, self._torn_problem = raw.removesuffix(b"\n"), self._damage(line)
            else:
                self.torn_bytes += b"\n" + raw.removesuffix(b"\n")
            return None
        body = body_of(line)
        if self.torn_bytes is not None:
            if body.get("type") != "torn" or body.get("sha256") != hashlib.sha256(self.torn_bytes).hexdigest():
                return self._torn_problem
            self.torn_bytes = None
            self.torn.append(line.seq)
        if line.seq != self.seq + 1:
            return self._out_of_order(line)
        if line.previous != self.hash:
            return f"record {line.seq}{_about(line)} does not follow record {self.seq}: one of them was changed"
        if (problem := self._seal_problem(line)) is not None:
            return problem
        if body.get("type") == "gap":
            return f"{body.get('problem')} before record {line.seq} was written"
        self.begin_at(line)
        return None

    def _seal_problem(self, line: Line) -> str | None:
        """The problem if a line has a wrong seal, or has none although it must have one. None if the seal is good."""
        head = self._head
        if head is None or not head.genuine or self._key is None:
            return None  # `end` reports these problems.
        if line.seal is None:
            if head.sealed_from is None or line.seq < head.sealed_from:
                return None
            return f"record {line.seq}{_about(line)} has no seal, but records from {head.sealed_from} on must have one"
        if is_sealed_with(line, self._key):
            return None
        return f"record {line.seq}{_about(line)} was not written with this state home's key"

    def _damage(self, line: Line | None) -> str:
        expected = self.seq + 1
        if line is None or line.seq != expected:
            return f"record {expected} cannot be read, and no later record confirms that a crash tore it"
        return f"record {expected}{_about(line)} was changed"

    def _out_of_order(self, line: Line) -> str:
        expected = self.seq + 1
        if line.seq > expected:
            return f"record {expected} is missing: record {line.seq}{_about(line)} stands in its place"
        return f"record {line.seq}{_about(line)} stands where record {expected} should be"

    def end(self, size: int) -> str | None:
        """Compare the end of a log of `size` bytes with the head. Returns the problem, or None."""
        head, seq = self._head, self.seq
        if head is None:
            return "the head is missing: haft cannot tell whether the end of the log was cut off"
        if not head.genuine:
            return "the head was changed: its seal does not match"
        if head.seq > seq:
            missing = f"record {seq + 1} is missing: the head counts {head.seq} records, the log has {seq}"
            return missing if self.torn_bytes is None else self._torn_problem
        if self._known[head.seq] != head.hash:
            return f"record {head.seq} is not the one that the head names"
        if head.announced > head.seq and seq >= head.announced and self._known[head.announced] != head.announced_hash:
            return f"record {head.announced} is not the one that was announced"
        if head.sealed_from is None:
            return self._behind_old_head(head)
        return self._behind(head, size)

    def _behind(self, head: Head, size: int) -> str | None:
        """Check the bytes after the last line that the head counts. Only the beginning of an announced write may be
        there. After a power failure, the head on disk may be older than the log. So if the machine was restarted, lines
        with a seal of this state home are accepted too, and after them the beginning of one more line. Returns the
        problem, or None."""
        older = head.boot != boot_id()
        if self.seq > head.announced and not older:
            return (
                f"record {head.announced + 1} was added after the head, "
                f"which counts {head.announced} of {self.seq} records"
            )
        if self.torn_bytes is not None:
            is_announced = head.announced > self.seq and size <= head.announced_size
            if not (is_announced or older) or not self._is_beginning(self.torn_bytes, may_be_empty=older):
                return f"bytes that haft did not write were added after record {self.seq}"
        if self.torn_bytes is not None or self.seq < head.announced:
            last = max(head.announced, self.seq + 1)
            self.interrupted = f"the write of record {last} was announced, but interrupted after record {self.seq}"
        return None

    def _is_beginning(self, torn: bytes, *, may_be_empty: bool) -> bool:
        assert self._key is not None
        begun = torn.rstrip(b"\0") if may_be_empty else torn  # Zeros are blocks that the file system never wrote.
        if torn and not begun:
            return True
        return all(begins_line(piece, self._key, self.seq + 1, self.hash) for piece in begun.split(b"\n"))

    def _behind_old_head(self, head: Head) -> str | None:
        """Like `_behind`, for a head of the first format. In that format, haft did not announce the write of a single
        line, so a crash may have left one line that the head does not count, and any bytes after that line. Returns the
        problem, or None."""
        if self.seq > max(head.seq + 1, head.announced):
            return f"record {head.seq + 2} was added after the head, which counts {head.seq} of {self.seq} records"
        if self.seq > head.announced:
            self.interrupted = (
                f"record {self.seq} was not announced: the old format cannot distinguish a crash from a forgery"
            )
        elif self.torn_bytes is not None:
            self.interrupted = f"{len(self.torn_bytes):_} bytes after record {self.seq} are not a record"
        return None


def _about(line: Line) -> str:
    run = body_of(line).get("run")
    return f" (run {run})" if run else ""
