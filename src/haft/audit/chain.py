"""The chained record on disk: an append-only file in which every line carries the hash of all before it.

A line is `SEQ PREVIOUS HASH BODY`; HASH is SHA-256 over a domain tag, SEQ, PREVIOUS and BODY. The head (count and hash
of the last line, authenticated with a key of this state home) lies in a file of its own, so that a cut tail shows.
Writers of all processes take turns by a lock on the head: line, then head, then acknowledge. So the file is at most
one line longer than the head says, never shorter. A group of lines is announced in the head first, with the hash that
its last line will have, and written at once; a crash in between leaves a beginning of what was announced.

What it proves: order and integrity after writing. What it does not: the honesty of the writer, or anything against
someone who has the key and rewrites file and head together; anchor `haft audit verify`'s head elsewhere for that.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from haft.contracts import StorageFailed
from haft.files import locked
from haft.storage import AppendedFile, encode

TAG = b"haft-record-1\n"
ZERO = "0" * 64
LOCK_SECONDS = 10.0


def line_hash(seq: int, previous: str, body: bytes) -> str:
    """The hash of one line. Every field before the body has a fixed length, so that no two inputs are alike."""
    return hashlib.sha256(b"%s%016x%s%s" % (TAG, seq, previous.encode(), body)).hexdigest()


def seal_of(key: bytes, words: bytes) -> bytes:
    """The head's seal."""
    return hashlib.blake2b(words, key=key, digest_size=32).hexdigest().encode()


@dataclass(frozen=True, slots=True)
class Line:
    """One line, taken apart but not checked."""

    seq: int
    previous: str
    hash: str
    body: bytes


def parse_line(raw: bytes) -> Line | None:
    """A line without its newline; None where it has not the shape of one."""
    parts = raw.split(b" ", 3)
    if len(parts) != 4 or len(parts[1]) != 64 or len(parts[2]) != 64:
        return None
    # One way of writing a number only: the hash is over its value.
    if not parts[0].isdigit() or parts[0].startswith(b"0") or len(parts[0]) > 18:
        return None
    try:
        return Line(int(parts[0]), parts[1].decode(), parts[2].decode(), parts[3])
    except UnicodeDecodeError:
        return None


def is_whole(line: Line) -> bool:
    """Whether a line has the hash of what stands in it; not whether it stands in its place."""
    return line_hash(line.seq, line.previous, line.body) == line.hash


def whole_lines(data: bytes) -> tuple[list[Line], bytes]:
    """The whole lines in `data`, which begins with a line, and everything behind the last of them."""
    lines = []
    start = end = 0
    while (newline := data.find(b"\n", start)) >= 0:
        line = parse_line(data[start:newline])
        start = newline + 1
        if line is not None and is_whole(line):
            lines.append(line)
            end = start
    return lines, data[end:]


@dataclass(frozen=True, slots=True)
class Head:
    """What the head file says."""

    seq: int
    hash: str
    announced: int
    """The number that the last line of a group under way will have; else `seq`."""
    announced_hash: str
    genuine: bool
    """Whether the seal is right."""

    def to_bytes(self, key: bytes) -> bytes:
        words = b"%020d %s %020d %s" % (self.seq, self.hash.encode(), self.announced, self.announced_hash.encode())
        return b"%s %s\n" % (words, seal_of(key, words))


def read_head(directory: str) -> Head | None:
    """The head as it stands, None where there is none."""
    try:
        with open(os.path.join(directory, "head"), "rb") as file:
            text = file.read(400)
    except FileNotFoundError:
        return None
    if not text:
        return None
    words, _, seal = text.rstrip(b"\n").rpartition(b" ")
    try:
        seq, digest, announced, announced_digest = words.split()
        key = read_key(directory)
        genuine = key is not None and seal_of(key, words) == seal
        return Head(int(seq), digest.decode(), int(announced), announced_digest.decode(), genuine)
    except ValueError:
        return Head(0, "", 0, "", genuine=False)


def read_key(directory: str) -> bytes | None:
    """This state home's key; None where there is none."""
    try:
        with open(os.path.join(directory, "key"), "rb") as file:
            return file.read(64)
    except FileNotFoundError:
        return None


def made_key(directory: str, head: int, log: AppendedFile) -> bytes:
    """The key, made at first use together with a head that knows no records, so that a head which is missing later was
    removed. A key that is made for a record which has lines already seals nothing: the old head then shows it."""
    with locked(head, LOCK_SECONDS):
        key = read_key(directory)
        if key is not None:
            return key
        key = os.urandom(32)
        if log.size() == 0:
            os.pwrite(head, Head(0, ZERO, 0, ZERO, genuine=True).to_bytes(key), 0)
        path = os.path.join(directory, "key")
        fresh = f"{path}.{os.urandom(8).hex()}.new"
        descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o400)
        try:
            os.write(descriptor, key)
        finally:
            os.close(descriptor)
        os.rename(fresh, path)
        return key


def problem_with(head: Head | None, lines: Sequence[Line]) -> str | None:
    """What the last lines have that no crash explains, measured by the head. `lines` begin at or before its line."""
    seq, digest = (lines[-1].seq, lines[-1].hash) if lines else (0, ZERO)
    if head is None:
        return "the head was removed"
    if not head.genuine:
        return "the head was changed"
    if head.seq > seq:
        return f"records {seq + 1} to {head.seq} were cut off"
    if head.hash not in [line.hash for line in lines if line.seq == head.seq] and head.seq:
        return f"record {head.seq} was replaced"
    if seq > max(head.seq + 1, head.announced):
        return f"records {head.seq + 1} to {seq} were added behind the head"
    if seq == head.announced > head.seq and digest != head.announced_hash:
        return f"record {seq} was replaced"
    return None


class Chain:
    """The record, open for appending."""

    def __init__(self, directory: str) -> None:
        self._head = -1
        self._log = AppendedFile(os.path.join(directory, "record.log"))
        try:
            self._head = os.open(os.path.join(directory, "head"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._key = made_key(directory, self._head, self._log)
        except (OSError, TimeoutError) as error:
            self.close()
            raise StorageFailed(f"the record's head or key in {directory} cannot be opened", error) from error
        except StorageFailed:
            self.close()
            raise
        self._directory = directory
        self._turn = threading.Lock()
        self._end = -1
        """The size of the file when we last wrote or read its tail; any other size means that others wrote."""
        self._seq = 0
        self._hash = ZERO

    def append(self, bodies: Sequence[bytes]) -> None:
        """Add records and move the head with each. Safe against `kill -9` when this returns."""
        try:
            # The lock on the head is between processes, the other one between threads of this one.
            with self._turn, locked(self._head, LOCK_SECONDS):
                self._append(bodies)
        except TimeoutError as error:
            raise StorageFailed("the record is locked by another process", error) from error
        except OSError as error:
            raise StorageFailed("the record cannot be written", error) from error

    def _append(self, bodies: Sequence[bytes]) -> None:
        try:
            if self._log.size() != self._end:
                self._catch_up()
            self._put(bodies)
        except BaseException:
            self._end = -1  # Whatever came of it, the next one looks first.
            raise

    def _put(self, bodies: Sequence[bytes], behind: bytes = b"") -> None:
        """Write lines, after `behind`, and move the head."""
        before, previous = self._seq, self._hash
        seq, digest = before, previous
        lines = []
        for body in bodies:
            seq, last = seq + 1, digest
            digest = line_hash(seq, last, body)
            lines.append(b"%d %s %s %s\n" % (seq, last.encode(), digest.encode(), body))
        if len(lines) > 1:
            self._move_head(Head(before, previous, seq, digest, genuine=True))
        written = behind + b"".join(lines)
        self._log.append(written)
        self._seq, self._hash = seq, digest
        self._end += len(written)
        self._move_head(Head(seq, digest, seq, digest, genuine=True))

    def _move_head(self, head: Head) -> None:
        os.pwrite(self._head, head.to_bytes(self._key), 0)

    def _catch_up(self) -> None:
        """Find the last line that others wrote. What is torn, missing or not known to the head is written down, never
        passed over: the head is about to move, and would vouch for it."""
        head = read_head(self._directory)
        self._end = self._log.size()
        lines, torn = self._tail(0 if head is None else head.seq)
        lines, torn = self._completed(lines, torn)
        self._seq, self._hash = (lines[-1].seq, lines[-1].hash) if lines else (0, ZERO)
        problem = problem_with(head, lines)
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
        elif not torn and lines and (head is None or head.seq != self._seq):
            # A writer died between line and head. A second one would leave two lines that no head knows.
            self._move_head(Head(self._seq, self._hash, self._seq, self._hash, genuine=True))

    def _tail(self, known: int) -> tuple[list[Line], bytes]:
        """The whole lines at the end, from number `known` or an earlier one on, and what is behind the last."""
        reach = 1 << 13
        while True:
            start = max(0, self._end - reach)
            data = self._log.read(start, self._end)
            lines, torn = whole_lines(data[data.find(b"\n") + 1 :] if start else data)
            if start == 0 or (lines and lines[0].seq <= known):
                return lines, torn
            reach *= 4

    def _completed(self, lines: list[Line], torn: bytes) -> tuple[list[Line], bytes]:
        """A last line that lacks nothing but its newline gets that."""
        line = parse_line(torn)
        last = lines[-1].hash if lines else ZERO
        if line is None or not is_whole(line) or line.previous != last:
            return lines, torn
        self._log.append(b"\n")
        self._end += 1
        return [*lines, line], b""

    def sync(self) -> None:
        """What was appended survives power loss from here on."""
        try:
            self._log.sync()
            os.fsync(self._head)
        except OSError as error:
            raise StorageFailed("the record cannot be written", error) from error

    def close(self) -> None:
        self._log.close()
        if self._head >= 0:
            os.close(self._head)
            self._head = -1
