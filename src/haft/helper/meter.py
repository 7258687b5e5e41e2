"""Measures many times a second what a call uses: memory, processes, processor time, bytes written, files made.

If the call has a cgroup, the meter reads the counters of the cgroup, and only the other numbers from `/proc`. A
measurement costs a few microseconds for each process. After a measurement, the meter pauses for at least ten times the
processor time of this measurement.
"""

from __future__ import annotations

import contextlib
import os
import resource
import stat
import time
from collections.abc import Callable, Sequence
from typing import Any

from haft.helper.cgroups import Group
from haft.helper.memory import Memory
from haft.helper.sockets import Sockets, largest_buffers
from haft.helper.thread_tmp import ThreadTmp

TICK = os.sysconf("SC_CLK_TCK")
SHORTEST_SECONDS = 0.01
LONGEST_SECONDS = 0.5
CALM_AFTER = 2.0
"""Seconds after which a call is measured less often."""
CALM_SECONDS = 0.05
MAX_SCANNED = 1_000_000
UTIME, CSTIME = 11, 14
"""The first and last field with processor time in /proc/PID/stat, counted after the process's name."""


class Meter:
    """Measures one call against its limits."""

    def __init__(
        self,
        limits: dict[str, float],
        pids: Callable[[], list[int]],
        *,
        scratch: str | None = None,
        roots: Sequence[str] = (),
        group: Group | None = None,
        own_io: int | None = None,
        shares_network: bool = True,
        full_sockets: tuple[int, int] | None = None,
        thread_tmp: ThreadTmp | None = None,
    ) -> None:
        """`full_sockets`: the result of `largest_buffers`, if known. `thread_tmp`: the `/tmp` of the call's thread."""
        self._thread_tmp = thread_tmp
        self.spilled: tuple[str, float] | None = None
        """The limit that the `/tmp` of the call's thread exceeded, and the amount in this `/tmp`; None if there is no
        excess."""
        self._limits = limits
        self._pids = pids
        self._scratch = scratch
        self._roots = tuple(roots)
        """The directories on disk that the call may write."""
        self._group = group
        self._began = time.monotonic()
        self._began_at = time.time()
        self._cost = 0.0
        self._files, self._bytes = self._on_disk()
        self._memory: Memory | None = None
        """Measures the memory, if no cgroup does."""
        if limits["memory_bytes"] and not (group is not None and group.counts_memory):
            self._memory = Memory(scratch, Sockets(full_sockets or largest_buffers(), shared=shares_network))
        self._own_io = open_own_io() if own_io is None else own_io
        self._own_written = self._written_by_ended()
        self._ended_before = _ended_seconds()
        self._scan_past = 1.0

    def begin_call(self) -> None:
        """Begin a call of a program that outlives its calls: processor time and bytes that the program used before do
        not count for this call. The memory and the processes of the program still count."""
        pids = self._pids()
        self._began_at = time.time()
        self._files, self._bytes = self._on_disk()
        self._own_written = sum(map(_written, pids)) + self._written_by_ended()
        if self._limits["cpu_seconds"]:
            self._ended_before = sum(map(_ticks, pids)) / TICK + _ended_seconds()
        self._scan_past = 1.0

    def pause(self) -> float:
        """Seconds until the next measurement."""
        usual = CALM_SECONDS if time.monotonic() - self._began > CALM_AFTER else SHORTEST_SECONDS
        return min(max(usual, self._cost * 10), LONGEST_SECONDS)

    def look(self) -> tuple[str, float] | None:
        """Measure the call. Returns the limit that it exceeds, and the amount used; None if it exceeds no limit."""
        began = time.process_time()  # Not elapsed time: on a busy machine, measurements must not become rarer.
        try:
            return self._look()
        finally:
            self._cost = time.process_time() - began

    def _look(self) -> tuple[str, float] | None:
        limits = self._limits
        pids = self._pids()
        if limits["max_processes"]:
            if len(pids) > limits["max_processes"]:
                return "max_processes", len(pids)
            if self._group is not None and (refused := self._group.refused_forks()):
                return "max_processes", len(pids) + refused
        if limits["memory_bytes"] and (used := self._memory_above(pids)) is not None:
            return "memory_bytes", used
        if full := self.scratch_is_full():
            return "memory_bytes", full
        if limits["cpu_seconds"]:
            seconds = sum(map(_ticks, pids)) / TICK + _ended_seconds() - self._ended_before
            if seconds > limits["cpu_seconds"]:
                return "cpu_seconds", round(seconds, 2)
        if limits["max_written_bytes"]:
            written = sum(map(_written, pids)) + self._written_by_ended() - self._own_written
            if written > limits["max_written_bytes"]:
                return "max_written_bytes", written
        return self._thread_tmp_excess(pids) or self._in_places(pids)

    def last_look(self) -> tuple[str, float] | None:
        """Measure once more when all processes have ended: a short call may exceed a limit between two measurements.
        Returns the same as `look`."""
        limits = self._limits
        seconds = _ended_seconds() - self._ended_before
        if limits["cpu_seconds"] and seconds > limits["cpu_seconds"]:
            return "cpu_seconds", round(seconds, 2)
        written = self._written_by_ended() - self._own_written
        if limits["max_written_bytes"] and written > limits["max_written_bytes"]:
            return "max_written_bytes", written
        return self._in_places([])

    def _thread_tmp_excess(self, pids: list[int]) -> tuple[str, float] | None:
        """The limit that the thread's `/tmp` exceeds, and the amount in it; None if it exceeds no limit. Files that
        earlier calls put there count, too."""
        if self._thread_tmp is not None:
            self.spilled = self._thread_tmp.over(lambda: _held(pids))
        return self.spilled

    def final_count(self) -> None:
        """Measure the `/tmp` of the thread once more after the call, however the call ended."""
        if self._thread_tmp is not None and self.spilled is None:
            self.spilled = self._thread_tmp.over(lambda: 0, surely=True)

    def _written_by_ended(self) -> int:
        """Bytes written by processes that we have waited for: the kernel adds these to our own count."""
        return 0 if self._own_io is None else _write_bytes(os.pread(self._own_io, 4096, 0))

    def _memory_above(self, pids: list[int]) -> int | None:
        """The memory that the call uses if it is above the limit, else None."""
        limit = int(self._limits["memory_bytes"])
        if self._memory is not None:
            return self._memory.above(limit, pids)
        assert self._group is not None
        if self._group.killed_for_memory():  # The kernel enforces the limit, and reports a kill.
            return self._group.memory_used()
        held = self._group.in_connections()
        return held if held > limit else None

    def scratch_is_full(self) -> int:
        """The bytes in the scratch directories if these are full, else 0. These directories are in memory, and the
        kernel limits their size to nearly the memory limit."""
        used, free = self._in_scratch()
        return used if self._limits["memory_bytes"] and not free else 0

    def _in_scratch(self) -> tuple[int, int]:
        """The bytes used in the scratch directories, and the number of free blocks."""
        if self._scratch is not None:
            with contextlib.suppress(OSError):
                found = os.statvfs(self._scratch)
                return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_bfree
        return 0, 1

    def _on_disk(self) -> tuple[int, int]:
        """Files and bytes in use on the file systems that the call may write, as the file systems report them."""
        files = size = 0
        seen: set[int] = set()
        for root in self._roots:
            with contextlib.suppress(OSError):
                device = os.stat(root).st_dev
                if device not in seen:
                    seen.add(device)
                    found = os.statvfs(root)
                    files += found.f_files - found.f_ffree
                    size += (found.f_blocks - found.f_bfree) * found.f_frsize
        return files, size

    def _in_places(self, pids: list[int]) -> tuple[str, float] | None:
        """The limit on files or bytes that the call exceeds on disk, and the amount; None if it exceeds none. The
        directories are searched only if the file system's own counts, which include other programs, have grown
        enough."""
        most_files, most_bytes = self._limits["max_changed_files"], self._limits["max_written_bytes"]
        if not self._roots or not (most_files or most_bytes):
            return None
        files, size = self._on_disk()
        # Files that other programs remove must not give the call more room.
        self._files, self._bytes = min(self._files, files), min(self._bytes, size)
        many = most_files and files - self._files > most_files * self._scan_past
        much = most_bytes and size - self._bytes > most_bytes * self._scan_past
        if not (many or much):
            return None
        own = sum(map(_written, pids)) + self._written_by_ended() - self._own_written + _held(pids)
        far = (most_files and files - self._files > 2 * most_files) or (
            most_bytes and size - self._bytes > 2 * most_bytes
        )
        if not own and not far:
            # The call wrote nothing that counts, so other programs did. Above twice the limit, search in any case.
            return None
        made = written = 0
        for root in self._roots:
            counted = changed_since(root, self._began_at, MAX_SCANNED)
            made, written = made + counted[0], written + counted[1]
        written += _held(pids)
        if most_files and made > most_files:
            return "max_changed_files", made
        if most_bytes and written > most_bytes:
            return "max_written_bytes", written
        self._scan_past *= 1.5  # Other programs wrote these files, so search less often.
        return None


def _ended_seconds() -> float:
    """Processor time of the processes that we have waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def changed_since(root: str, since: float, most: int) -> tuple[int, int]:
    """The number of entries below `root` that were made or changed since the time `since`, and their size on disk.
    Stops after about `most` entries."""
    found = size = seen = 0
    waiting = [root]
    while waiting and seen < most:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                seen += 1
                with contextlib.suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    if about.st_ctime >= since - 0.01:
                        found += 1
                        size += about.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return found, size


def _ticks(pid: int) -> int:
    """Processor time of a process, and of the children that it waited for."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        # The command's name is in parentheses and may contain any character, so split after the last parenthesis.
        return sum(map(int, _read(f"/proc/{pid}/stat").rsplit(b")", 1)[1].split()[UTIME : CSTIME + 1]))
    return 0


def _held(pids: list[int]) -> int:
    """Bytes on disk of deleted files that processes still have open."""
    files: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    where = f"/proc/{pid}/fd/{name}"
                    about = os.stat(where)
                    is_nameless = about.st_nlink == 0 and stat.S_ISREG(about.st_mode)
                    if is_nameless and not os.readlink(where).startswith("/memfd:"):
                        files[about.st_dev, about.st_ino] = about.st_blocks * 512
    return sum(files.values())


def _written(pid: int) -> int:
    """Bytes that a process, and the children that it waited for, wrote to disk."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return _write_bytes(_read(f"/proc/{pid}/io"))
    return 0


def _read(path: str) -> bytes:
    """The content of a small file of `/proc`. A file object would take three times as many system calls."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _write_bytes(words: bytes) -> int:
    return int(words.split(b"write_bytes: ", 1)[1].split(b"\n", 1)[0])


def open_own_io() -> int | None:
    """A descriptor of this process's I/O counters, to be read repeatedly; None if there are none. Opened early: a
    process that is not dumpable cannot open them."""
    try:
        return os.open("/proc/self/io", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def rlimits(limits: dict[str, Any], *, user: bool, calls: int) -> dict[int, int]:
    """The limits that the kernel itself enforces for each process."""
    found = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: int(limits["max_open_files"])}
    if limits["max_written_file_bytes"]:
        found[resource.RLIMIT_FSIZE] = int(limits["max_written_file_bytes"])
    if user and limits["max_processes"]:
        # The kernel counts all calls of this helper together and exempts root, so this only slows a fork bomb down;
        # the meter counts exactly.
        found[resource.RLIMIT_NPROC] = int(limits["max_processes"]) * calls + 100
    return found


def apply_rlimits(wanted: dict[int, int]) -> None:
    """Set the limits for this process, but never above its current hard limits."""
    for which, value in wanted.items():
        _soft, hard = resource.getrlimit(which)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))
