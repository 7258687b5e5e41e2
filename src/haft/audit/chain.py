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
    if len(parts) != 4 or not parts[0].isdigit() or len(parts[1]) != 64 or len(parts[2]) != 64:
        return None
    try:
        return Line(int(parts[0]), parts[1].decode(), parts[2].decode(), parts[3])
    except UnicodeDecodeError:
        return None


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
        genuine = seal_of(read_key(directory), words) == seal
        return Head(int(seq), digest.decode(), int(announced), announced_digest.decode(), genuine)
    except ValueError:
        return Head(0, "", 0, "", genuine=False)


def read_key(directory: str) -> bytes:
    """This state home's key, made at first use."""
    path = os.path.join(directory, "key")
    try:
        with open(path, "rb") as file:
            return file.read(64)
    except FileNotFoundError:
        pass
    fresh = f"{path}.{os.getpid()}.new"
    try:
        descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o400)
        os.write(descriptor, os.urandom(32))
        os.close(descriptor)
        os.link(fresh, path)  # Unlike rename, this leaves the winner's key where two begin at once.
    except FileExistsError:
        pass
    except OSError as error:
        raise StorageFailed("the record's key cannot be made", error) from error
    finally:
        if os.path.exists(fresh):
            os.unlink(fresh)
    with open(path, "rb") as file:
        return file.read(64)


class Chain:
    """The record, open for appending."""

    def __init__(self, directory: str) -> None:
        self._log = AppendedFile(os.path.join(directory, "record.log"))
        self._head = os.open(os.path.join(directory, "head"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._key = read_key(directory)
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
                if self._log.size() != self._end:
                    self._catch_up()
                self._put(bodies)
        except TimeoutError as error:
            raise StorageFailed("the record is locked by another process", error) from error

    def _put(self, bodies: Sequence[bytes]) -> None:
        before, previous = self._seq, self._hash
        seq, digest = before, previous
        lines = []
        for body in bodies:
            seq, last = seq + 1, digest
            digest = line_hash(seq, last, body)
            lines.append(b"%d %s %s %s\n" % (seq, last.encode(), digest.encode(), body))
        if len(lines) > 1:
            self._move_head(Head(before, previous, seq, digest, genuine=True))
        written = b"".join(lines)
        self._log.append(written)
        self._seq, self._hash = seq, digest
        self._end += len(written)
        self._move_head(Head(seq, digest, seq, digest, genuine=True))

    def _move_head(self, head: Head) -> None:
        os.pwrite(self._head, head.to_bytes(self._key), 0)

    def _catch_up(self) -> None:
        """Find the last line others wrote. What is torn or missing is written down, never passed over."""
        size = self._log.size()
        tail = b""
        start = size
        while start > 0 and tail.count(b"\n", 0, -1) < 1:
            start = max(0, start - 65536)
            tail = self._log.read(start, size)
        torn = tail[tail.rfind(b"\n") + 1 :]
        whole = tail[: len(tail) - len(torn)]
        last = parse_line(whole[:-1].rpartition(b"\n")[2]) if whole else None
        self._seq, self._hash = (last.seq, last.hash) if last else (0, ZERO)
        self._end = size
        if torn:
            # A writer died in the middle. Its bytes stay; the next line vouches for them.
            self._log.append(b"\n")
            self._end += 1
            self._put([encode({"type": "torn", "bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()})])
        head = read_head(self._directory)
        if head is not None and head.seq > self._seq:
            # Someone cut the tail. Going on silently would let the next head hide it.
            self._put([encode({"type": "gap", "expected": head.seq, "found": self._seq, "hash": head.hash})])

    def sync(self) -> None:
        """What was appended survives power loss from here on."""
        self._log.sync()
        os.fsync(self._head)

    def close(self) -> None:
        self._log.close()
        if self._head >= 0:
            os.close(self._head)
            self._head = -1
