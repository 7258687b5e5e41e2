"""Network by host: resolves the granted hosts of a call, and opens its network in the egress process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from haft.contracts import Confinement, ConnectionObserver, HostGrant, Network

if TYPE_CHECKING:
    from haft.processes import Egress, EgressCall


class HostNetwork:
    """The network by host of one sandbox. Its egress process starts when a call first needs it."""

    def __init__(self, env: Mapping[str, str], workspace: str, state_home: str, granted: Network) -> None:
        """`env`: the host's live environment. `granted`: the network that every call gets without a grant of its
        own."""
        self._env = env
        self._workspace = workspace
        self._state_home = state_home
        self._granted = granted
        self._egress: Egress | None = None
        self.package_indexes: Callable[[], tuple[HostGrant, ...]] = self._package_indexes
        """Returns the hosts of the group `@package-indexes`. Sometimes asks package indexes over the network."""

    @property
    def granted(self) -> tuple[str, ...]:
        """The hosts that every call reaches without a grant of its own; empty if the whole network is open, or none of
        it."""
        return self._granted if isinstance(self._granted, tuple) else ()

    @property
    def egress_pid(self) -> int | None:
        """The id of the egress process; None if it does not run."""
        return None if self._egress is None else self._egress.pid

    async def resolve(self, network: tuple[str, ...]) -> tuple[Network, tuple[HostGrant, ...]]:
        """The hosts that a grant names: as people see them, with each group replaced by its hosts, and as the egress
        process compares them."""
        from haft.sandbox.network_grants import network_hosts, shown_hosts

        if any(word.startswith("@") for word in network):
            hosts = await asyncio.to_thread(network_hosts, network, self.package_indexes)
            return shown_hosts(network, hosts), hosts
        return network, network_hosts(network)

    def _package_indexes(self) -> tuple[HostGrant, ...]:
        from haft.sandbox.package_indexes import package_index_hosts

        return package_index_hosts(self._env, self._workspace, self._state_home)

    async def open(self, confinement: Confinement, observer: ConnectionObserver | None) -> EgressCall:
        """Open the network of a command whose connections are decided by host."""
        if self._egress is None:
            from haft.processes import Egress

            self._egress = Egress(self._env)
        return await self._egress.open(confinement.hosts, observer, asks=confinement.asks and observer is not None)

    def close(self) -> None:
        """End the egress process, and with it all connections."""
        if self._egress is not None:
            self._egress.close()
            self._egress = None
