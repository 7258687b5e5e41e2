"""What a call uses: memory, processes, processor time, bytes written, files made. Looked at many times a second.

Where a cgroup counts, it is asked; the rest is read from `/proc`. A look costs a few microseconds for each process, and
the next one waits at least ten times as long as this one took.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Callable
from typing import Any

from haft.helper.cgroups import Group

PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")
SHORTEST_SECONDS = 0.02
LONGEST_SECONDS = 0.5
CALM_AFTER = 2.0
"""Seconds after which a call is looked at less often."""
CALM_SECONDS = 0.05
MOST_SCANNED = 1_000_000
RSS, UTIME, CSTIME = 21, 11, 14
"""Fields of /proc/PID/stat, counted after the name."""


class Meter:
    """The limits of one call, and how far it is."""

    def __init__(
        self,
        limits: dict[str, float],
        pids: Callable[[], list[int]],
        *,
        scratch: str | None = None,
        workspace: str | None = None,
        group: Group | None = None,
    ) -> None:
        self._limits = limits
        self._pids = pids
        self._scratch = scratch
        self._workspace = workspace
        self._group = group
        self._began = time.monotonic()
        self._began_at = time.time()
        self._cost = 0.0
        self._files = self._count_files()
        self._own_written = _written(os.getpid())
        self._scan_past = 0.0

    def pause(self) -> float:
        """Seconds until the next look."""
        usual = CALM_SECONDS if time.monotonic() - self._began > CALM_AFTER else SHORTEST_SECONDS
        return min(max(usual, self._cost * 10), LONGEST_SECONDS)

    def look(self) -> tuple[str, float] | None:
        """The limit that is passed, and what was used; None while all is well."""
        began = time.monotonic()
        try:
            return self._look()
        finally:
            self._cost = time.monotonic() - began

    def _look(self) -> tuple[str, float] | None:
        limits = self._limits
        pids = self._pids()
        if limits["max_processes"]:
            if len(pids) > limits["max_processes"]:
                return "max_processes", len(pids)
            if self._group is not None and (refused := self._group.refused_forks()):
                return "max_processes", len(pids) + refused
        memory, ticks = self._from_stat(pids)
        if limits["memory_bytes"] and (used := self._memory(pids, memory)) is not None:
            return "memory_bytes", used
        if limits["cpu_seconds"]:
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = ticks / TICK + ended.ru_utime + ended.ru_stime
            if seconds > limits["cpu_seconds"]:
                return "cpu_seconds", round(seconds, 2)
        if limits["max_written_bytes"]:
            written = sum(map(_written, pids)) + _written(os.getpid()) - self._own_written
            if written > limits["max_written_bytes"]:
                return "max_written_bytes", written
        return self._many_files()

    def _from_stat(self, pids: list[int]) -> tuple[int, int]:
        memory = ticks = 0
        for pid in pids:
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/stat", "rb") as file:
                # The command's name stands in parentheses and may hold anything: split after the last one.
                words = file.read().rsplit(b")", 1)[1].split()
                memory += int(words[RSS]) * PAGE
                ticks += sum(map(int, words[UTIME : CSTIME + 1]))
        return memory, ticks

    def _memory(self, pids: list[int], resident: int) -> int | None:
        """Resident memory of the tree and of its scratch files, where it is too much. Pages that several processes
        share count once."""
        limit = int(self._limits["memory_bytes"])
        if self._group is not None and self._group.counts_memory:
            # The kernel keeps it below the limit, and says so when it had to kill for that.
            return self._group.memory_used() if self._group.killed_for_memory() else None
        scratch = 0
        if self._scratch is not None:
            with contextlib.suppress(OSError):
                found = os.statvfs(self._scratch)
                scratch = (found.f_blocks - found.f_bfree) * found.f_frsize
        if resident + scratch > limit:
            resident = sum(map(_proportional, pids)) or resident
        return resident + scratch if resident + scratch > limit else None

    def _count_files(self) -> int | None:
        """Files on the workspace's filesystem; None where it does not count them."""
        if self._workspace is None or not self._limits["max_changed_files"]:
            return None
        with contextlib.suppress(OSError):
            found = os.statvfs(self._workspace)
            return (found.f_files - found.f_ffree) or None
        return None

    def _many_files(self) -> tuple[str, float] | None:
        """Whether it made too many. The filesystem's own count tells when it is worth looking, since others may make
        files there too."""
        if self._files is None or self._workspace is None:
            return None
        now = self._count_files() or 0
        limit = self._limits["max_changed_files"]
        if now - self._files <= max(limit, self._scan_past):
            return None
        made = count_changed(self._workspace, self._began_at, MOST_SCANNED)
        if made > limit:
            return "max_changed_files", made
        self._scan_past = (now - self._files) * 1.5  # They were someone else's.
        return None


def count_changed(root: str, since: float, most: int) -> int:
    """How many entries below `root` came to be or changed since then."""
    found = seen = 0
    waiting = [root]
    while waiting and seen < most:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                seen += 1
                with contextlib.suppress(OSError):
                    found += entry.stat(follow_symlinks=False).st_ctime >= since - 0.01
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return found


def _written(pid: int) -> int:
    """Bytes that a process, and those it waited for, made the disk write."""
    with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/io", "rb") as file:
        return int(file.read().split(b"write_bytes: ", 1)[1].split(b"\n", 1)[0])
    return 0


def _proportional(pid: int) -> int:
    """A process's share of memory: what it shares with others is divided between them."""
    with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        return int(file.read().split(b"\nPss:", 1)[1].split(None, 1)[0]) * 1024
    return 0


def rlimits(limits: dict[str, Any], *, user: bool, calls: int) -> dict[int, int]:
    """What the kernel itself holds each process to."""
    found = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: int(limits["max_open_files"])}
    if limits["max_written_file_bytes"]:
        found[resource.RLIMIT_FSIZE] = int(limits["max_written_file_bytes"])
    if user and limits["max_processes"]:
        # It counts all calls of this helper together, and binds no root: a brake, while watching counts exactly.
        found[resource.RLIMIT_NPROC] = int(limits["max_processes"]) * calls + 100
    return found


def apply_rlimits(wanted: dict[int, int]) -> None:
    """Never above what we have ourselves."""
    for which, value in wanted.items():
        _soft, hard = resource.getrlimit(which)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))
