"""The hosts of `@package-indexes`: the package indexes that the person's and the machine's configuration name, and the
hosts from which these indexes serve their files.

`configuration` reads files and environment variables, `file_hosts` asks the indexes, and `public` lists the indexes
that tools use without configuration. No file of the workspace is read, because calls can write there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from haft.contracts import PACKAGE_INDEXES, HostGrant, host_grant
from haft.sandbox.package_indexes import file_hosts
from haft.sandbox.package_indexes.addresses import Address, address_of, is_public_address
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
    named_hosts = [host for host, _port in found]
    grants = [_grant(*address, private=True) for address in found]
    for host, port in file_hosts.file_hosts(dict.fromkeys(configured), env, state_home, packages):
        if (host, port) not in found:
            grants.append(_grant(host, port, private=any(_are_related(host, each) for each in named_hosts)))
    return tuple(grant for grant in dict.fromkeys(grants) if grant is not None)


def _are_related(host: str, index: str) -> bool:
    """Whether a host from the page of an index is the index itself, or lies in the same domain."""
    domain = index.partition(".")[2]
    return host == index or ("." in domain and not domain.replace(".", "").isdigit() and host.endswith(f".{domain}"))


def _grant(host: str, port: int, *, private: bool) -> HostGrant | None:
    """The grant of one host; None if it cannot be granted. With `private`, the host can have a private address, as the
    index of a company often has. An index's page must not open other private services, so hosts that only a page names
    can have one only in the domain of the index."""
    try:
        parsed = host_grant(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except ValueError:
        return None
    if parsed.literal and not private and not is_public_address(host):
        return None
    return replace(parsed, grant=PACKAGE_INDEXES, private=private and not parsed.literal)


__all__ = ["TOOLS", "Tool", "package_index_hosts"]
