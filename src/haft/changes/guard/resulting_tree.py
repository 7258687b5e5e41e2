"""The workspace before and after a call: the files on disk, together with the change set of the call.

When the guard runs, the disk may show the state before or after the call, depending on the engine. So the states of
changed paths are taken from the change set. Other paths, which are the same before and after, are read from disk. Links
are never followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, Literal

from haft.changes.commit.entry import entry_from, kind_of
from haft.changes.commit.manifest import PathChange
from haft.changes.guard.offence import Read
from haft.contracts import ChangeKind
from haft.files import plain_bytes

When = Literal["before", "after"]

_LONGEST_WALK: Final = 200
"""The most parts that the path in a pointer file, such as a `.git` file, may have."""


class ResultingTree:
    """One workspace with one change set."""

    def __init__(self, workspace: str, entries: Sequence[PathChange], read: Read) -> None:
        self.workspace = workspace
        self._entries = entries
        self._read = read
        self._by_path: dict[str, PathChange] | None = None
        self._folds: bool | None = None

    @property
    def altered(self) -> dict[str, PathChange]:
        """The change set by path; built on demand, because most change sets are judged without it."""
        if self._by_path is None:
            self._by_path = {each.path: each for each in self._entries}
        return self._by_path

    def is_new(self, directory: str) -> bool:
        """Whether a directory is new, so that its whole content is among the changes."""
        found = self.altered.get(directory)
        return found is not None and (found.before is None or found.before.kind != "directory")

    def kind(self, path: str, when: When = "after") -> ChangeKind | None:
        """The kind of a path before or after the call; None if the path does not exist."""
        found = self.altered.get(path)
        if found is not None:
            there = found.before if when == "before" else found.after
            return None if there is None else there.kind
        if self.is_new(path.rpartition("/")[0]):
            return None
        try:
            return kind_of(os.lstat(os.path.join(self.workspace, path)).st_mode)
        except (OSError, ValueError):
            return None

    def folds(self) -> bool:
        """Whether the filesystem ignores upper and lower case. To find out, haft looks for the workspace's directory
        under its name with upper and lower case exchanged."""
        if self._folds is None:
            above, name = os.path.split(self.workspace)
            try:
                other = os.lstat(os.path.join(above, name.swapcase()))
                self._folds = name != name.swapcase() and os.path.samestat(other, os.lstat(self.workspace))
            except OSError:
                self._folds = False
        return self._folds

    def content(self, entry: PathChange, when: When, most: int) -> bytes | None:
        """The content of a file before or after the call; None if the path is not a file, if the content is longer than
        `most` bytes, or if it is not available."""
        there = entry.before if when == "before" else entry.after
        if there is None or there.kind != "file":
            return None
        known = self.altered.get(entry.path)
        if known is None:
            content = plain_bytes(os.path.join(self.workspace, entry.path), most + 1)
        else:
            file = self._read(known, when)
            if file is None:
                return None
            with file:
                content = file.read(most + 1)
        return content if content is not None and len(content) <= most else None

    def existing_in(self, directory: str, most: int) -> list[PathChange]:
        """The unchanged paths directly in a directory, each as if it were created now. At most `most` paths are looked
        at. Changed directories are included too, because paths in them may be unchanged."""
        if self.is_new(directory):
            return []
        try:
            with os.scandir(os.path.join(self.workspace, directory)) as found:
                there = [(each.name, each.stat(follow_symlinks=False)) for each in islice(found, most)]
        except OSError:
            return []
        prefix = f"{directory}/" if directory else ""
        existing_in = [PathChange(prefix + name, None, entry_from(status)) for name, status in there]
        return [
            each
            for each in existing_in
            if (known := self.altered.get(each.path)) is None
            or (known.after is not None and known.after.kind == "directory")
        ]

    def repositories(self) -> Iterator[str]:
        """Directories above a changed path that hold a `.git` or a `HEAD` on disk, so that they may be a working tree
        or a git directory. New directories are left out, because the change set says everything about them."""
        seen = {each.path.rpartition("/")[0] for each in self._entries}
        for directory in list(seen):
            while (directory := directory.rpartition("/")[0]) not in seen:
                seen.add(directory)
        seen.add("")
        for directory in seen:
            if self.is_new(directory) or "/.git/" in f"/{directory}/":
                continue
            place = f"{self.workspace}/{directory}/"
            # This runs for every directory, and is nearly always false. `access` is fast: it raises no exception.
            if os.access(f"{place}.git", os.F_OK) or os.access(f"{place}HEAD", os.F_OK):
                yield directory

    def resolve_inside(self, target: str, directory: str) -> str | None:
        """The path in the workspace that `target` names, seen from `directory`. None if this path leads out of the
        workspace or through a link. A link counts even if its target is in the workspace, because someone can change
        the link later."""
        words = [word for word in directory.split("/") if word]
        if os.path.isabs(target):
            inside = next((each for each in self._tops() if target.startswith(f"{each}/")), None)
            if inside is None:
                return None
            words, target = [], target[len(inside) :]
        rest = [word for word in target.split("/") if word not in ("", ".")]
        if len(rest) > _LONGEST_WALK:
            return None
        for word in rest:
            if word == ".." and not words:
                return None
            if word == "..":
                words.pop()
                continue
            words.append(word)
            if self.kind("/".join(words)) == "link":
                return None
        return "/".join(words)

    def _tops(self) -> tuple[str, str]:
        return self.workspace, os.path.realpath(self.workspace)
