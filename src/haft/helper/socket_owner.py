"""Finds the process that has a TCP socket, to tell a person which program wants to connect."""

from __future__ import annotations

import contextlib
import os
import socket

LOCAL_ADDRESS, INODE = 1, 9
"""The columns of `/proc/net/tcp`."""


def inode_of(address: str, port: int) -> int | None:
    """The inode of the TCP socket of this network namespace with a local address and port; None if there is none."""
    four = socket.inet_aton(address)[::-1].hex().upper()
    wanted = {f"{four}:{port:04X}", f"0000000000000000FFFF0000{four}:{port:04X}"}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/self/net/{name}") as file:
            for line in file:
                words = line.split()
                if words[LOCAL_ADDRESS] in wanted:
                    return int(words[INODE])
    return None


def owner_of(inode: int, pids: list[int]) -> int | None:
    """The process that has the socket with this inode open; None if none has."""
    wanted = f"socket:[{inode}]"
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{name}") == wanted:
                        return pid
    return None
