"""The network of a call whose connections are decided by host: every address leads to a socket of this namespace.

`prepare` runs in the new network namespace, before the call is known. It makes all addresses local, and makes the
sockets on which the egress process (`haft.helper.egress`) will listen. A socket belongs to the namespace that it was
made in, whichever process has it open: so the egress process can accept connections of the call without being in the
call's namespace. The kernel itself resets every other connection, and a packet socket shows which ones.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct

OWN_ADDRESS = "198.18.0.1"
"""An address of this namespace that is not loopback: without one, some programs look up no names."""
SPARE, SPARE_WITHOUT_RULES, SPARE6 = 48, 220, 8
"""How many unbound sockets are prepared for IPv4, for IPv4 without packet rules, and for IPv6. One message passes at
most 253 descriptors."""
ANY_NAME, ANY_ADDRESS = 1, 2
"""The ports on which two sockets listen that take connections to any port: of a name's address, and of others."""

NAMES_NET = b"\xc6\x13"
"""198.19.0.0/16: packet rules pass all connections to these addresses to the socket on port `ANY_NAME`."""

NLM_REQUEST, NLM_ACK, NLM_NEW = 1, 4, 0x600
RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE, NLMSG_ERROR = 16, 20, 24, 2
ETH_P_ALL, PACKET_IGNORE_OUTGOING, SOL_PACKET, SO_ATTACH_FILTER = 3, 23, 263, 26
IP_PKTINFO, IP_TRANSPARENT, IPV6_RECVPKTINFO = 8, 19, 49


RoledSocket = tuple[str, socket.socket]
"""A socket of a call's network, after its role."""


def prepare(*, with_hosts: bool) -> list[RoledSocket]:
    """Set up this namespace, and return its sockets. Without `with_hosts`, no host will be granted, and a person is
    asked about each: then the sockets for any port already listen, and connections wait until a process accepts
    them."""
    make_all_addresses_local()
    found = list(zip(("dns", "dns6"), _name_sockets(), strict=False))
    stream = socket.socket()
    stream.bind(("0.0.0.0", 53))  # noqa: S104  in the call's own namespace
    stream.listen(64)
    found.append(("dns-stream", stream))
    takers = sockets_for_any_port()
    found += zip(("any-name", "any-address"), takers, strict=False)
    if takers and not with_hosts:
        for end in takers:
            end.listen(1024)
        return found
    found.append(("tap", open_tap()))
    found += [("spare", socket.socket()) for _ in range(SPARE if takers else SPARE_WITHOUT_RULES)]
    with contextlib.suppress(OSError):  # A kernel without IPv6.
        found += [("spare6", socket.socket(socket.AF_INET6)) for _ in range(SPARE6)]
    return found


def _name_sockets() -> list[socket.socket]:
    """The sockets that receive look-ups of names. Their answers come from the address that the program asked."""
    four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    four.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    four.bind(("0.0.0.0", 53))  # noqa: S104
    found = [four]
    with contextlib.suppress(OSError):
        six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        six.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
        six.bind(("::", 53))
        found.append(six)
    return found


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def make_all_addresses_local() -> None:
    """Start the loopback device, and route every address of both families to it."""
    own, loopback = socket.inet_aton(OWN_ADDRESS), struct.pack("=i", 1)
    to_loopback = _attribute(4, loopback)
    messages = [
        (RTM_NEWLINK, 0, struct.pack("=BxHiII", 0, 0, 1, 1, 1)),
        (RTM_NEWADDR, NLM_NEW, struct.pack("=BBBBI", 2, 32, 0, 254, 1) + _attribute(2, own) + _attribute(1, own)),
        (RTM_NEWROUTE, NLM_NEW, struct.pack("=8BI", 2, 0, 0, 0, 255, 4, 254, 2, 0) + to_loopback + _attribute(7, own)),
        (RTM_NEWROUTE, NLM_NEW, struct.pack("=8BI", 10, 0, 0, 0, 255, 4, 0, 2, 0) + to_loopback),
    ]
    whole = b"".join(
        struct.pack("=IHHII", 16 + len(body), kind, flags | NLM_REQUEST | NLM_ACK, number, 0) + body
        for number, (kind, flags, body) in enumerate(messages)
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as kernel:
        kernel.sendall(whole)
        answered = 0
        while answered < len(messages):
            data = kernel.recv(65536)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind == NLMSG_ERROR:
                    answered += 1
                    status = struct.unpack_from("=i", data, 16)[0]
                    if status and answered < len(messages):  # The last one fails in a kernel without IPv6.
                        raise OSError(-status, f"the network of the call: {os.strerror(-status)}")
                data = data[(length + 3) & ~3 :]


def open_tap() -> socket.socket:
    """A packet socket that shows the first packet of each connection, and each datagram except look-ups. It leaves out
    packets to 127.0.0.0/8."""
    equal, byte, index, give, also, byte_at, half_at = 0x15, 0x30, 0xB1, 0x06, 0x54, 0x50, 0x48
    steps = [
        (byte, 0, 0, 0), (also, 0, 0, 0xF0), (equal, 1, 0, 0x40), (equal, 12, 17, 0x60),
        (byte, 0, 0, 16), (equal, 15, 0, 127), (byte, 0, 0, 9), (equal, 0, 4, 6),  # IPv4
        (index, 0, 0, 0), (byte_at, 0, 0, 13), (also, 0, 0, 0x12), (equal, 10, 9, 2),  # TCP: SYN without ACK
        (equal, 0, 8, 17), (index, 0, 0, 0), (half_at, 0, 0, 2), (equal, 5, 6, 53),  # UDP
        (byte, 0, 0, 6), (equal, 0, 3, 6), (byte, 0, 0, 53), (also, 0, 0, 0x12), (equal, 1, 0, 2),  # IPv6: TCP only
        (give, 0, 0, 0), (give, 0, 0, 64),
    ]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    end = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    end.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(steps), ctypes.addressof(code)))
    with contextlib.suppress(OSError):
        end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    end.bind(("lo", ETH_P_ALL))
    return end


def sockets_for_any_port() -> list[socket.socket]:
    """Two sockets that take connections to any port: one to the addresses in `NAMES_NET`, one to all other addresses
    except 127.0.0.0/8 and 198.18.0.0/16. Empty if the kernel has no packet rules (nf_tables with tproxy). The kernel
    passes connections on only while the socket listens."""
    try:
        _add_packet_rules()
        found = []
        for port in (ANY_NAME, ANY_ADDRESS):
            end = socket.socket()
            end.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
            end.bind(("127.0.0.1", port))
            found.append(end)
    except OSError:
        return []
    return found


def _add_packet_rules() -> None:
    """Have the kernel pass connections to the sockets of `sockets_for_any_port`. The rules are written over netlink,
    because the program `nft` may be missing."""

    def nested(kind: int, *parts: bytes) -> bytes:
        return _attribute(kind | 0x8000, b"".join(parts))

    def number(kind: int, value: int) -> bytes:
        return _attribute(kind, struct.pack(">I", value))

    def step(name: bytes, *parts: bytes) -> bytes:
        return nested(1, _attribute(1, name + b"\0"), nested(2, *parts))

    def message(kind: int, flags: int, body: bytes, family: int = 2, subsystem: int = 0) -> bytes:
        body = struct.pack("=BB", family, 0) + struct.pack(">H", subsystem) + body
        return struct.pack("=IHHII", 16 + len(body), kind, flags | NLM_REQUEST, 0, 0) + body

    def compare(value: bytes, *, equal: bool = True) -> bytes:
        return step(b"cmp", number(1, 1), number(2, 0 if equal else 1), nested(3, _attribute(1, value)))

    def destination(size: int) -> bytes:
        return step(b"payload", number(1, 1), number(2, 1), number(3, 16), number(4, size))

    def to_port(port: int) -> list[bytes]:
        return [
            step(b"immediate", number(1, 1), nested(2, _attribute(1, struct.pack(">H", port)))),
            step(b"tproxy", number(1, 2), number(3, 1)),
            step(b"immediate", number(1, 0), nested(2, nested(2, number(1, 1)))),
        ]

    tcp = [step(b"meta", number(1, 1), number(2, 16)), compare(b"\x06")]
    names = [*tcp, destination(2), compare(NAMES_NET), *to_port(ANY_NAME)]
    others = [
        *tcp, destination(1), compare(b"\x7f", equal=False), destination(2), compare(NAMES_NET, equal=False),
        destination(2), compare(b"\xc6\x12", equal=False), *to_port(ANY_ADDRESS),
    ]  # fmt: skip
    table, chain = _attribute(1, b"haft\0"), b"pre\0"
    hook = nested(4, number(1, 0), _attribute(2, struct.pack(">i", -150)))
    rules = b"".join(
        message(0xA06, 0xC04, table + _attribute(2, chain) + nested(4, *steps)) for steps in (names, others)
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 12) as kernel:
        kernel.sendall(
            message(0x10, 0, b"", 0, 10)
            + message(0xA00, 0x404, table)
            + message(0xA03, 0x404, table + _attribute(3, chain) + hook + _attribute(7, b"filter\0"))
            + rules
            + message(0x11, 0, b"", 0, 10)
        )
        kernel.settimeout(1)
        for _ in range(4):
            status = struct.unpack_from("=i", kernel.recv(4096), 16)[0]
            if status:
                raise OSError(-status, os.strerror(-status))
