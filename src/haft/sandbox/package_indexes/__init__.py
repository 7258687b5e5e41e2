"""The hosts of `@package-indexes`: the package indexes that the person's and the machine's configuration name, and the
hosts from which these indexes serve their files.

`configuration` reads files and environment variables, `file_hosts` asks the indexes, and `public` lists the indexes
that tools use without configuration. No file of the workspace is read, because calls can write there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from haft.contracts import PACKAGE_INDEXES, HostGrant, host_grant
from haft.sandbox.package_indexes import file_hosts
from haft.sandbox.package_indexes.addresses import Address, address_of
from haft.sandbox.package_indexes.configuration import TOOLS, Index, Tool, indexes
from haft.sandbox.package_indexes.public import PUBLIC
from haft.values import replace


def package_index_hosts(
    env: Mapping[str, str],
    workspace: str,
    state_home: str,
    *,
    tools: Iterable[Tool] = TOOLS,
    packages: Sequence[str] = (),
) -> tuple[HostGrant, ...]:
    """The hosts of the group. May ask configured indexes over the network, and then takes up to some seconds.
    `packages`: the Python packages that will be installed. Their pages say from where the indexes serve files. If there
    are none, haft asks for one package that most indexes have."""
    configured: list[Index] = []
    found: dict[Address, None] = {}
    for tool in tools:
        named = indexes(tool, env, workspace)
        configured += named.configured
        for host in PUBLIC[tool] if named.uses_public else ():
            found[host, 443] = None
        found |= dict.fromkeys(named.others)
    for index in configured:
        if (address := address_of(index.url)) is not None:
            found[address] = None
    found |= dict.fromkeys(file_hosts.file_hosts(dict.fromkeys(configured), env, state_home, packages))
    return tuple(grant for address in found if (grant := _grant(*address)) is not None)


def _grant(host: str, port: int) -> HostGrant | None:
    """The grant of one host. The name of a host may lead to a private address, because the index of a company often
    has one. Nobody but the person named it."""
    try:
        parsed = host_grant(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except ValueError:
        return None
    return replace(parsed, grant=PACKAGE_INDEXES, private=not parsed.literal)


__all__ = ["TOOLS", "Tool", "package_index_hosts"]
