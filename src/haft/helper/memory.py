"""Measures the memory of a call, if no cgroup counts it.

Each measurement first adds up upper bounds that are cheap to get. It counts each item only if the sum exceeds the
limit, or if the machine's available memory shrank by more than the limit. Shared memory counts once, whether it is
mapped, open, or neither.

Some memory has no owner that can be found: a shared mapping of which one page is left, a message whose sender has
ended. Such memory counts as memory of the call if the call may own it, and the machine's available memory shrank by as
much.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
from collections.abc import Iterable

from haft.helper.sockets import SocketMemory, Sockets

PAGE = os.sysconf("SC_PAGE_SIZE")
FULL_PIPE = 2 * PAGE
"""The size of a pipe of a user who has many: above fs.pipe-user-pages-soft each pipe has two pages."""
STACK = max(16384, PAGE)
"""The kernel memory of a thread."""
SEGMENTS = {"shm": {b"rss": 1}, "msg": {b"cbytes": 1, b"qnum": 64}, "sem": {b"nsems": 64}}
"""System V shared memory, messages and semaphores: the columns of their tables, and the bytes that each unit takes."""
MAX_DESCRIPTORS = 5000
"""How many descriptors are examined one by one. Each further one counts as a pipe."""

_NUMBERS = re.compile(rb"\n(FDSize|RssAnon|RssFile|RssShmem|VmPTE|HugetlbPages|Threads):\s+(\d+)")
_HIDING = re.compile(rb"^\S+ \S+ \S+ (\S+) (\d+) +(?:/dev/zero \(deleted\)|\[anon_shmem:|/memfd:)", re.MULTILINE)
_MAPPED = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ (\S+) (\d+) *(.*)$|^Pss: +(\d+)|^Anonymous: +(\d+)", re.MULTILINE)
_IN_FLIGHT = re.compile(rb"^scm_fds:\s+(\d+)", re.MULTILINE)


class Process:
    """The memory of one process as the kernel reports it, in bytes."""

    def __init__(self, private: int, shared: int, kernel: int, descriptors: int) -> None:
        self.private = private
        """Anonymous memory and mapped files, without shared memory."""
        self.shared = shared
        self.kernel = kernel
        """Page tables and stacks."""
        self.descriptors = descriptors


class Descriptors:
    """The memory behind the descriptors of some processes."""

    def __init__(self) -> None:
        self.files: dict[tuple[int, int], int] = {}
        """Bytes of unnamed files in memory, by device and inode."""
        self.pipes: set[int] = set()
        self.sockets: dict[int, str] = {}
        """By inode, the path of the socket's fdinfo file."""
        self.more = 0
        """The number of descriptors that were not examined."""
        self.are_secret = False
        """Whether there is a process whose descriptors haft may not read."""

    def are_on_their_way(self) -> bool:
        """Whether a socket has descriptors in flight, sent but not received yet: these may be more sockets, or files in
        memory."""
        found = (_IN_FLIGHT.search(_read(path) or b"") for path in self.sockets.values())
        return any(sent is not None and int(sent[1]) > 0 for sent in found)


class Memory:
    """Measures the memory that one call uses, from the beginning of the call."""

    def __init__(self, scratch: str | None, sockets: Sockets) -> None:
        self._scratch = scratch
        self._sockets = sockets
        self._not_ours = {kind: frozenset(_segments(kind)) for kind in SEGMENTS}
        self._most_available, self._least_shared = _of_machine()

    def above(self, limit: int, pids: list[int]) -> int | None:
        """The memory of the call if it is more than the limit, else None."""
        processes = {pid: found for pid in pids if (found := _process(pid)) is not None}
        files = self._in_scratch() + self._in_segments()
        rough = files + sum(each.private + each.shared + each.kernel for each in processes.values())
        rough += self._sockets.made() * self._sockets.full
        rough += sum(each.descriptors for each in processes.values()) * FULL_PIPE
        available, shared = _of_machine()
        # Compare with the best values so far: memory that other programs free must not hide what the call took.
        self._most_available = max(self._most_available, available)
        self._least_shared = min(self._least_shared, shared)
        lost = self._most_available - available
        if self._scratch is None:
            rough += shared  # All of it may belong to files that the call has open.
        if rough <= limit and lost <= limit:
            return None
        held = self._counted(processes, files, lost, shared - self._least_shared, limit)
        return held if held > limit else None

    def _counted(self, processes: dict[int, Process], files: int, lost: int, grown: int, limit: int) -> int:
        """Count each item, the cheapest first, and stop as soon as it is certain whether the call exceeds the limit. So
        the result shows whether the call exceeds the limit, but is not always exact."""
        found = _descriptors(processes)
        sockets = self._sockets.held(found.sockets.keys()) if found.sockets or self._sockets.made() else SocketMemory()
        shared = files + sum(found.files.values())
        certain = sockets.certain + (len(found.pipes) + found.more) * FULL_PIPE
        certain += sum(each.kernel for each in processes.values())
        if certain + shared > limit:
            return certain + shared
        counted = set(found.files)
        is_hiding = (lost > limit and grown > shared) and (
            found.are_secret or _hides(processes, counted) or found.are_on_their_way()
        )
        resident = sum(each.private + each.shared for each in processes.values())
        hidden = min(lost, sockets.possible + grown * is_hiding)
        if certain + shared + resident + hidden <= limit:
            return certain + shared + resident
        device = 0 if self._scratch is None else os.stat(self._scratch).st_dev
        for pid, process in processes.items():
            private, mapped = _proportional(pid, process, counted, device)
            certain += private
            shared += mapped
        certain += shared
        possible = sockets.possible + max(0, grown - shared) * is_hiding
        return certain + max(0, min(possible, lost - certain))

    def _in_scratch(self) -> int:
        if self._scratch is not None:
            with contextlib.suppress(OSError):
                found = os.statvfs(self._scratch)
                return (found.f_blocks - found.f_bfree) * found.f_frsize
        return 0

    def _in_segments(self) -> int:
        """Bytes of System V objects that the call made; they exist without a process."""
        return sum(
            held for kind in SEGMENTS for number, held in _segments(kind).items() if number not in self._not_ours[kind]
        )


def _segments(kind: str) -> dict[bytes, int]:
    """The bytes of each System V object of a kind, by its number."""
    head, *lines = (_read(f"/proc/sysvipc/{kind}") or b"").splitlines() or [b""]
    if not lines:
        return {}
    names = head.split()
    columns = [(names.index(name), size) for name, size in SEGMENTS[kind].items()]
    rows = (line.split() for line in lines)
    return {row[1]: sum(int(row[at]) * size for at, size in columns) for row in rows}


def _of_machine() -> tuple[int, int]:
    """Available memory and shared memory of the machine."""
    words = _read("/proc/meminfo") or b""
    with contextlib.suppress(ValueError, IndexError):
        return _number(words, b"MemAvailable:"), _number(words, b"Shmem:")
    return 0, 0


def _number(words: bytes, name: bytes) -> int:
    return int(words.split(name, 1)[1].split(None, 1)[0]) * 1024


def _read(path: str) -> bytes | None:
    """The content of a file in `/proc`; empty if the file is gone, None if we may not read it."""
    try:
        with io.FileIO(path) as file:
            return file.readall()
    except PermissionError:
        return None
    except OSError:
        return b""


def _process(pid: int) -> Process | None:
    words = _read(f"/proc/{pid}/status")
    if not words:
        return None
    found = {name: int(number) for name, number in _NUMBERS.findall(words)}
    own = found.get(b"RssAnon", 0) + found.get(b"RssFile", 0) + found.get(b"HugetlbPages", 0)
    kernel = found.get(b"VmPTE", 0) * 1024 + found.get(b"Threads", 0) * STACK
    return Process(own * 1024, found.get(b"RssShmem", 0) * 1024, kernel, found.get(b"FDSize", 0))


def _proportional(pid: int, process: Process, counted: set[tuple[int, int]], device: int) -> tuple[int, int]:
    """The memory of a process: its private memory, and its shared memory that is not counted as files. Memory that
    several processes map is divided between them."""
    # The kernel walks all page tables for this, so it is skipped for a process that has mostly page tables.
    words = None if process.kernel > process.private else _read(f"/proc/{pid}/smaps_rollup")
    if words == b"":
        return 0, 0  # The process has ended.
    if words is None or b"Pss_Shmem:" not in words:
        return process.private, process.shared
    private = _number(words, b"Pss_Anon:") + _number(words, b"Pss_File:")
    shared = _number(words, b"Pss_Shmem:")
    if shared and (words := _read(f"/proc/{pid}/smaps")):
        is_counted = False
        for where, inode, name, share, own in _MAPPED.findall(words):
            if where:
                number = _device(where)
                is_counted = number == device or (number, int(inode)) in counted or name.startswith(b"/SYSV")
            elif is_counted:
                shared += (int(own or 0) - int(share or 0)) * 1024
    return private, max(0, shared)


def _device(words: bytes) -> int:
    """The device number from its form in `/proc/PID/maps`."""
    major, minor = words.split(b":")
    return os.makedev(int(major, 16), int(minor, 16))


def _hides(pids: Iterable[int], counted: set[tuple[int, int]]) -> bool:
    """Whether a process maps shared memory that no counted file contains. Only the mapped part of such memory can be
    measured."""
    return any(
        (_device(where), int(inode)) not in counted
        for pid in pids
        for where, inode in _HIDING.findall(_read(f"/proc/{pid}/maps") or b"")
    )


def _descriptors(processes: dict[int, Process]) -> Descriptors:
    found = Descriptors()
    looked = 0
    for pid in processes:
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except PermissionError:
            found.are_secret = True
            continue
        except OSError:
            continue
        some = names[: MAX_DESCRIPTORS - looked]
        looked += len(some)
        found.more += len(names) - len(some)
        for name in some:
            with contextlib.suppress(OSError, ValueError):
                _add(found, pid, name)
    return found


def _add(found: Descriptors, pid: int, name: str) -> None:
    where = f"/proc/{pid}/fd/{name}"
    kind, _, rest = os.readlink(where).partition(":")
    if kind == "pipe":
        found.pipes.add(int(rest[1:-1]))
    elif kind == "socket":
        found.sockets[int(rest[1:-1])] = f"/proc/{pid}/fdinfo/{name}"
    elif kind in ("/memfd", "/secretmem (deleted)"):
        about = os.stat(where)
        if stat.S_ISREG(about.st_mode) and about.st_nlink == 0:
            found.files[about.st_dev, about.st_ino] = about.st_blocks * 512
