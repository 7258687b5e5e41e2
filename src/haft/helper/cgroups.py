"""Cgroups, if this process may make them: the kernel counts memory and processes, and gives each call a fair share of
the processors.

A process is moved into a group once and then forks there. Moving takes the kernel ten milliseconds and delays every
fork on the machine, so haft moves processes ahead of calls. haft uses version 2 if its controllers are available, else
version 1, and finds that out by trying.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

TASKS_PER_PROCESS = 2
"""How many threads a process of a call may have on average: the kernel counts threads, not processes."""
CONNECTIONS = "memory.kmem.tcp"
"""The file in which version 1 counts the memory of TCP and UDP, separate from all other memory."""


class Hierarchy:
    """A directory in which haft may make cgroups. It is opened before the sandbox makes all mounts read-only."""

    def __init__(self, version: int, controllers: frozenset[str], parent: str) -> None:
        self.version = version
        self.controllers = controllers
        self.parent = parent
        self.descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


class Group:
    """The cgroups of one process that forks the commands of calls: one cgroup if version 2 has all controllers, else
    one in each hierarchy."""

    def __init__(self, hierarchies: list[Hierarchy], name: str) -> None:
        self._hierarchies = hierarchies
        self._name = name
        self._places: dict[str, tuple[int, int]] = {}
        """For each controller, the cgroup version and a descriptor of the group's directory."""
        self._before: dict[str, int] = {}
        for hierarchy in hierarchies:
            os.mkdir(name, dir_fd=hierarchy.descriptor)
            place = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=hierarchy.descriptor)
            for controller in hierarchy.controllers:
                self._places[controller] = hierarchy.version, place

    def join(self) -> None:
        """Move this process into the group."""
        for place in self.descriptors:
            _write(place, "cgroup.procs", "0")

    def remove(self) -> None:
        """Remove the group; it must have no processes any more."""
        for hierarchy in self._hierarchies:
            with contextlib.suppress(OSError):
                os.rmdir(self._name, dir_fd=hierarchy.descriptor)

    @property
    def descriptors(self) -> set[int]:
        return {place for _version, place in self._places.values()}

    @property
    def counts_memory(self) -> bool:
        return "memory" in self._places

    @property
    def counts_tasks(self) -> bool:
        return "pids" in self._places

    def limit(self, limits: dict[str, Any]) -> None:
        """Set the limits for all later calls."""
        if "memory" in self._places:
            version, place = self._places["memory"]
            amount = int(limits["memory_bytes"])
            if version == 2:
                _write(place, "memory.max", str(amount or "max"))
                with contextlib.suppress(OSError):
                    _write(place, "memory.swap.max", "0" if amount else "max")
            else:
                with contextlib.suppress(OSError):  # First, since memsw may never be the lower limit.
                    _write(place, "memory.memsw.limit_in_bytes", "-1")
                _write(place, "memory.limit_in_bytes", str(amount or -1))
                with contextlib.suppress(OSError):
                    _write(place, "memory.memsw.limit_in_bytes", str(amount or -1))
                with contextlib.suppress(OSError):  # This limit only starts the counting; it refuses no memory.
                    _write(place, f"{CONNECTIONS}.limit_in_bytes", str(amount or -1))
        if "pids" in self._places:
            most = int(limits["max_processes"]) * TASKS_PER_PROCESS
            _write(self._places["pids"][1], "pids.max", str(most + 8) if most else "max")

    def begin(self) -> None:
        """Begin a call: remember the counts so far, which do not belong to this call."""
        self._before = {controller: self._count(controller) for controller in self._places}

    def killed_for_memory(self) -> bool:
        """Whether the kernel killed a process of the call because memory ran out."""
        return self.counts_memory and self._count("memory") > self._before.get("memory", 0)

    def memory_used(self) -> int:
        """The peak memory of the call, as the kernel reports it."""
        version, place = self._places["memory"]
        return _whole(place, "memory.peak" if version == 2 else "memory.max_usage_in_bytes")

    def in_connections(self) -> int:
        """The memory of TCP and UDP under version 1; 0 under version 2, which counts it with all other memory."""
        version, place = self._places["memory"]
        return 0 if version == 2 else _whole(place, f"{CONNECTIONS}.usage_in_bytes")

    def left_behind(self) -> int:
        """The memory, without page cache, that still counts for this group after all processes of the call have
        ended."""
        if "memory" not in self._places:
            return 0
        version, place = self._places["memory"]
        names = (b"anon", b"shmem") if version == 2 else (b"rss", b"shmem")
        return sum(_number(place, "memory.stat", name) for name in names)

    def refused_forks(self) -> int:
        """How often the kernel refused a fork of the call."""
        return self._count("pids") - self._before.get("pids", 0) if self.counts_tasks else 0

    def _count(self, controller: str) -> int:
        version, place = self._places[controller]
        if controller == "pids":
            return _number(place, "pids.events", b"max")
        return _number(place, "memory.events" if version == 2 else "memory.oom_control", b"oom_kill")


def _write(place: int, name: str, words: str) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=place)
    try:
        os.write(descriptor, words.encode())
    finally:
        os.close(descriptor)


def _read(place: int, name: str) -> bytes:
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=place)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)


def _whole(place: int, name: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(_read(place, name))
    return 0


def _number(place: int, name: str, key: bytes) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in _read(place, name).splitlines():
            words = line.split()
            if words[0] == key:
                return int(words[1])
    return 0


def own_groups() -> dict[str, str]:
    """The path of this process's cgroup for each controller of version 1, and with the key "" for version 2."""
    found = {}
    with open("/proc/self/cgroup") as file:
        for line in file:
            _number, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(","):
                found[controller] = path
    return found


def mounts() -> list[tuple[int, frozenset[str], str]]:
    """The mounted cgroup filesystems: version, controllers, path."""
    found = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            left, _, right = line.partition(b" - ")
            kind, _device, options = right.split()[:3]
            place = os.fsdecode(left.split()[4].decode("unicode_escape").encode("latin-1"))
            if kind == b"cgroup2":
                found.append((2, frozenset[str](), place))
            elif kind == b"cgroup":
                found.append((1, frozenset(options.decode().split(",")), place))
    return found


def usable(name: str, roots: list[tuple[int, frozenset[str], str]] | None = None) -> list[Hierarchy]:
    """The hierarchies that haft can use for memory, processes and processors, each tested by making a group."""
    found: list[Hierarchy] = []
    try:
        groups = own_groups()
        places = mounts() if roots is None else roots
    except (OSError, ValueError):
        return found
    missing = {"cpu", "memory", "pids"}
    for version, controllers, root in sorted(places, key=lambda place: -place[0]):
        counted = frozenset(missing) if version == 2 else controllers & missing
        if not counted:
            continue
        own = groups.get("" if version == 2 else next(iter(counted)), "/")
        # In version 2 a group with processes may have no groups below it, so ours are beside the group of this process.
        inside = own if version == 1 or own == "/" else os.path.dirname(own)
        parent = os.path.join(root, inside.lstrip("/")).rstrip("/")
        try:
            hierarchy = Hierarchy(version, counted & _offered(version, parent, counted), parent)
        except OSError:
            continue
        if hierarchy.controllers and _can_be_used(hierarchy, name):
            found.append(hierarchy)
            missing -= hierarchy.controllers
        else:
            os.close(hierarchy.descriptor)
    return found


def _offered(version: int, parent: str, wanted: frozenset[str]) -> frozenset[str]:
    if version == 1:
        return wanted
    with open(os.path.join(parent, "cgroup.subtree_control")) as file:
        return frozenset(file.read().split())


def _can_be_used(hierarchy: Hierarchy, own: str) -> bool:
    name = f"{own}-trial"
    try:
        os.mkdir(name, dir_fd=hierarchy.descriptor)
        try:
            place = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=hierarchy.descriptor)
            try:
                for controller, file in (("pids", "pids.max"), ("memory", _limit_file(hierarchy.version))):
                    if controller in hierarchy.controllers:
                        os.close(os.open(file, os.O_WRONLY | os.O_CLOEXEC, dir_fd=place))
            finally:
                os.close(place)
        finally:
            os.rmdir(name, dir_fd=hierarchy.descriptor)
    except OSError:
        return False
    return True


def _limit_file(version: int) -> str:
    return "memory.max" if version == 2 else "memory.limit_in_bytes"


def sweep(hierarchies: list[Hierarchy], own: str | None = None) -> None:
    """Remove the groups of helpers that have ended. A helper that is about to end passes its tag as `own`, to remove
    its own groups too."""
    for hierarchy in hierarchies:
        with contextlib.suppress(OSError):
            for name in os.listdir(hierarchy.descriptor):
                if name.startswith("haft-") and ((own is not None and name.startswith(f"{own}-")) or _is_orphan(name)):
                    with contextlib.suppress(OSError):
                        os.rmdir(name, dir_fd=hierarchy.descriptor)


def tag() -> str:
    """A new tag, with which the names of this process's groups begin."""
    return f"haft-{os.getpid()}-{time.monotonic_ns():x}"


def _is_orphan(name: str) -> bool:
    words = name.split("-")
    try:
        os.kill(int(words[1]), 0)
    except (ValueError, IndexError, PermissionError):
        return False
    except ProcessLookupError:
        return True
    return False
