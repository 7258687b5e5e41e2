"""Hosts and ports of URLs."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

PORTS: Final = {"http": 80, "https": 443, "ssh": 22, "git": 9418}

Address = tuple[str, int]
"""A host and a port."""


def address_of(url: str) -> Address | None:
    """The host and port of a URL; None if it has no host, or another scheme than http, https, ssh and git."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    usual = PORTS.get(parts.scheme.lower())
    if usual is None or not host:
        return None
    return host.lower().rstrip("."), port or usual


def is_local(host: str) -> bool:
    """Whether a host is written as this machine, or as an address that no index has: link-local, multicast or
    reserved."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    inner = getattr(address, "ipv4_mapped", None) or address
    return bool(
        inner.is_loopback or inner.is_link_local or inner.is_unspecified or inner.is_multicast or inner.is_reserved
    )


def is_public_address(host: str) -> bool:
    """Whether a text is an address on the internet."""
    return ipaddress.ip_address(host).is_global
