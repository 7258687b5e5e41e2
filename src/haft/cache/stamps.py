"""The stamp of files: a digest that differs if any of them has changed.

A file is unchanged if its device, inode, mode, size and both its times are unchanged. This is certain only for files
that did not change just before they were examined: a file that changes twice within one tick of the kernel's clock
keeps its times. So a stamp also has the newest ctime of all files and of the directories above them, and
`Stamp.is_older_than` says whether nothing at all has changed since some moment. No program can choose a file's ctime.

Not noticed: writes through a shared memory mapping, because the kernel notes only the first of them. With `by_content`,
the content of all files counts too.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from haft.values import dataclass, field

MOST_ENTRIES: Final = 50_000
MOST_BYTES: Final = 64_000_000
_COARSE: Final = 10_000_000
"""Times that are multiples of this many nanoseconds may come from a filesystem with a coarse clock."""
_COARSEST: Final = 2_000_000_000
_CHUNK: Final = 1 << 20
_CLOCK: Final = getattr(time, "CLOCK_REALTIME_COARSE", None)
_TICK: Final = 20_000_000
_MOST_STEPS: Final = 1_000

Identity = tuple[Any, ...]


class Unstampable(Exception):
    """Nobody can tell cheaply whether these files are unchanged; the text says why."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files that an answer depends on."""

    root: str
    """The workspace."""
    paths: tuple[str, ...]
    """Paths relative to the workspace, with links resolved. A directory stands for everything below it."""
    named: tuple[str, ...] = ()
    """The absolute paths as the call names them, with links."""
    others: tuple[str, ...] = ()
    """Absolute paths of single files outside of the workspace. They need not exist."""
    leaves_out: Mapping[str, Callable[[str], Iterable[str]]] = field(default_factory=dict)
    """Names that do not count, wherever they are. The function returns the files that count in their place."""
    follows_links: bool = True
    """Whether the tool may read the files to which links lead."""
    by_content: bool = False


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of some files."""

    digest: str
    newest: int
    """The newest ctime, in nanoseconds. If the clock of the filesystem may be coarse, it is rounded up."""
    entries: int
    others: tuple[str, ...] = ()
    """The files elsewhere that were examined, except those to which links lead."""
    others_digest: str = ""
    """The digest of their state."""
    leads_elsewhere: bool = False
    """Whether a file counts to which a link leads."""

    def is_older_than(self, moment: int) -> bool:
        """Whether nothing has changed since `moment`, a result of `kernel_time`."""
        return self.newest < moment


def kernel_time() -> int:
    """The time that the kernel would write into a file that changes now, in nanoseconds."""
    return time.clock_gettime_ns(_CLOCK) if _CLOCK is not None else time.time_ns() - _TICK


def stamp_of(
    files: Files, *, visit: Callable[[str], None] | None = None, stopped: Callable[[], bool] = lambda: False
) -> Stamp:
    """The stamp of files as they are now. Raises `Unstampable`. `visit` is called with each path in the workspace
    before haft looks at it."""
    return _Walk(files, visit, stopped).stamp()


class _Walk:
    """One look at all files."""

    def __init__(self, files: Files, visit: Callable[[str], None] | None, stopped: Callable[[], bool]) -> None:
        self._files = files
        self._visit = visit
        self._stopped = stopped
        self._found: list[Identity] = []
        self._newest = 0
        self._bytes = 0
        self._is_examined = files.by_content
        self._links: dict[str, None] = {}
        self._others = dict.fromkeys(files.others)
        self._leads_elsewhere = False
        try:
            root = os.lstat(files.root)
        except OSError as error:
            raise Unstampable(f"the workspace cannot be read: {error.strerror}") from None
        self._device = root.st_dev
        self._found.append((root.st_dev, root.st_ino))

    def stamp(self) -> Stamp:
        files = self._files
        for path in sorted(set(files.paths)):
            place = files.root if path == "." else os.path.join(files.root, path)
            self._note_way(place)
            self._add(place, path)
        for place in files.named:
            self._note_way(place)
        found, of_paths = self._found, len(self._found)
        for place in sorted(self._others):
            self._add_other(place)
        others_digest = _digest_of(found[of_paths:])
        if files.follows_links:
            self._add_targets()
        digest = _digest_of(found)
        others = (*sorted(self._others),)
        return Stamp(digest, self._newest, len(found), others, others_digest, self._leads_elsewhere)

    def _add(self, place: str, name: str) -> None:
        """Add a path, and everything below it."""
        if self._visit is not None:
            self._visit(place)
        try:
            status = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            self._found.append((name, None))
            return
        except OSError as error:
            raise Unstampable(f"{name} cannot be read: {error.strerror}") from None
        self._add_status(place, name, status)
        if not stat.S_ISDIR(status.st_mode):
            return
        left = [(place, name)]
        while left:
            if self._stopped():
                raise Unstampable("the call was stopped")
            left += self._add_directory(*left.pop())

    def _add_directory(self, place: str, name: str) -> list[tuple[str, str]]:
        """Add what a directory contains; returns the directories in it."""
        below, found, newest, visit = [], self._found, self._newest, self._visit
        leaves_out = self._files.leaves_out
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name in leaves_out:
                        self._others.update(dict.fromkeys(leaves_out[entry.name](entry.path)))
                        found.append((name, entry.name))
                        continue
                    if visit is not None:
                        visit(entry.path)
                    status = entry.stat(follow_symlinks=False)
                    mode, changed = status.st_mode, status.st_ctime_ns
                    if changed > newest or not changed % _COARSE:
                        newest = max(newest, _latest(status))
                    found.append((name, entry.name, status.st_ino, mode, status.st_size, status.st_mtime_ns, changed))
                    if stat.S_ISDIR(mode):
                        if status.st_dev != self._device:
                            raise Unstampable(f"{entry.path} is another filesystem")
                        below.append((entry.path, f"{name}/{entry.name}"))
                    elif self._is_examined or not stat.S_ISREG(mode):
                        self._examine(entry.path, mode, is_named=False)
        except OSError as error:
            raise Unstampable(f"{place} cannot be read: {error.strerror}") from None
        self._newest = newest
        if len(found) > MOST_ENTRIES:
            raise Unstampable(f"it depends on more than {MOST_ENTRIES:_} files")
        # A filesystem lists a directory in the same order as long as the directory is unchanged.
        return below

    def _examine(self, place: str, mode: int, *, is_named: bool) -> None:
        """Add what the status of a file does not say: where a link leads, and the content if it counts."""
        if stat.S_ISLNK(mode):
            self._found.append((os.readlink(place),))
            self._links[place] = None
        elif not stat.S_ISREG(mode):
            if is_named or self._files.follows_links:
                raise Unstampable(f"{place} is not a regular file")
        elif self._files.by_content:
            self._found.append((self._content(place),))

    def _add_status(self, place: str, name: str, status: os.stat_result) -> None:
        """Add one path that is there."""
        mode = status.st_mode
        self._newest = max(self._newest, _latest(status))
        self._found.append(
            (name, status.st_dev, status.st_ino, mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        )
        if not stat.S_ISDIR(mode):
            self._examine(place, mode, is_named=True)

    def _add_other(self, place: str) -> None:
        """Add a single path outside of the workspace, and the file to which it leads."""
        try:
            status = os.stat(place)
        except OSError as error:
            self._found.append((place, error.errno))
            return
        if stat.S_ISDIR(status.st_mode):
            self._found.append((place, status.st_dev, status.st_ino))
        else:
            self._found.append((os.path.realpath(place),))
            self._add_status(place, place, status)

    def _add_targets(self) -> None:
        """Add the files to which links lead, if these are not below the paths themselves."""
        files = self._files
        root = files.root.rstrip("/")
        inside = [f"{root}/" if path == "." else f"{root}/{path}/" for path in files.paths]
        for link in sorted(self._links):
            target = os.path.realpath(link)
            if any(f"{target}/".startswith(each) for each in inside):
                continue
            if os.path.isdir(target):
                raise Unstampable(f"{link} leads to the directory {target}")
            self._note_way(link)
            self._leads_elsewhere = True
            self._add_other(target)

    def _note_way(self, path: str) -> None:
        """Note when the directories and links on the way to a path have changed: another file may have been there for a
        moment. Only those in the workspace count, because others change all the time."""
        root = self._files.root.rstrip("/")
        left, at = path.split("/")[::-1], "/"
        for _ in range(_MOST_STEPS):
            name = left.pop() if left else None
            if name is None:
                return
            if name == "..":
                at = os.path.dirname(at)
            if name in ("", ".", ".."):
                continue
            here = os.path.join(at, name)
            try:
                status = os.lstat(here)
                target = os.readlink(here) if stat.S_ISLNK(status.st_mode) else None
            except OSError:
                return
            if f"{here}/".startswith(f"{root}/") and here != path:
                self._newest = max(self._newest, _latest(status))
            if target is None:
                at = here
            else:
                at = "/" if target.startswith("/") else at
                left += target.split("/")[::-1]
        raise Unstampable(f"{path} has too many links")

    def _content(self, place: str) -> str:
        """The digest of a file's content."""
        digest = hashlib.blake2b(digest_size=24)
        try:
            with open(place, "rb") as file:
                while chunk := file.read(_CHUNK):
                    self._bytes += len(chunk)
                    if self._bytes > MOST_BYTES:
                        raise Unstampable(f"it depends on more than {MOST_BYTES:_} bytes (`cache.verify` is `content`)")
                    digest.update(chunk)
        except OSError as error:
            raise Unstampable(f"{place} cannot be read: {error.strerror}") from None
        return digest.hexdigest()


def _digest_of(found: list[Identity]) -> str:
    # The second version of the format writes equal values equally.
    return hashlib.blake2b(marshal.dumps(found, 2), digest_size=24).hexdigest()


def _latest(status: os.stat_result) -> int:
    """The latest moment at which a file may have changed."""
    changed = status.st_ctime_ns
    return changed if changed % _COARSE else changed + _COARSEST
