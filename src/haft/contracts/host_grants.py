"""Grants of the network by host: `registry.example`, `*.example.org:443`, `localhost:5432`, `10.0.0.7:22`,
`mirror.example=10.1.0.0/16`, `build.example:*`, and names of groups such as `@package-indexes`."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from haft.lazy import regex
from haft.values import dataclass

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

PACKAGE_INDEXES: Final = "@package-indexes"
GROUPS: Final = (PACKAGE_INDEXES,)
USUAL_PORTS: Final = ((80, 80), (443, 443))
"""The ports of a grant that names none."""
ALL_PORTS: Final = ((1, 65535),)
PRIVATE_SUFFIXES: Final = ("internal", "local", "lan", "intranet", "private", "test", "home.arpa", "localdomain")
"""No public name server answers for these names, so only the site's own servers can say where they lead."""
MAX_PORTS: Final = 256
MAX_HOSTS: Final = 200

_FORM: Final = regex(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]=\s]+)(?::(\d{1,5}|\*)(?:-(\d{1,5}))?)?(?:=(\S+))?")
_NAME: Final = regex(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")

Ports = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class HostGrant:
    """One granted host, or all names below a domain."""

    grant: str
    """The grant as it was written."""
    host: str
    wild: bool = False
    """Whether the grant covers all names below `host`, and not `host` itself."""
    ports: Ports = USUAL_PORTS
    """Ranges of ports, each with its first and last port."""
    literal: bool = False
    """Whether `host` is an address."""
    within: tuple[str, ...] = ()
    """Networks that the name may lead to although they are not public."""
    private: bool = False
    """Whether the name may lead to any private address."""

    def covers(self, name: str, port: int) -> bool:
        """Whether the grant covers a port of a name, or of an address."""
        if not any(first <= port <= last for first, last in self.ports):
            return False
        return name.endswith(f".{self.host}") if self.wild else name == self.host

    def to_json(self) -> dict[str, Any]:
        return {
            "grant": self.grant,
            "host": self.host,
            "wild": self.wild,
            "ports": [list(each) for each in self.ports],
            "literal": self.literal,
            "within": list(self.within),
            "private": self.private,
        }


def host_grant(text: str) -> HostGrant:
    """Read one grant by host. Raises `ValueError` with an explanation if it is not valid."""
    found = _FORM.fullmatch(text)
    if found is None and "://" in text:
        raise ValueError(f"`{text}` is no host: leave out `{text.partition('://')[0]}://` and the path")
    if found is None and text.count(":") > 1:
        raise ValueError(f"`{text}` is no host: write an IPv6 address in brackets, with a port, as in `[::1]:5432`")
    if found is None:
        raise ValueError(f"`{text}` is no host: write HOST, HOST:PORT or *.DOMAIN, for example `registry.example:443`")
    import ipaddress  # Imported here because contracts are loaded at every start.

    written, first, last, networks = found.groups()
    host = written.strip("[]").lower().rstrip(".")
    literal = _is_address(host)
    wild = host.startswith("*.")
    host = host.removeprefix("*.")
    if literal:
        host = str(ipaddress.ip_address(host))
    elif not host.isascii():
        host = _ascii_name(text, host)
    if not literal and (not _NAME.fullmatch(host) or host.replace(".", "").isdigit()):
        raise ValueError(f"`{text}` cannot be granted: `{host}` is not the name of a host")
    if wild and "." not in host and not is_private_name(f"x.{host}"):
        raise ValueError(shared_ending(text, host))
    is_local = host == "localhost" or (literal and ipaddress.ip_address(host).is_loopback)
    ports = _ports(text, first, last, literal=literal, local=is_local)
    private = not wild and not literal and is_private_name(host)
    return HostGrant(text, host, wild, ports, literal, _networks(text, networks), private)


def _ports(text: str, first: str | None, last: str | None, *, literal: bool, local: bool) -> Ports:
    if first is None:
        if local:
            raise ValueError(f"`{text}` would open services of this machine: name the port, as in `{text}:5432`")
        return USUAL_PORTS
    if first == "*":
        if local or literal or last is not None:
            raise ValueError(f"`{text}` cannot be granted: name the port of an address")
        return ALL_PORTS
    begin, end = int(first), int(last or first)
    if not 0 < begin <= end <= 65535:
        raise ValueError(f"`{text}` cannot be granted: a port is a number from 1 to 65535")
    if end - begin >= MAX_PORTS:
        raise ValueError(f"`{text}` cannot be granted: it names more than {MAX_PORTS} ports; write `:*` for all ports")
    return ((begin, end),)


def _networks(text: str, networks: str | None) -> tuple[str, ...]:
    import ipaddress

    try:
        return tuple(str(ipaddress.ip_network(each)) for each in networks.split(",")) if networks else ()
    except ValueError as error:
        example = "mirror.example:443=10.1.0.0/16"
        raise ValueError(
            f"`{text}` cannot be granted: `{networks}` is no network; write it as in `{example}`"
        ) from error


def _ascii_name(text: str, host: str) -> str:
    try:
        return host.encode("idna").decode().lower()
    except UnicodeError as error:
        raise ValueError(f"`{text}` cannot be granted: `{host}` is not the name of a host") from error


def _is_address(host: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_private_name(host: str) -> bool:
    """Whether no public name server answers for a name: it has one label, or a private suffix."""
    return "." not in host or any(f".{host}".endswith(f".{end}") for end in PRIVATE_SUFFIXES)


def shared_ending(grant: str, domain: str) -> str:
    """The problem of a grant for all names below a domain that has no single owner, such as `com` or `github.io`."""
    return f"`{grant}` cannot be granted: names below `{domain}` belong to many owners; name the hosts"


def network_from(given: object) -> bool | tuple[str, ...]:
    """The value of a grant of the network: true, false, or a list of hosts. Raises `ValueError` with an explanation."""
    if isinstance(given, bool):
        return given
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError("network must be true, false, or a list of hosts")  # noqa: TRY004  all raise the same
    hosts = tuple(dict.fromkeys(given))
    if len(hosts) > MAX_HOSTS:
        raise ValueError(f"network has more than {MAX_HOSTS} hosts")
    for each in hosts:
        if not isinstance(each, str) or not each:
            raise ValueError(f"network must be a list of hosts, and {each!r} is not one")
        if each.startswith("@"):
            if each not in GROUPS:
                raise ValueError(f"there is no group `{each}` of hosts; the groups are {', '.join(GROUPS)}")
        else:
            host_grant(each)
    return hosts or False


def hosts_in(text: str) -> tuple[str, ...]:
    """The hosts in a text in which commas separate them. A network after a comma, as in
    `mirror.example=10.1.0.0/16,10.2.0.0/16`, belongs to the host before it. Does not check the hosts."""
    found: list[str] = []
    for part in (each.strip() for each in text.split(",")):
        if found and "=" in found[-1] and "/" in part and "=" not in part:
            found[-1] += f",{part}"
        elif part:
            found.append(part)
    return tuple(dict.fromkeys(found))


def check_owned(network: bool | tuple[str, ...]) -> None:
    """Raise `ValueError` if a grant covers all names below a public suffix, such as `*.co.uk` or `*.github.io`: anyone
    can register such a name. Does not check for public suffixes further below: names below `*.example.org` may still
    have several owners."""
    if isinstance(network, bool) or not any(each.startswith("*.") for each in network):
        return
    for each in network:
        if each.startswith("@"):
            continue
        grant = host_grant(each)
        if grant.wild and not is_private_name(f"x.{grant.host}") and _public_suffixes().is_public(grant.host):
            raise ValueError(shared_ending(each, grant.host))


def grant_for(network: bool | tuple[str, ...], name: str, port: int) -> str | None:
    """The first grant among the hosts that covers a port of a name, as it was written; None if there is none. Groups
    of hosts are left out."""
    hosts = () if isinstance(network, bool) else network
    return next((each for each in hosts if not each.startswith("@") and host_grant(each).covers(name, port)), None)


@functools.cache
def _public_suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList  # Imported here because loading the list takes long.

    return PublicSuffixList()


def joined_network(one: bool | tuple[str, ...], other: bool | tuple[str, ...]) -> bool | tuple[str, ...]:
    """The network that two grants open together."""
    if one is True or other is True:
        return True
    hosts = tuple(dict.fromkeys((*(one or ()), *(other or ()))))
    return hosts or False
