"""Measures the memory of sockets, which the kernel reports over netlink. This needs no descriptor: the kernel also
lists sockets that are in flight to another process, or not accepted yet.

For two things, the list gives only upper bounds: messages whose sender has ended, and whole pages of which a message
has one byte (`splice`).
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
"""How many messages of others a datagram socket can queue: net.unix.max_dgram_qlen of a new namespace, and the messages
of its peer."""
PINNED = os.sysconf("SC_PAGE_SIZE") // 50
"""The ratio of the real size of spliced pages to the bytes that the kernel counts for them: sixteen pages for a message
of 800 bytes."""
USUAL_BUFFER = 212_992


def largest_buffers() -> tuple[int, int]:
    """The most bytes that one Unix socket can queue, and the most that one socket of any kind can queue. Call this in
    the network namespace of the host, since some other network namespaces do not have these settings."""
    unix = _setting("core/wmem_max")
    most = max(unix, *map(_setting, ("core/rmem_max", "ipv4/tcp_wmem", "ipv4/tcp_rmem")))
    return 4 * unix, 4 * most  # The kernel doubles the setting, and the last message may exceed that by as much again.


def _setting(name: str) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/sys/net/{name}", "rb") as file:
        return max(USUAL_BUFFER, int(file.read().split()[-1]))
    return USUAL_BUFFER


class SocketMemory:
    """The bytes that sockets certainly use, and how many more they may use."""

    def __init__(self) -> None:
        self.certain = 0
        self.possible = 0
        self.seen = 0


class Sockets:
    """The sockets of the network namespace that this process is in."""

    def __init__(self, full: tuple[int, int], *, shared: bool) -> None:
        """`shared`: other programs have sockets in this namespace too, so the call's sockets are recognised by their
        inodes."""
        self._full_unix, self.full = full
        self._shared = shared
        self._before = _used()

    def made(self) -> int:
        """How many more sockets there are than when this object was made."""
        return max(0, _used() - self._before)

    def held(self, own: Collection[int]) -> SocketMemory:
        """The memory of the call's sockets; `own` are the inodes of sockets that the call has open."""
        found = SocketMemory()
        made = self.made()
        with contextlib.suppress(OSError), _opened() as kernel:
            for inode, certain, possible in _listed(kernel, self._full_unix):
                if not self._shared or inode in own:
                    found.certain += certain
                    found.possible += possible
                    found.seen += 1
        # Sockets of a kind that is not listed, or, in a shared network, sockets in flight.
        found.possible += max(0, made - found.seen) * self.full
        return found


def _used() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/net/sockstat", "rb", buffering=0) as file:
        return int(file.read(200).split(None, 3)[2])
    return 0


def _opened() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)


def _listed(kernel: socket.socket, full: int) -> Iterator[tuple[int, int, int]]:
    """For each socket its inode, the bytes that it certainly uses, and the bytes that it may use in addition."""
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
    """The bytes that a socket takes: received, sent or queued, and in the backlog."""
    if memory is None:
        return 0
    received, _, sent, _, _, queued, _, waiting = struct.unpack_from("=8I", memory)
    return int(received + max(sent, queued) + waiting)


def _dumped(kernel: socket.socket, asked: bytes) -> Iterator[memoryview]:
    """The messages in which the kernel answers `asked`; none if the kernel does not list sockets of this kind."""
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
