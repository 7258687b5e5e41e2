"""Checking the audit log up to its head, from its first line or from where an earlier check ended. It names the first
line that is not what was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from haft.audit.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from haft.audit.head import Head, read_head
from haft.audit.lines import ZERO, is_ours, is_whole, parse_line
from haft.audit.walk import Walk, raw_lines
from haft.storage import AuditLog


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
    interrupted: str | None = None
    """What a crash left at the end, where nobody has written since: harmless, and said."""
    since: int = 0
    """The record behind which the check began: what stands before it was not read now."""

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
    """Walk the audit log and compare with its head: all of it, or what came since the last check that found it intact.
    With `most`, at most about so many bytes of its end. A walk without a gap moves the checkpoint. What an earlier
    check has seen must still be there, however much is read."""
    # Looked for first: the audit log is made before its head and key, so who finds these must find that.
    has_begun = read_head(log) is not None or log.key() is not None
    if not log.exists():
        if not has_begun:
            return Verdict(intact=True, records=0, head=ZERO)
        return Verdict(intact=False, records=0, head=ZERO, problem="the audit log is missing, its head or key is there")
    with log.turn():  # As they stand at one moment, between two writers.
        head, size, known = read_head(log), log.size(), read_checkpoint(log)
    key = log.key()
    if size == 0 and key is None and (head is None or head.seq == 0):
        return Verdict(intact=True, records=0, head=ZERO)  # The first writer is about to begin, or died before it did.
    begun = known if since_checkpoint else None
    is_gapless = True
    if most is not None and key is not None and size - (0 if begun is None else begun.start) > most:
        begun, is_gapless = _near_the_end(log, size, most, key), False
    verdict, last = _walked(log, head, key, size, begun, known)
    if is_gapless and verdict.intact and key is not None and last is not None:
        write_checkpoint(log, key, last)
    return verdict


def _walked(
    log: AuditLog,
    head: Head | None,
    key: bytes | None,
    size: int,
    begun: Checkpoint | None,
    known: Checkpoint | None,
) -> tuple[Verdict, Checkpoint | None]:
    """What the walk found, and the last good line where it is a whole one. It begins at one line, and must come past
    another that is known."""
    walk = Walk(head, key)
    at = since = 0
    last = None
    lines = raw_lines(log, 0 if begun is None else begun.start, size)
    problem = None
    if begun is not None:
        raw = next(lines, b"")
        line = parse_line(raw.removesuffix(b"\n"))
        if line is None or not is_whole(line) or (line.seq, line.hash) != (begun.seq, begun.hash):
            problem = _not_in_place(begun)
        else:
            walk.begin_at(line)
        at, since, last = begun.start + len(raw), begun.seq, begun
    for raw in lines if problem is None else ():
        if (problem := walk.step(raw)) is not None:
            break
        if walk.torn_bytes is None:
            last = Checkpoint(walk.seq, walk.hash, at)
            if known is not None and last.seq == known.seq and last.hash != known.hash:
                problem = _not_in_place(known)
                break
        at += len(raw)
    if problem is None:
        problem = walk.end(size)
    if problem is None and known is not None and walk.seq < known.seq:
        problem = _not_in_place(known)  # An older log was put back, with the head that it had.
    return Verdict(problem is None, walk.seq, walk.hash, problem, tuple(walk.torn), walk.interrupted, since), last


def _not_in_place(known: Checkpoint) -> str:
    return f"record {known.seq}, which was intact when it was checked last, is not in its place"


def _near_the_end(log: AuditLog, size: int, most: int, key: bytes) -> Checkpoint | None:
    """The first line within the last bytes. Where that bears no seal of ours, one further back is looked for: a line
    that was changed is not passed over. None where there is none, and all must be read."""
    while most < size:
        at = size - most
        lines = raw_lines(log, at, size)
        at += len(next(lines, b""))  # It began earlier, or may have.
        line = parse_line(next(lines, b"").removesuffix(b"\n"))
        if line is not None and is_whole(line) and is_ours(line, key):
            return Checkpoint(line.seq, line.hash, at)
        most *= 2
    return None
