"""Checking the record, line by line, without trusting anything but the hashes.

A separate reading: it shares the definition of a hash with the writer and nothing else. It names the first line that
is not what was written.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from haft.audit.chain import LOCK_SECONDS, ZERO, Head, Line, is_whole, parse_line, read_head, read_key
from haft.contracts import StorageFailed
from haft.files import locked
from haft.storage import decode


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `haft audit verify` found."""

    intact: bool
    records: int
    """How many are good, from the first on."""
    head: str
    """The hash of the last good record: keep it elsewhere to prove more."""
    problem: str | None = None
    """What is wrong, naming the record."""
    torn: tuple[int, ...] = field(default=())
    """Records that vouch for a line torn by a crash: harmless, and said."""

    def to_json(self) -> dict[str, Any]:
        return {
            "intact": self.intact,
            "records": self.records,
            "head": self.head,
            "problem": self.problem,
            "torn": list(self.torn),
        }


def raw_lines(path: str, size: int | None = None) -> Iterator[bytes]:
    """Every line of the first `size` bytes, its newline included; a torn last one has none."""
    with open(path, "rb") as file:
        seen = 0
        for raw in file:
            seen += len(raw)
            if size is not None and seen > size:
                return
            yield raw


def snapshot(directory: str) -> tuple[Head | None, int]:
    """The head and the size of the record as they stood at one moment, between two writers."""
    path = os.path.join(directory, "record.log")
    try:
        descriptor = os.open(os.path.join(directory, "head"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, os.path.getsize(path)
    try:
        with locked(descriptor, LOCK_SECONDS):
            return read_head(directory), os.path.getsize(path)
    except TimeoutError as error:
        raise StorageFailed("the record is locked by another process", error) from error
    finally:
        os.close(descriptor)


def body_of(line: Line) -> dict[str, Any]:
    """The record in a line; empty where it cannot be read."""
    try:
        body = decode(line.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def verify(directory: str) -> Verdict:
    """Walk the whole record and compare with its head."""
    path = os.path.join(directory, "record.log")
    # Looked for first: the record is made before its head and key, so who finds these must find that.
    has_begun = read_head(directory) is not None or read_key(directory) is not None
    if not os.path.exists(path):
        if not has_begun:
            return Verdict(intact=True, records=0, head=ZERO)
        return Verdict(intact=False, records=0, head=ZERO, problem="the record is missing, its head or key is there")
    head, size = snapshot(directory)
    if size == 0 and read_key(directory) is None and (head is None or head.seq == 0):
        return Verdict(intact=True, records=0, head=ZERO)  # The first writer is about to begin, or died before it did.
    walk = _Walk(head)
    problem = next((found for raw in raw_lines(path, size) if (found := walk.step(raw)) is not None), None)
    if problem is None:
        problem = walk.end()
    return Verdict(intact=problem is None, records=walk.seq, head=walk.hash, problem=problem, torn=tuple(walk.torn))


class _Walk:
    """The state of a walk: the last good line, and bytes that want a voucher because they are none."""

    def __init__(self, head: Head | None) -> None:
        self.seq = 0
        self.hash = ZERO
        self.torn: list[int] = []
        self._head = head
        self._hash_at_head = ZERO
        self._torn_bytes: bytes | None = None
        self._torn_problem = ""

    def step(self, raw: bytes) -> str | None:
        """Take one line; the problem, if it is one."""
        line = parse_line(raw[:-1]) if raw.endswith(b"\n") else None
        if line is None or not is_whole(line):
            # Damaged, or torn by a crash: then a later line says so.
            if self._torn_bytes is None:
                self._torn_bytes, self._torn_problem = raw.removesuffix(b"\n"), self._damage(line)
            else:
                self._torn_bytes += b"\n" + raw.removesuffix(b"\n")
            return None
        body = body_of(line)
        if self._torn_bytes is not None:
            if body.get("type") != "torn" or body.get("sha256") != hashlib.sha256(self._torn_bytes).hexdigest():
                return self._torn_problem
            self._torn_bytes = None
            self.torn.append(line.seq)
        if line.seq != self.seq + 1:
            return self._out_of_order(line)
        if line.previous != self.hash:
            return f"record {line.seq}{_about(line)} does not follow record {self.seq}: one of them was changed"
        if body.get("type") == "gap":
            return f"{body.get('problem')} before record {line.seq} was written"
        self.seq, self.hash = line.seq, line.hash
        if self._head is not None and self.seq == self._head.seq:
            self._hash_at_head = self.hash
        return None

    def _damage(self, line: Line | None) -> str:
        expected = self.seq + 1
        if line is None or line.seq != expected:
            return f"record {expected} cannot be read, and no later record vouches for it as torn by a crash"
        return f"record {expected}{_about(line)} was changed"

    def _out_of_order(self, line: Line) -> str:
        expected = self.seq + 1
        if line.seq > expected:
            return f"record {expected} is missing: record {line.seq}{_about(line)} stands in its place"
        return f"record {line.seq}{_about(line)} stands where record {expected} should be"

    def end(self) -> str | None:
        """Compare the end with the head."""
        head, seq = self._head, self.seq
        if head is None:
            return "the head is missing: whether the end was cut cannot be told"
        if not head.genuine:
            return "the head was changed: its seal is not ours"
        if head.seq > seq:
            missing = f"record {seq + 1} is missing: the head knows {head.seq} records, {seq} are there"
            return missing if self._torn_bytes is None else self._torn_problem
        if self._hash_at_head != head.hash:
            return f"record {head.seq} is not the one that the head knows"
        if seq > max(head.seq + 1, head.announced):
            return f"record {head.seq + 2} was added behind the head, which knows {head.seq} of {seq} records"
        if head.announced > head.seq and seq == head.announced and self.hash != head.announced_hash:
            return f"record {seq} is not the one that was announced"
        return None


def _about(line: Line) -> str:
    run = body_of(line).get("run")
    return f" (run {run})" if run else ""
