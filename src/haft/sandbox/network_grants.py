"""Resolves the hosts that a grant of the network names, and replaces groups by their hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from haft.contracts import GROUPS, BadUsage, HostGrant, check_owned, host_grant


def network_hosts(
    network: Iterable[str], package_indexes: Callable[[], Iterable[HostGrant]] = lambda: ()
) -> tuple[HostGrant, ...]:
    """The hosts that a grant names. `package_indexes` returns the hosts of the group of package indexes. Raises
    `BadUsage` if a host cannot be granted."""
    found: dict[HostGrant, None] = {}
    for word in network:
        if word in GROUPS:
            found |= dict.fromkeys(package_indexes())
            continue
        try:
            check_owned((word,))
            found[host_grant(word)] = None
        except ValueError as error:
            raise BadUsage(str(error)) from error
    return tuple(found)


def shown_hosts(network: Iterable[str], hosts: Iterable[HostGrant]) -> tuple[str, ...]:
    """The words of a grant with each group replaced by its hosts, for people and for the audit log."""
    groups = {group: [_shown(each) for each in hosts if each.grant == group] for group in GROUPS}
    return tuple(dict.fromkeys(shown for word in network for shown in groups.get(word, [word])))


def _shown(host: HostGrant) -> str:
    ((port, _last), *_more) = host.ports
    return f"[{host.host}]:{port}" if ":" in host.host else f"{host.host}:{port}"
