"""Cgroups, where this process may make them: the kernel's own count of memory and processes, and a fair share of the
processors for each call.

A process is moved into a group once and forks there: moving takes the kernel ten milliseconds and holds up every fork
of the machine meanwhile, so no call pays for it. Version 2 where its controllers can be had, else version 1. Whether
they can be had is found out by trying.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

TASKS_PER_PROCESS = 2
"""The kernel counts threads: how many a process of a call may have on average."""
CONNECTIONS = "memory.kmem.tcp"
"""Where version 1 counts the memory of TCP and UDP, apart from all other."""


class Hierarchy:
    """A directory of cgroups that we may make others in, held open from before anything became read-only."""

    def __init__(self, version: int, controllers: frozenset[str], parent: str) -> None:
        self.version = version
        self.controllers = controllers
        self.parent = parent
        self.descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


class Group:
    """The groups of one forker: one where version 2 counts everything, else one for each controller."""

    def __init__(self, hierarchies: list[Hierarchy], name: str) -> None:
        self._hierarchies = hierarchies
        self._name = name
        self._places: dict[str, tuple[int, int]] = {}
        """By controller: the version and the directory."""
        self._before: dict[str, int] = {}
        for hierarchy in hierarchies:
            os.mkdir(name, dir_fd=hierarchy.descriptor)
            place = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=hierarchy.descriptor)
            for controller in hierarchy.controllers:
                self._places[controller] = hierarchy.version, place

    def join(self) -> None:
        """Move this process in."""
        for place in self.descriptors:
            _write(place, "cgroup.procs", "0")

    def remove(self) -> None:
        """When nobody is in it any more."""
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
        """For all calls to come."""
        if "memory" in self._places:
            version, place = self._places["memory"]
            amount = int(limits["memory_bytes"])
            if version == 2:
                _write(place, "memory.max", str(amount or "max"))
                with contextlib.suppress(OSError):
                    _write(place, "memory.swap.max", "0" if amount else "max")
            else:
                with contextlib.suppress(OSError):  # Lowering it below the other one is refused, whichever comes first.
                    _write(place, "memory.memsw.limit_in_bytes", "-1")
                _write(place, "memory.limit_in_bytes", str(amount or -1))
                with contextlib.suppress(OSError):
                    _write(place, "memory.memsw.limit_in_bytes", str(amount or -1))
                with contextlib.suppress(OSError):  # It counts from then on, and refuses nothing.
                    _write(place, f"{CONNECTIONS}.limit_in_bytes", str(amount or -1))
        if "pids" in self._places:
            most = int(limits["max_processes"]) * TASKS_PER_PROCESS
            _write(self._places["pids"][1], "pids.max", str(most + 8) if most else "max")

    def begin(self) -> None:
        """A call begins: what was counted before it is not its own."""
        self._before = {controller: self._count(controller) for controller in self._places}

    def killed_for_memory(self) -> bool:
        """Whether the kernel had to kill something of the call."""
        return self.counts_memory and self._count("memory") > self._before.get("memory", 0)

    def memory_used(self) -> int:
        """The most that was in use at one time, as far as the kernel says."""
        version, place = self._places["memory"]
        return _whole(place, "memory.peak" if version == 2 else "memory.max_usage_in_bytes")

    def in_connections(self) -> int:
        """What connections hold, where nothing else counts that."""
        version, place = self._places["memory"]
        return 0 if version == 2 else _whole(place, f"{CONNECTIONS}.usage_in_bytes")

    def left_behind(self) -> int:
        """Memory that is still charged when nobody of the call is left, page cache aside."""
        if "memory" not in self._places:
            return 0
        version, place = self._places["memory"]
        names = (b"anon", b"shmem") if version == 2 else (b"rss", b"shmem")
        return sum(_number(place, "memory.stat", name) for name in names)

    def refused_forks(self) -> int:
        """How often the kernel refused the call another process."""
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
    """By controller, and by "" for version 2: the group this process is in."""
    found = {}
    with open("/proc/self/cgroup") as file:
        for line in file:
            _number, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(","):
                found[controller] = path
    return found


def mounts() -> list[tuple[int, frozenset[str], str]]:
    """The cgroup filesystems: version, controllers, where."""
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
    """The hierarchies that will do for memory, processes and processors, each tried by making a group."""
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
        # Version 2 has processes only in groups without others below them: ours stand beside the one we are in.
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
    """Remove the groups of helpers that are gone, and with `own` those of this one: at its end."""
    for hierarchy in hierarchies:
        with contextlib.suppress(OSError):
            for name in os.listdir(hierarchy.descriptor):
                if name.startswith("haft-") and ((own is not None and name.startswith(f"{own}-")) or _is_orphan(name)):
                    with contextlib.suppress(OSError):
                        os.rmdir(name, dir_fd=hierarchy.descriptor)


def tag() -> str:
    """How this process calls its groups."""
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
