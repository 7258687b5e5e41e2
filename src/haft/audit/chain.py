"""The audit log on disk: an append-only file in which every line contains a hash of all lines before it.

A lock lets only one process write at a time. The *head* is a separate small file that names the last line of the log. A
writer first announces its write in the head: the number and hash of the last line to come, and the size of the log
afterwards. Then it writes all lines at once. Then it updates the head, and the caller gets its answer. So after a
crash, only the beginning of an announced write can stand after the last line that the head counts. Anything else after
that line was put there by others.

The chain proves order and integrity after writing. It does not prove that the writer is honest. It does not protect
against someone who knows or replaces the key, or who restores an older log with its older head and checkpoint. To find
such changes, keep a copy of the head in another place: `haft audit verify` prints the head.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence

from haft.audit.head import Head, boot_id, get_or_create_key, read_head
from haft.audit.line_checker import LineChecker, raw_lines
from haft.audit.lines import ZERO, Line, is_sealed_with, is_whole, next_line, parse_line
from haft.contracts import StorageFailed
from haft.storage import AuditLog, encode


class Chain:
    """The audit log, open for appending."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        try:
            log.begin()
            self._key = get_or_create_key(log)
        except OSError as error:
            self.close()
            raise StorageFailed("the audit log, its head or its key cannot be opened", error) from error
        except StorageFailed:
            self.close()
            raise
        self._end = -1
        """The size of the file when this process last wrote or read its end; if the file has another size now, other
        processes wrote to it."""
        self._seq = 0
        self._hash = ZERO
        self._sealed_from = 1

    def append(self, bodies: Sequence[bytes]) -> None:
        """Add records and update the head. Once this returns, the records survive `kill -9`."""
        try:
            with self._log.turn():
                self._append(bodies)
        except OSError as error:
            raise StorageFailed("the audit log cannot be written", error) from error

    def _append(self, bodies: Sequence[bytes]) -> None:
        try:
            if self._log.size() != self._end:
                self._catch_up()
            self._write(bodies)
        except BaseException:
            self._end = -1  # Unknown, so the next write reads the end of the log first.
            raise

    def _write(self, bodies: Sequence[bytes], behind: bytes = b"") -> None:
        """Announce one line for each body, write the lines, and update the head. `behind` is written first: it is a
        newline if the log does not end with a newline, otherwise empty."""
        before, seq, digest = (self._seq, self._hash), self._seq, self._hash
        pieces = [behind]
        for body in bodies:
            seq += 1
            line, digest = next_line(self._key, seq, digest, body)
            pieces.append(line)
        written = b"".join(pieces)
        end = self._end + len(written)
        self._move_head(*before, seq, digest, end)
        self._log.append(written)
        self._seq, self._hash, self._end = seq, digest, end
        self._move_head(seq, digest, seq, digest, end)

    def _move_head(self, seq: int, digest: str, announced: int, announced_hash: str, size: int) -> None:
        head = Head(seq, digest, announced, announced_hash, size, self._sealed_from, boot_id())
        self._log.set_head(head.to_bytes(self._key))

    def _catch_up(self) -> None:
        """Find the last line of the log after another process wrote to the log. If lines are torn, missing or
        unannounced, write a new line that records the problem. Without this record, the next update of the head would
        hide the problem."""
        head = read_head(self._log)
        self._end = self._log.size()
        data = self._tail(0 if head is None else head.seq)
        lines, torn = _whole_lines(data)
        if torn and self._lacks_newline(torn, lines, head):
            self._log.append(b"\n")
            self._end += 1
            lines, torn = _whole_lines(data := data + b"\n")
        self._seq, self._hash = (lines[-1][0].seq, lines[-1][0].hash) if lines else (0, ZERO)
        self._sealed_from = self._first_sealed(head)
        problem = self._problem(head, data, lines)
        found = self._seq
        if torn:
            # A writer died during its write. The bytes that it wrote stay, and the next line names their digest.
            behind = b"" if torn.endswith(b"\n") else b"\n"
            torn = torn.removesuffix(b"\n")
            voucher = {"type": "torn", "bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()}
            self._write([encode(voucher)], behind)
        if problem is not None:
            expected = None if head is None else head.seq
            self._write([encode({"type": "gap", "expected": expected, "found": found, "problem": problem})])

    def _problem(self, head: Head | None, data: bytes, lines: list[tuple[Line, int]]) -> str | None:
        """Check the end of the log, after the last line that the head counts. Returns the problem if a crash cannot
        have caused the state of this end; otherwise None."""
        checker = LineChecker(head, self._key)
        if head is not None and head.genuine:
            known = next(((line, end) for line, end in reversed(lines) if line.seq <= head.seq), None)
            if known is not None:
                checker.begin_at(known[0])
            for raw in io.BytesIO(data[known[1] if known is not None else 0 :]):
                if (problem := checker.step(raw)) is not None:
                    return problem
        return checker.end(self._end)

    def _first_sealed(self, head: Head | None) -> int:
        """The number of the first line with a seal; all lines after it must have one too. In a log of the first format,
        which has no seals, the number of the next line to be written."""
        if head is not None and head.genuine:
            return self._seq + 1 if head.sealed_from is None else head.sealed_from
        lines = (parse_line(raw.removesuffix(b"\n")) for raw in raw_lines(self._log))
        return next((line.seq for line in lines if line is not None and line.seal is not None), self._seq + 1)

    def _tail(self, known: int) -> bytes:
        """The bytes at the end of the log, beginning with a line whose number is at most `known`; the whole log if
        there is no such line."""
        reach = 1 << 13
        while True:
            start = max(0, self._end - reach)
            data = self._log.read(start, self._end)
            data = data[data.find(b"\n") + 1 :] if start else data
            if start == 0 or ((lines := _whole_lines(data)[0]) and lines[0][0].seq <= known):
                return data
            reach *= 4

    def _lacks_newline(self, torn: bytes, lines: list[tuple[Line, int]], head: Head | None) -> bool:
        """Whether `torn`, the bytes after the last complete line, is a line that lacks only its newline."""
        line = parse_line(torn)
        if line is None or not is_whole(line) or line.previous != (lines[-1][0].hash if lines else ZERO):
            return False
        return is_sealed_with(line, self._key) or (head is not None and head.sealed_from is None)

    def sync(self) -> None:
        """Make all appended lines survive a power failure."""
        try:
            self._log.sync()
        except OSError as error:
            raise StorageFailed("the audit log cannot be written", error) from error

    def close(self) -> None:
        self._log.close()


def _whole_lines(data: bytes) -> tuple[list[tuple[Line, int]], bytes]:
    """The undamaged lines in `data`, each with its end position; and all bytes after the last of them. `data` begins at
    the beginning of a line."""
    lines: list[tuple[Line, int]] = []
    end = 0
    for raw in io.BytesIO(data):
        end += len(raw)
        line = parse_line(raw[:-1]) if raw.endswith(b"\n") else None
        if line is not None and is_whole(line):
            lines.append((line, end))
    return lines, data[lines[-1][1] if lines else 0 :]
