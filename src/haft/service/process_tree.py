"""Processes as the kernel shows them: parents, sessions, terminals and start times, from `/proc`.

`living_clients` uses this module to tell a person's process from a process of an agent. Nothing here decides. On
machines without `/proc` every function returns None or nothing.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
import struct
from collections.abc import Iterable, Iterator
from typing import Final

from haft.values import dataclass

_STATE: Final = 0
_PARENT: Final = 1
_SESSION: Final = 3
_TERMINAL: Final = 4
_STARTED: Final = 19
"""Fields of /proc/PID/stat, counted from the one after the program's name."""
_LOCAL: Final = 1
_INODE: Final = 9
"""Columns of /proc/net/tcp."""
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


def at_other_end(descriptor: int) -> int | None:
    """The pid of the process at the other end of a pipe or socket: the nearest parent of this process that writes to
    the pipe, or the process that made the pair of sockets. None if this is a terminal or a file, or if no process is
    found."""
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISSOCK(mode):
            return _maker_of(descriptor)
        if not stat.S_ISFIFO(mode):
            return None
        pipe = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
    return next((one.pid for one in ancestry("self")[1:] if _writes_to(one.pid, pipe)), None)


def with_connection(address: str, port: int, likely: Iterable[int] = ()) -> int | None:
    """The pid of the process of this user that has the TCP socket with this local address and port. None if the socket
    belongs to another machine, another user or another network namespace. The processes `likely` are looked at first,
    because looking at all of them takes long."""
    try:
        place = ipaddress.ip_address(address)
    except ValueError:
        return None
    inodes = {f"socket:[{inode}]" for inode in _inodes(_as_in_proc(place), port)}
    if not inodes:
        return None
    with contextlib.suppress(OSError):
        for name in (*map(str, likely), *os.listdir("/proc")):
            if name.isdigit() and int(name) != os.getpid() and _has_one_of(name, inodes):
                return int(name)
    return None


def _as_in_proc(place: ipaddress.IPv4Address | ipaddress.IPv6Address) -> set[str]:
    """The forms of an address in /proc/net/tcp and /proc/net/tcp6: words of four bytes in the order of this machine."""
    if isinstance(place, ipaddress.IPv6Address) and place.ipv4_mapped is not None:
        place = place.ipv4_mapped
    forms = [place.packed]
    if isinstance(place, ipaddress.IPv4Address):
        forms.append(b"\0" * 10 + b"\xff\xff" + place.packed)
    return {"".join(f"{word:08X}" for word in struct.unpack(f"={len(form) // 4}I", form)) for form in forms}


def _inodes(addresses: set[str], port: int) -> Iterator[str]:
    wanted = {f"{address}:{port:04X}" for address in addresses}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/self/net/{name}") as file:
            for words in map(str.split, file):
                if len(words) > _INODE and words[_LOCAL] in wanted:
                    yield words[_INODE]


def _has_one_of(pid: str, inodes: set[str]) -> bool:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{name}") in inodes:
                    return True
    return False


def login_of(pid: int) -> int | None:
    """The number of the login that a process belongs to, as the kernel's audit keeps it. A process cannot change it
    without the right to do so. None if there is none."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/sessionid") as file:
        number = int(file.read())
        return None if number == _NO_LOGIN else number
    return None


def _maker_of(descriptor: int) -> int | None:
    with contextlib.suppress(OSError, AttributeError), socket.socket(fileno=os.dup(descriptor)) as one:
        told = one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid: int = struct.unpack("3i", told)[0]
        return pid if pid > 0 and pid != os.getpid() else None
    return None


def _writes_to(pid: int, pipe: str) -> bool:
    place = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(place):
            with contextlib.suppress(OSError, ValueError, IndexError):
                if os.readlink(f"{place}/{name}") == pipe:
                    with open(f"/proc/{pid}/fdinfo/{name}") as file:
                        flags = next(line for line in file if line.startswith("flags:")).split()[1]
                    if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
                        return True
    return False


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
