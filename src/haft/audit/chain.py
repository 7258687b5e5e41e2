"""The audit log on disk: an append-only file in which every line carries the hash of all before it.

Writers of all processes take turns by a lock on the head. Each write is announced in the head first, with number and
hash of the last line to come and the size that the log will have; then the lines are written at once; then the head
counts them, and the caller is answered. So a crash leaves the beginning of an announced write, and nothing else: lines
of ours, and at most the beginning of one more. Whatever else lies behind the head was put there by others.

What it proves: order and integrity after writing. What it does not: the honesty of the writer, or anything against
someone who has or replaces the key, or who puts back an older log with its older head and checkpoint; anchor the head
that `haft audit verify` prints elsewhere for that.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence

from haft.audit.head import Head, boot_id, made_key, read_head
from haft.audit.lines import ZERO, Line, is_ours, is_whole, next_line, parse_line
from haft.audit.walk import Walk, raw_lines
from haft.contracts import StorageFailed
from haft.storage import AuditLog, encode


class Chain:
    """The audit log, open for appending."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        try:
            log.begin()
            self._key = made_key(log)
        except OSError as error:
            self.close()
            raise StorageFailed("the audit log, its head or its key cannot be opened", error) from error
        except StorageFailed:
            self.close()
            raise
        self._end = -1
        """The size of the file when we last wrote or read its tail; any other size means that others wrote."""
        self._seq = 0
        self._hash = ZERO
        self._sealed_from = 1

    def append(self, bodies: Sequence[bytes]) -> None:
        """Add records and move the head with each. Safe against `kill -9` when this returns."""
        try:
            with self._log.turn():
                self._append(bodies)
        except OSError as error:
            raise StorageFailed("the audit log cannot be written", error) from error

    def _append(self, bodies: Sequence[bytes]) -> None:
        try:
            if self._log.size() != self._end:
                self._catch_up()
            self._put(bodies)
        except BaseException:
            self._end = -1  # Whatever came of it, the next one looks first.
            raise

    def _put(self, bodies: Sequence[bytes], behind: bytes = b"") -> None:
        """Announce lines, write them, after `behind`, and move the head."""
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
        """Find the last line that others wrote. What is torn, missing or was not announced is written down, never
        passed over: the head is about to move, and would vouch for it."""
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
            # A writer died in the middle. Its bytes stay; the next line vouches for them.
            behind = b"" if torn.endswith(b"\n") else b"\n"
            torn = torn.removesuffix(b"\n")
            voucher = {"type": "torn", "bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()}
            self._put([encode(voucher)], behind)
        if problem is not None:
            expected = None if head is None else head.seq
            self._put([encode({"type": "gap", "expected": expected, "found": found, "problem": problem})])

    def _problem(self, head: Head | None, data: bytes, lines: list[tuple[Line, int]]) -> str | None:
        """What lies behind the head and no crash explains."""
        walk = Walk(head, self._key)
        if head is not None and head.genuine:
            known = next(((line, end) for line, end in reversed(lines) if line.seq <= head.seq), None)
            if known is not None:
                walk.begin_at(known[0])
            for raw in io.BytesIO(data[known[1] if known is not None else 0 :]):
                if (problem := walk.step(raw)) is not None:
                    return problem
        return walk.end(self._end)

    def _first_sealed(self, head: Head | None) -> int:
        """The number from which on all lines have a seal: the next one's, in a log of the first format."""
        if head is not None and head.genuine:
            return self._seq + 1 if head.sealed_from is None else head.sealed_from
        lines = (parse_line(raw.removesuffix(b"\n")) for raw in raw_lines(self._log))
        return next((line.seq for line in lines if line is not None and line.seal is not None), self._seq + 1)

    def _tail(self, known: int) -> bytes:
        """The end of the log, from the line with number `known` or an earlier one on."""
        reach = 1 << 13
        while True:
            start = max(0, self._end - reach)
            data = self._log.read(start, self._end)
            data = data[data.find(b"\n") + 1 :] if start else data
            if start == 0 or ((lines := _whole_lines(data)[0]) and lines[0][0].seq <= known):
                return data
            reach *= 4

    def _lacks_newline(self, torn: bytes, lines: list[tuple[Line, int]], head: Head | None) -> bool:
        """Whether the last line lacks nothing but its newline."""
        line = parse_line(torn)
        if line is None or not is_whole(line) or line.previous != (lines[-1][0].hash if lines else ZERO):
            return False
        return is_ours(line, self._key) or (head is not None and head.sealed_from is None)

    def sync(self) -> None:
        """What was appended survives power loss from here on."""
        try:
            self._log.sync()
        except OSError as error:
            raise StorageFailed("the audit log cannot be written", error) from error

    def close(self) -> None:
        self._log.close()


def _whole_lines(data: bytes) -> tuple[list[tuple[Line, int]], bytes]:
    """The whole lines in `data`, which begins with a line, each with its end; and everything behind the last."""
    lines: list[tuple[Line, int]] = []
    end = 0
    for raw in io.BytesIO(data):
        end += len(raw)
        line = parse_line(raw[:-1]) if raw.endswith(b"\n") else None
        if line is not None and is_whole(line):
            lines.append((line, end))
    return lines, data[lines[-1][1] if lines else 0 :]
