"""How much memory sockets hold, as the kernel tells over netlink. No descriptor is needed for that: a socket that is on
its way to another process, or that nobody has accepted yet, is in the kernel's list as well.

Two things are not in the list, and only their bounds are: messages whose sender is gone, and whole pages of which a
message has one byte (`splice`).
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Collection, Iterator

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, REQUEST_DUMP = 4, 20, 0x301
NLMSG_ERROR, NLMSG_DONE = 2, 3
ALL_STATES = 0xFFFF_FFFF
TCP, UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP
STREAM, DATAGRAM = 1, 2

UNIX_HEAD, UNIX_PEER, UNIX_QUEUE, UNIX_MEMORY, UNIX_INODE_AT = 16, 2, 4, 5, 4
INET_HEAD, INET_MEMORY, INET_INODE_AT = 72, 7, 68
NETLINK_HEAD, NETLINK_MEMORY, NETLINK_INODE_AT = 28, 0, 16

DATAGRAMS = 12
"""How many messages of others a datagram socket holds: net.unix.max_dgram_qlen of a new namespace, and its peer's."""
PINNED = os.sysconf("SC_PAGE_SIZE") // 50
"""By how much spliced pages outweigh the bytes that they are counted with: sixteen for a message of 800 bytes."""
USUAL_BUFFER = 212_992


def fullest() -> tuple[int, int]:
    """How many bytes one unix socket can hold at most, and one of any kind. Asked on the host: some network namespaces
    do not tell."""
    unix = _setting("core/wmem_max")
    most = max(unix, *map(_setting, ("core/rmem_max", "ipv4/tcp_wmem", "ipv4/tcp_rmem")))
    return 4 * unix, 4 * most  # What is asked for is doubled, and the last message may pass it by as much again.


def _setting(name: str) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/sys/net/{name}", "rb") as file:
        return max(USUAL_BUFFER, int(file.read().split()[-1]))
    return USUAL_BUFFER


class Held:
    """Bytes that sockets hold for certain, and how many more they may hold."""

    def __init__(self) -> None:
        self.certain = 0
        self.possible = 0
        self.seen = 0


class Sockets:
    """The sockets of the network namespace that this process is in."""

    def __init__(self, full: tuple[int, int], *, shared: bool) -> None:
        """`shared`: others have sockets here too, so those of the call are told by their inodes."""
        self._full_unix, self.full = full
        self._shared = shared
        self._before = _used()

    def made(self) -> int:
        """How many there are more than at the beginning."""
        return max(0, _used() - self._before)

    def held(self, own: Collection[int]) -> Held:
        """What they hold, with `own` as the inodes of those that the call has open."""
        found = Held()
        made = self.made()
        with contextlib.suppress(OSError), _opened() as kernel:
            for inode, certain, possible in _listed(kernel, self._full_unix):
                if not self._shared or inode in own:
                    found.certain += certain
                    found.possible += possible
                    found.seen += 1
        # Of a kind that is not listed, or in a shared network on its way to someone.
        found.possible += max(0, made - found.seen) * self.full
        return found


def _used() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/net/sockstat", "rb", buffering=0) as file:
        return int(file.read(200).split(None, 3)[2])
    return 0


def _opened() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)


def _listed(kernel: socket.socket, full: int) -> Iterator[tuple[int, int, int]]:
    """Each socket: its inode, what it holds for certain, and what it may hold besides."""
    for message in _dumped(kernel, struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, ALL_STATES, 0, 0x34, 0, 0)):
        kind, inode = message[1], _inode(message, UNIX_INODE_AT)
        about = _attributes(message, UNIX_HEAD)
        queued = _amount(about.get(UNIX_MEMORY))
        unread = struct.unpack_from("=I", about.get(UNIX_QUEUE, bytes(4)))[0]
        is_alone = not any(about.get(UNIX_PEER, b""))
        if kind == STREAM:
            possible = queued * PINNED + (full * PINNED if unread and is_alone else 0)
        elif kind == DATAGRAM:
            possible = DATAGRAMS * full
        else:
            possible = full if is_alone else 0
        yield inode, queued, possible
    for family in (socket.AF_INET, socket.AF_INET6):
        for protocol in (TCP, UDP):
            asked = struct.pack("=BBBBI48x", family, protocol, 1 << (INET_MEMORY - 1), 0, ALL_STATES)
            for message in _dumped(kernel, asked):
                queued = _amount(_attributes(message, INET_HEAD).get(INET_MEMORY))
                yield _inode(message, INET_INODE_AT), queued, queued * PINNED
    asked = struct.pack("=BBHIIII", socket.AF_NETLINK, 0xFF, 0, 0, 1, 0, 0)
    for message in _dumped(kernel, asked):
        queued = _amount(_attributes(message, NETLINK_HEAD).get(NETLINK_MEMORY))
        yield _inode(message, NETLINK_INODE_AT), queued, 0


def _inode(message: memoryview, at: int) -> int:
    found: int = struct.unpack_from("=I", message, at)[0]
    return found


def _amount(memory: bytes | memoryview | None) -> int:
    """Bytes received, sent or queued, and waiting to be looked at."""
    if memory is None:
        return 0
    received, _, sent, _, _, queued, _, waiting = struct.unpack_from("=8I", memory)
    return int(received + max(sent, queued) + waiting)


def _dumped(kernel: socket.socket, asked: bytes) -> Iterator[memoryview]:
    """The messages of one answer; none where the kernel lists no such sockets."""
    kernel.send(struct.pack("=IHHII", 16 + len(asked), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 0, 0) + asked)
    while True:
        words = memoryview(kernel.recv(1 << 17))
        while len(words) >= 16:
            size, kind = struct.unpack_from("=IH", words)
            if kind in (NLMSG_ERROR, NLMSG_DONE) or size < 16:
                return
            yield words[16:size]
            words = words[(size + 3) & ~3 :]


def _attributes(message: memoryview, head: int) -> dict[int, memoryview]:
    found = {}
    while len(message) >= head + 4:
        size, kind = struct.unpack_from("=HH", message, head)
        if size < 4:
            break
        found[kind] = message[head + 4 : head + size]
        head += (size + 3) & ~3
    return found
