"""Mounts, measures and unmounts, in the sandbox of a call, the `/tmp` that a thread keeps between its calls.

This `/tmp` is a directory on disk whose size the kernel does not limit, so haft measures its content while a call runs
and when the call ends. A call can put any file there, so this module follows no link and opens no file in it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable
from typing import Any

from haft.helper import kernel
from haft.helper.paths import open_path_without_links

THREADS = "/dev/.threads"
"""The directory with the `/tmp` of each thread; unmounted before a command starts."""
DEEPEST = 400
"""Directories that are nested deeper than this count as exceeding the limit."""
OFTEN = 0.25
"""Seconds after which this `/tmp` is measured again, even if its file system does not seem to have grown."""
_INSIDE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class ThreadTmp:
    """The thread's `/tmp` during one call."""

    def __init__(self, place: str, request: dict[str, Any]) -> None:
        self._place = place
        self.most_files: int = request["files"]
        self.most_bytes: int = request["bytes"]
        source = os.open(f"{THREADS}/{request['name']}/tmp", _PLACE | os.O_DIRECTORY)  # noqa: S108  the thread's own
        self._tree = kernel.clone_mounts(source)
        """A second mount of the thread's `/tmp`, with nothing mounted inside: this mount is measured."""
        self._mount(source)
        os.close(source)
        self._files = self._bytes = 0
        self._disk = self._on_disk()
        self._again = 0.0
        """The time at which the thread's `/tmp` is measured again at the latest."""

    def _mount(self, source: int) -> None:
        """Mount the thread's `/tmp` over the empty `/tmp`. Paths that were visible in the empty `/tmp` are mounted
        again, in the thread's `/tmp`."""
        onto = os.open(self._place, _PLACE | os.O_DIRECTORY)
        shown = []
        for path in _mounted_on(_mount_of(onto)):
            if (found := open_path_without_links(path)) is None:
                raise FileNotFoundError(2, "it is not where it was shown", path)
            is_directory = stat.S_ISDIR(os.fstat(found).st_mode)
            shown.append((os.path.relpath(path, self._place), kernel.clone_mounts(found), is_directory))
            os.close(found)
        kernel.cover(source, onto)
        os.close(onto)
        top = os.open(self._place, _PLACE | os.O_DIRECTORY)
        self._number = _mount_of(top)
        for name, tree, is_directory in sorted(shown, key=lambda one: one[0].count("/")):
            spot = spot_for(top, name, is_directory=is_directory)
            kernel.attach(tree, spot)
            os.close(spot)
            os.close(tree)
        os.close(top)

    def unmount(self) -> None:
        """Unmount the thread's `/tmp`. Raises `OSError` with EBUSY if some process still has something open in it."""
        within, paths = {self._number}, []
        for number, parent, path in _mounts():
            if parent in within:
                within.add(number)
                paths.append(path)
        for path in reversed(paths):
            kernel.unmount(path)
        kernel.unmount(self._place, idle=True)
        os.close(self._tree)

    def over(self, held: Callable[[], int], *, surely: bool = False) -> tuple[str, float] | None:
        """The limit that the thread's `/tmp` exceeds, and the amount in it; None if it exceeds none. `held` returns the
        bytes of deleted files that are still open. With `surely`, always measures. Without `surely`, returns None
        without a measurement if the last measurement was a short time ago and the file system has not grown much
        since."""
        files, size = self._on_disk()
        grown = self._files + files - self._disk[0], self._bytes + size - self._disk[1]
        is_close = grown[0] > self.most_files or grown[1] > self.most_bytes
        if not (surely or is_close or time.monotonic() >= self._again):
            return None
        began = time.monotonic()
        self._disk = files, size
        self._files, self._bytes = self._counted()
        self._bytes += held()
        now = time.monotonic()
        self._again = now + max(OFTEN, 50 * (now - began))
        if self._files > self.most_files:
            return "max_changed_files", self._files
        return ("memory_bytes", self._bytes) if self._bytes > self.most_bytes else None

    def _on_disk(self) -> tuple[int, int]:
        """Files and bytes in use on the file system of the thread's `/tmp`, as the file system reports them."""
        found = os.statvfs(self._tree)
        return found.f_files - found.f_ffree, (found.f_blocks - found.f_bfree) * found.f_frsize

    def _counted(self) -> tuple[int, int]:
        """Count files and bytes, and stop at the limits. Returns both numbers. Directories that are too deep count as
        too many files."""
        files = size = 0
        seen: set[int] = set()
        waiting = [(top := os.open(".", _INSIDE, dir_fd=self._tree), os.listdir(top))]
        try:
            while waiting:
                place, names = waiting[-1]
                if not names:
                    os.close(waiting.pop()[0])
                    continue
                with contextlib.suppress(OSError):
                    found = os.stat(name := names.pop(), dir_fd=place, follow_symlinks=False)
                    files += 1
                    if found.st_ino not in seen:
                        size += found.st_blocks * 512
                    if found.st_nlink > 1:
                        seen.add(found.st_ino)
                    if files > self.most_files or size > self.most_bytes:
                        break
                    if stat.S_ISDIR(found.st_mode):
                        if len(waiting) >= DEEPEST:
                            return self.most_files + 1, size
                        waiting.append((below := os.open(name, _INSIDE, dir_fd=place), os.listdir(below)))
        finally:
            for place, _names in waiting:
                os.close(place)
        return files, size


def spot_for(root: int, name: str, *, is_directory: bool) -> int:
    """A descriptor of a mount point below `root`, made if it is missing. If an earlier call put another kind of file
    there, such as a link, that file is renamed."""
    place = os.dup(root)
    words = name.split("/")
    for number, word in enumerate(words, 1):
        try:
            below = _opened_or_made(place, word, is_directory=is_directory or number < len(words))
        finally:
            os.close(place)
        place = below
    return place


def _opened_or_made(place: int, word: str, *, is_directory: bool) -> int:
    for _ in range(3):
        try:
            found = os.open(word, _PLACE, dir_fd=place)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):  # Another call of the thread was quicker.
                if is_directory:
                    os.mkdir(word, 0o755, dir_fd=place)
                else:
                    os.close(os.open(word, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=place))
            continue
        mode = os.fstat(found).st_mode
        if stat.S_ISDIR(mode) == is_directory and not stat.S_ISLNK(mode):
            if is_directory and mode & 0o700 != 0o700:
                os.chmod(f"/proc/self/fd/{found}", stat.S_IMODE(mode) | 0o700)
            return found
        os.close(found)
        os.rename(word, f"{word[:200]}.{os.urandom(4).hex()}", src_dir_fd=place, dst_dir_fd=place)
    raise FileExistsError(17, "another file has this name", word)


def _mount_of(place: int) -> int:
    """The number of the mount that a descriptor belongs to."""
    with open(f"/proc/self/fdinfo/{place}") as file:
        return int(next(line for line in file if line.startswith("mnt_id:")).split()[1])


def _mounts() -> list[tuple[int, int, str]]:
    """Number, number of the parent, and path of each mount; parents come first."""
    found = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            words = line.split(b" ", 5)
            path = os.fsdecode(words[4].decode("unicode_escape").encode("latin-1"))
            found.append((int(words[0]), int(words[1]), path))
    return sorted(found, key=lambda mount: mount[2].count("/"))


def _mounted_on(number: int) -> list[str]:
    return [path for _number, parent, path in _mounts() if parent == number]
