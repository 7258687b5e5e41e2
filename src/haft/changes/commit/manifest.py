"""The change set of one run as it is kept on disk: every path with its state before and after.

A checksum tells whether the file is complete. The file is also the journal of a commit: it lists every step, and is
synced before the first step.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from haft.changes.commit.attributes import differing_names
from haft.changes.commit.entry import Entry
from haft.contracts import Change, Changes, ChangesState, ConflictingPath, Engine
from haft.storage import decode, encode
from haft.values import dataclass, field, replace

MANIFEST = "manifest"
TAKEN_BACK = "taken-back"
"""The name that the journal of a reverted commit gets if the disk had no room for a new journal."""


@dataclass(frozen=True, slots=True)
class PathChange:
    """The change of one path: its states before and after. They differ; None means that the path does not exist."""

    path: str
    """Relative to the workspace; bytes that are not UTF-8 are surrogate escapes."""
    before: Entry | None
    after: Entry | None

    def reversed(self) -> PathChange:
        return PathChange(self.path, self.after, self.before)

    def to_change(self, renamed_from: str | None = None) -> Change:
        before, after = self.before, self.after
        shown = after or before
        assert shown is not None
        kind = shown.kind
        return Change(
            path=self.path,
            type="create" if before is None else "delete" if after is None else "modify",
            kind=kind,
            before=before.content if before is not None and before.kind == "file" else None,
            after=after.content if after is not None and after.kind == "file" else None,
            mode_before=None if before is None or before.kind == "link" else before.mode,
            mode_after=None if after is None or after.kind == "link" else after.mode,
            renamed_from=renamed_from,
            attributes=()
            if after is None
            else differing_names("" if before is None else before.attributes, after.attributes),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The change set of one run: what it changed, or, if the changes are held, what it would change."""

    run: str
    workspace: str
    engine: Engine
    entries: tuple[PathChange, ...]
    complete: bool = True
    reason: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    """Further facts about the change set, such as its owner, its steps, and whether it is held."""

    def changes(
        self, state: ChangesState, conflicts: Sequence[ConflictingPath] = (), reason: str | None = None
    ) -> Changes:
        """The changes as an outcome shows them."""
        sources = renames(self.entries)
        return Changes(
            engine=self.engine,
            complete=self.complete,
            reason=reason or self.reason,
            state=state if self.entries else "none",
            files=tuple(each.to_change(sources.get(each.path)) for each in self.entries),
            conflicts=tuple(conflicts),
        )

    def write(self, directory: str) -> None:
        """Write the manifest into a directory, and sync the file."""
        head = {
            "run": self.run,
            "workspace": self.workspace,
            "engine": self.engine,
            "complete": self.complete,
            "reason": self.reason,
            "notes": self.notes,
        }
        lines = [encode(head)]
        lines += [
            encode([
                each.path.encode("utf-8", "surrogateescape").decode("latin-1"),
                None if each.before is None else _packed(each.before),
                None if each.after is None else _packed(each.after),
            ])
            for each in self.entries
        ]  # fmt: skip
        body = b"\n".join(lines) + b"\n"
        final = os.path.join(directory, MANIFEST)
        # The first manifest needs no rename: if it stays incomplete, `read` ignores it. A later one must replace the
        # existing manifest atomically.
        temporary = f"{final}.tmp" if os.path.exists(final) else final
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            rest = memoryview(body + b"%08x\n" % zlib.crc32(body))
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if temporary != final:
            os.rename(temporary, final)

    @classmethod
    def read(cls, directory: str) -> Manifest | None:
        """Read the manifest in a directory; None if there is none, or if it is incomplete."""
        found = cls._read(os.path.join(directory, MANIFEST))
        if found is None and (found := cls._read(os.path.join(directory, TAKEN_BACK))) is not None:
            found = replace(found, notes={**found.notes, "mark": "held"})
        return found

    @classmethod
    def _read(cls, path: str) -> Manifest | None:
        try:
            with open(path, "rb") as file:
                words = file.read()
        except FileNotFoundError:
            return None
        body, end = words[:-9], words[-9:]
        if len(words) < 9 or end != b"%08x\n" % zlib.crc32(body):
            return None
        head, *rest = (decode(line) for line in body.splitlines())
        entries = tuple(
            PathChange(path.encode("latin-1").decode("utf-8", "surrogateescape"), _unpacked(before), _unpacked(after))
            for path, before, after in rest
        )
        return cls(
            head["run"], head["workspace"], head["engine"], entries, head["complete"], head["reason"], head["notes"]
        )


def _packed(entry: Entry) -> list[Any]:
    words = entry.to_json()
    if entry.kind == "link" and entry.content is not None:
        words[6] = entry.content.encode("utf-8", "surrogateescape").decode("latin-1")
    return words


def _unpacked(words: list[Any] | None) -> Entry | None:
    if words is not None and words[0] == "link" and words[6] is not None:
        words[6] = words[6].encode("latin-1").decode("utf-8", "surrogateescape")
    return Entry.from_json(words)


def renames(entries: Iterable[PathChange]) -> dict[str, str]:
    """Maps the new path of each file that was probably renamed to its old path. The old path is a deleted path with the
    same content, if possible one with the same file name. Each deleted path is used only once. Empty files are
    ignored."""
    gone: dict[tuple[str, str], list[str]] = {}
    for each in entries:
        before = each.before
        if each.after is not None or before is None or not before.content:
            continue
        if before.kind == "link" or (before.kind == "file" and before.size):
            gone.setdefault((before.kind, before.content), []).append(each.path)
    found: dict[str, str] = {}
    if not gone:
        return found
    for each in entries:
        after = each.after
        if each.before is not None or after is None or after.content is None:
            continue
        candidates = gone.get((after.kind, after.content))
        if candidates:
            name = os.path.basename(each.path)
            best = next((path for path in candidates if os.path.basename(path) == name), candidates[0])
            candidates.remove(best)
            found[each.path] = best
    return found
