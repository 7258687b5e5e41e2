"""Processes as the kernel shows them: parents, sessions, terminals and start times, from `/proc`.

`living_clients` uses this module to tell a person's process from a process of an agent. Nothing here decides. On
machines without `/proc` every function returns None or nothing.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

from haft.values import dataclass

_STATE: Final = 0
_PARENT: Final = 1
_SESSION: Final = 3
_TERMINAL: Final = 4
_STARTED: Final = 19
"""Fields of /proc/PID/stat, counted from the one after the program's name."""
_NO_LOGIN: Final = 2**32 - 1
_TRIES: Final = 5
_DEEPEST: Final = 4096


@dataclass(frozen=True, slots=True)
class Process:
    """One process. The pid and the start time together name it: the kernel uses pids again."""

    pid: int
    started: int
    """In ticks of the kernel's clock since the machine was started."""
    parent: int
    session: int
    terminal: int
    """The number of the controlling terminal; 0 if there is none."""
    name: str
    owner: int
    """The number of the user; -1 if the kernel hides the process."""

    def is_same(self, other: Process) -> bool:
        return (self.pid, self.started) == (other.pid, other.started)


def has_process_tree() -> bool:
    """Whether this machine shows the parents and sessions of processes."""
    return process("self") is not None


def process(pid: int | str) -> Process | None:
    """The process with this number; None if it has ended, or if the kernel does not show it."""
    if not _shows_own_namespace():
        return None
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
        begin, rest = text.rsplit(b")", 1)  # The name in parentheses may contain anything, even a `)`.
        number, name = begin.split(b" (", 1)
        fields = rest.split()
        if fields[_STATE] in (b"Z", b"X"):
            return None
        return Process(
            pid=int(number),
            started=int(fields[_STARTED]),
            parent=int(fields[_PARENT]),
            session=int(fields[_SESSION]),
            terminal=int(fields[_TERMINAL]),
            name=name.decode("utf-8", "replace"),
            owner=owner,
        )
    except (OSError, ValueError, IndexError):
        return None


def _shows_own_namespace() -> bool:
    """Whether `/proc` has the pids of the namespace of this process, and not of one around it: then the pids that this
    process knows would mean others there."""
    try:
        with open("/proc/self/status", "rb") as file:
            return all(len(line.split()) == 2 for line in file if line.startswith(b"NSpid:"))
    except OSError:
        return False


def sees_real_owners() -> bool:
    """Whether the owners of processes are the machine's users, and not those of a user namespace."""
    with contextlib.suppress(OSError, ValueError), open("/proc/self/uid_map") as file:
        return [int(word) for word in file.read().split()] == [0, 0, 2**32 - 1]
    return False


def ancestry(pid: int | str) -> list[Process]:
    """The process and its parents, the process itself first. Empty if it has ended.

    If the kernel hides a parent (`hidepid`), the parent is the last one, with start time 0: it belongs to another user.
    """
    found: list[Process] = []
    for _ in range(_TRIES):
        found, is_whole = _climb(pid)
        if is_whole:
            break
    return found


def _climb(pid: int | str) -> tuple[list[Process], bool]:
    """The process and its parents; and whether no process of the list ended meanwhile."""
    first = process(pid)
    if first is None:
        return [], True
    found = [first]
    while found[-1].parent != 0 and len(found) < _DEEPEST:
        below = found[-1]
        above = process(below.parent)
        if above is None or above.started > below.started:
            hidden = Process(below.parent, 0, 0, -1, 0, "", -1)
            return [*found, hidden], False
        found.append(above)
    return found, all(_has_same_parent(one) for one in found)


def _has_same_parent(one: Process) -> bool:
    now = process(one.pid)
    return now is not None and now.is_same(one) and now.parent == one.parent


def adopter() -> int | None:
    """The pid of the process that would adopt the orphans of this process: init, or the nearest parent that asked the
    kernel for orphans (a subreaper). The kernel does not show which processes did, so this makes an orphan and looks.
    None if that fails."""
    try:
        reading, writing = os.pipe()
    except OSError:
        return None
    try:
        middle = os.fork()
        if middle == 0:
            _orphan(writing)
        os.waitpid(middle, 0)
        os.close(writing)
        writing = -1
        told = os.read(reading, 32)
        return int(told)
    except (OSError, ValueError):
        return None
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


def _orphan(writing: int) -> None:
    """In a forked child: fork once more, and end. The child's child writes the pid of the process that adopts it."""
    try:
        middle = os.getpid()
        if os.fork() == 0:
            while os.getppid() == middle:
                os.sched_yield()
            os.write(writing, str(os.getppid()).encode())
    finally:
        os._exit(0)


def login_of(pid: int) -> int | None:
    """The number of the login that a process belongs to, as the kernel's audit keeps it. A process cannot change it
    without the right to do so. None if there is none."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/sessionid") as file:
        number = int(file.read())
        return None if number == _NO_LOGIN else number
    return None


def namespaces(pid: int | str = "self") -> tuple[str, str]:
    """The names of the namespaces that give pids and start times their meaning; empty names where there are none."""
    names = ["", ""]
    for place, kind in enumerate(("pid", "time")):
        with contextlib.suppress(OSError):
            names[place] = os.readlink(f"/proc/{pid}/ns/{kind}")
    return names[0], names[1]


def sees_namespace(name: str) -> bool:
    """Whether a process of this pid namespace is visible from here: then this process is outside of it, above it."""
    if not _shows_own_namespace():
        return False
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc"):
            if entry.isdigit() and namespaces(entry)[0] == name:
                return True
    return False


def control_group(pid: int) -> str | None:
    """The control group of a process, as systemd and containers make them; None if it is not known."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cgroup") as file:
        for line in file:
            if line.startswith("0::"):
                return line[3:].rstrip("\n")
    return None


def boot() -> str:
    """A name for this start of the machine; empty if it is not known."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
    return ""
