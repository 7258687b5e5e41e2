"""Finds the process at the other end of a pipe, a pair of sockets or a TCP connection of this machine, from `/proc`."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
import struct
from collections.abc import Iterable, Iterator
from typing import Final

from haft.service import process_tree

_LOCAL: Final = 1
_INODE: Final = 9
"""Columns of /proc/net/tcp."""


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
    return next((one.pid for one in process_tree.ancestry("self")[1:] if _writes_to(one.pid, pipe)), None)


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
