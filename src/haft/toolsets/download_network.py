"""The network of haft's own downloads: the packages of templates, and git plugins. They reach the hosts that they need,
and no others.

`environments` and `checkouts` use this module. The package `sandbox` enforces the grants.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

from haft.config import Config
from haft.contracts import Connection, HeldConnection, HostGrant, Network
from haft.lazy import regex
from haft.sandbox import Sandbox

PORTS: Final = {"https": 443, "ssh": 22, "git": 9418}
PRIVATE_NETWORKS: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
_SCP: Final = regex(r"(?:[^@/]+@)?([^:/@]+):")
_ADDRESS: Final = regex(r"https://[^\s;]+")
MOST_SHOWN: Final = 5


async def restricted(sandbox: Sandbox, *hosts: str) -> Network:
    """The network of a download: these hosts, or the whole network on a machine that cannot restrict a call to hosts.
    With `sandbox.mode = "required"`, nothing runs on such a machine."""
    return True if await sandbox.no_network_by_host() is not None else hosts


def configured_hosts(config: Config) -> tuple[str, ...]:
    """The hosts that the setting `sandbox.network` opens to every call. Downloads reach them too."""
    network = config.sandbox_network
    return network if isinstance(network, tuple) else ()


def git_host(address: str) -> str | None:
    """The grant for the host and port of a git address; None if there is no host. The name may lead to a private
    address, because only a configuration file of the person, or a trusted one, names plugins."""
    scp = _SCP.match(address) if "://" not in address else None
    if scp is not None:
        host, port = scp[1], PORTS["ssh"]
    else:
        parts = urlsplit(address)
        if not parts.hostname or parts.scheme not in PORTS:
            return None
        host, port = parts.hostname, parts.port or PORTS[parts.scheme]
    if _is_literal(host) or host == "localhost":
        return _with_port(host, port)
    return f"{_with_port(host, port)}={','.join(PRIVATE_NETWORKS)}"


def hosts_in(lines: Iterable[str]) -> Iterator[str]:
    """The grants for the addresses in lines of requirements. An address that is written as a number is left out: the
    file is not trusted, and could open a service of this machine."""
    for line in lines:
        for found in _ADDRESS.finditer(line):
            try:
                host, port = urlsplit(found[0]).hostname, urlsplit(found[0]).port
            except ValueError:
                continue
            if host and host != "localhost" and not _is_literal(host):
                yield _with_port(host, port or PORTS["https"])


def _with_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class RefusedConnections:
    """Collects the connections of a download that the sandbox refused. Nobody is asked about them."""

    def __init__(self) -> None:
        self._found: dict[str, str | None] = {}

    def opened(self, host: str, port: int, grant: str) -> None: ...

    def ended(self, connection: Connection) -> None:
        """Note the connection if it was refused. A connection that failed is none of these."""
        if not connection.allowed and connection.protocol == "tcp":
            self._found.setdefault(_with_port(connection.host, connection.port), connection.reason)

    def incomplete(self, why: str) -> None: ...

    async def ask(self, held: HeldConnection) -> HostGrant | None:
        return None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The refused hosts with their ports."""
        return tuple(self._found)

    def sentence(self) -> str | None:
        """What was refused; None if nothing was."""
        if not self._found:
            return None
        said = [f"`{host}` ({reason})" if reason else f"`{host}`" for host, reason in self._found.items()]
        more = f" and {len(said) - MOST_SHOWN} more" if len(said) > MOST_SHOWN else ""
        return f"the sandbox refused a connection to {', '.join(said[:MOST_SHOWN])}{more}"
