"""Resolves the hosts that a grant of the network names."""

from __future__ import annotations

from collections.abc import Iterable

from haft.contracts import BadUsage, HostGrant, host_grant


def network_hosts(network: Iterable[str]) -> tuple[HostGrant, ...]:
    """The hosts that a grant names. Raises `BadUsage` if one cannot be granted."""
    try:
        return tuple(host_grant(each) for each in network)
    except ValueError as error:
        raise BadUsage(str(error)) from error
