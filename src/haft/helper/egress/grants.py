"""Grants by host: which names and ports a call may reach, and which real addresses a name may lead to."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

FEW_PORTS = 4
METADATA = frozenset(
    ipaddress.ip_address(each)
    for each in ("100.100.100.200", "168.63.129.16", "169.254.169.254", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
"""Where cloud providers serve the credentials of a machine. Some of these addresses look public, and some private."""
NEVER_PUBLIC = tuple(
    ipaddress.ip_network(each) for each in ("192.0.0.0/24", "64:ff9b:1::/48", "fec0::/10", "::ffff:0:0:0/96")
)
"""Networks that Python takes for public, at least in some of its versions."""


class Grant:
    """One host, or all names below a domain, with the ports that may be reached."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.words: str = fields["grant"]
        """The grant as a person wrote it."""
        self.host: str = fields["host"]
        self.is_wild: bool = fields["wild"]
        self._ports = [range(first, last + 1) for first, last in fields["ports"]]
        self._may_be_private: bool = fields["private"]
        """Whether the name may lead to a private address."""
        self._within = [ipaddress.ip_network(each) for each in fields["within"]]
        self.address = ipaddress.ip_address(self.host) if fields["literal"] else None
        self.is_local = self.host == "localhost" or (self.address is not None and self.address.is_loopback)

    @property
    def has_few_ports(self) -> bool:
        return sum(map(len, self._ports)) <= FEW_PORTS

    def ports(self) -> Iterator[int]:
        for each in self._ports:
            yield from each

    def covers(self, name: str, port: int | None = None) -> bool:
        """Whether this grant covers a name, or an address written as text; with `port`, this port of it."""
        if port is not None and not any(port in each for each in self._ports):
            return False
        return name.endswith(f".{self.host}") if self.is_wild else name == self.host

    def problem_of(self, text: str) -> str | None:
        """Why this grant does not lead to a real address; None if it does."""
        found = ipaddress.ip_address(text.partition("%")[0])
        if self.address is not None:
            return None if found == self.address else "is another address"
        if self.host == "localhost":
            return None if found.is_loopback else "is not this machine"
        for address in inner_addresses(found):
            if any(address in network for network in self._within if network.version == address.version):
                continue
            if is_public(address):
                continue
            if self._may_be_private and is_private(address):
                continue
            return f"is a {kind_of(address)} address"
        return None


def is_public(address: Address) -> bool:
    """Whether an address is a server's on the internet."""
    special = address.is_multicast or address in METADATA
    return address.is_global and not special and not any(address in network for network in NEVER_PUBLIC)


def is_private(address: Address) -> bool:
    """Whether an address belongs to a private network: neither public nor loopback, link-local or reserved."""
    is_special = address.is_loopback or address.is_link_local or address.is_multicast or address.is_reserved
    return not (address.is_global or is_special or is_this_machine(address) or address in METADATA)


def is_this_machine(address: Address) -> bool:
    """Whether an address is `::` or in 0.0.0.0/8: a connection to it may lead to this machine."""
    return address.is_unspecified or (address.version == 4 and int(address) >> 24 == 0)


def kind_of(address: Address) -> str:
    """The kind of an address that is not public, to show to people."""
    if address in METADATA:
        return "metadata"
    if address.is_link_local:
        return "link-local (metadata)"
    if address.is_loopback or is_this_machine(address):
        return "loopback"
    return "private" if is_private(address) else "reserved"


def inner_addresses(address: Address) -> Iterator[Address]:
    """The address, and the IPv4 address that it carries, if it does: packets may be routed to that one."""
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        number = int(address)
        if address.ipv4_mapped is not None:
            yield address.ipv4_mapped
        elif address.sixtofour is not None:
            yield address.sixtofour
        elif address.teredo is not None:
            yield from address.teredo
        elif number >> 32 in (0x64FF9B << 64, 0):
            yield ipaddress.IPv4Address(number & 0xFFFF_FFFF)
