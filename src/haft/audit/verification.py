"""Checks the audit log up to its head, from its first line or from the end of an earlier check, and names the first
line that was changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from haft.audit.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from haft.audit.head import Head, read_head
from haft.audit.line_checker import LineChecker, raw_lines
from haft.audit.lines import ZERO, is_sealed_with, is_whole, parse_line
from haft.storage import AuditLog


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of `haft audit verify`."""

    intact: bool
    records: int
    """The number of good records, counted from the first."""
    head: str
    """The hash of the last good record: store it in another place to prove more."""
    problem: str | None = None
    """What is wrong, with the number of the record."""
    torn: tuple[int, ...] = field(default=())
    """Records that confirm a line torn by a crash: harmless, but reported."""
    interrupted: str | None = None
    """What a crash left at the end, if nobody has written since: harmless, but reported."""
    since: int = 0
    """The record after which the check began: earlier records were not read this time."""

    def to_json(self) -> dict[str, Any]:
        return {
            "intact": self.intact,
            "records": self.records,
            "head": self.head,
            "problem": self.problem,
            "torn": list(self.torn),
            "interrupted": self.interrupted,
            "since": self.since,
        }


def verify(log: AuditLog, *, since_checkpoint: bool = False, most: int | None = None) -> Verdict:
    """Read the audit log and compare it with its head: all of it, or the part since the last check that found it
    intact. With `most`, at most about so many bytes of its end. A check without a gap moves the checkpoint. The records
    that an earlier check has seen must still be present, however little is read."""
    # These are read first: the audit log is made before its head and key, so if they exist, it must exist too.
    has_begun = read_head(log) is not None or log.key() is not None
    if not log.exists():
        if not has_begun:
            return Verdict(intact=True, records=0, head=ZERO)
        return Verdict(
            intact=False, records=0, head=ZERO, problem="the audit log is missing, but its head or key exists"
        )
    with log.turn():  # A consistent state, between two writers.
        head, size, known = read_head(log), log.size(), read_checkpoint(log)
    key = log.key()
    if size == 0 and key is None and (head is None or head.seq == 0):
        return Verdict(
            intact=True, records=0, head=ZERO
        )  # The first writer is about to begin, or died before its first write.
    start_at = known if since_checkpoint else None
    is_gapless = True
    if most is not None and key is not None and size - (0 if start_at is None else start_at.start) > most:
        start_at, is_gapless = _near_the_end(log, size, most, key), False
    verdict, last = _check(log, head, key, size, start_at, known)
    if is_gapless and verdict.intact and key is not None and last is not None:
        write_checkpoint(log, key, last)
    return verdict


def _check(
    log: AuditLog,
    head: Head | None,
    key: bytes | None,
    size: int,
    start_at: Checkpoint | None,
    known: Checkpoint | None,
) -> tuple[Verdict, Checkpoint | None]:
    """The result of the check, and the last good line if it is complete. The check begins at the line `start_at`
    and must pass the line `known`."""
    checker = LineChecker(head, key)
    at = since = 0
    last = None
    lines = raw_lines(log, 0 if start_at is None else start_at.start, size)
    problem = None
    if start_at is not None:
        raw = next(lines, b"")
        line = parse_line(raw.removesuffix(b"\n"))
        if line is None or not is_whole(line) or (line.seq, line.hash) != (start_at.seq, start_at.hash):
            problem = _not_in_place(start_at)
        else:
            checker.begin_at(line)
        at, since, last = start_at.start + len(raw), start_at.seq, start_at
    for raw in lines if problem is None else ():
        if (problem := checker.step(raw)) is not None:
            break
        if checker.torn_bytes is None:
            last = Checkpoint(checker.seq, checker.hash, at)
            if known is not None and last.seq == known.seq and last.hash != known.hash:
                problem = _not_in_place(known)
                break
        at += len(raw)
    if problem is None:
        problem = checker.end(size)
    if problem is None and known is not None and checker.seq < known.seq:
        problem = _not_in_place(known)  # An older log was restored, together with its head.
    return Verdict(
        problem is None, checker.seq, checker.hash, problem, tuple(checker.torn), checker.interrupted, since
    ), last


def _not_in_place(known: Checkpoint) -> str:
    return f"record {known.seq}, which was intact at the last check, is not in its place"


def _near_the_end(log: AuditLog, size: int, most: int, key: bytes) -> Checkpoint | None:
    """The first line within the last bytes. If it has no seal of this state home, an earlier line is used, so that a
    changed line is not skipped. None if there is no such line and everything must be read."""
    while most < size:
        at = size - most
        lines = raw_lines(log, at, size)
        at += len(next(lines, b""))  # This line may have begun earlier.
        line = parse_line(next(lines, b"").removesuffix(b"\n"))
        if line is not None and is_whole(line) and is_sealed_with(line, key):
            return Checkpoint(line.seq, line.hash, at)
        most *= 2
    return None
