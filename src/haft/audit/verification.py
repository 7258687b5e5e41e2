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
    """The number of the last good record."""
    head: str
    """The hash of the last good record. A copy of this hash in another place proves later that no record up to here was
    changed."""
    problem: str | None = None
    """What is wrong, with the number of the record; None if the log is intact."""
    torn: tuple[int, ...] = field(default=())
    """The numbers of records that haft wrote after an incomplete line, to confirm that a crash tore it: harmless, but
    reported."""
    interrupted: str | None = None
    """A sentence about an incomplete write at the end of the log, after a crash: harmless, but reported. None if there
    is none."""
    since: int = 0
    """The number of the record after which this check began; 0 if it read the whole log."""

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
    """Check the whole audit log; with `since_checkpoint`, only the part after the checkpoint; with `most`, only about
    the last `most` bytes. If the log is intact, and the check left out no line after the checkpoint, the checkpoint
    moves to the end of the log. The line of the old checkpoint must still be in the log."""
    # Head and key are read first: the audit log is made before them, so if one of them exists, the log must exist too.
    has_begun = read_head(log) is not None or log.key() is not None
    if not log.exists():
        if not has_begun:
            return Verdict(intact=True, records=0, head=ZERO)
        return Verdict(
            intact=False, records=0, head=ZERO, problem="the audit log is missing, but its head or key exists"
        )
    with log.turn():  # With the lock, no writer is in the middle of a write.
        head, size, known, key = read_head(log), log.size(), read_checkpoint(log), log.key()
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
    """The result of the check, and the last good line (None if there is none). The check begins at the line `start_at`,
    or at the first line if `start_at` is None. The line `known`, the old checkpoint, must still be in the log."""
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
    """The first complete line in the last `most` bytes of the log. If this line has no seal of this state home, `most`
    is doubled until the first line has one. None if there is no such line: then the whole log must be read."""
    while most < size:
        at = size - most
        lines = raw_lines(log, at, size)
        at += len(next(lines, b""))  # Skip the first piece: its line may begin before it.
        line = parse_line(next(lines, b"").removesuffix(b"\n"))
        if line is not None and is_whole(line) and is_sealed_with(line, key):
            return Checkpoint(line.seq, line.hash, at)
        most *= 2
    return None
