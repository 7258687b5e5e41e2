"""Whether a host has MCP servers, and which. Reads their files only if there are any, because most hosts have none and
listing tools must stay quick."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from haft.sources.mcp import Provider
    from haft.toolsets.formats import Host
    from haft.toolsets.providers.trust_records import StartTrustStore

WORKSPACE_FILE: Final = ".mcp.json"
SERVERS_FILE: Final = "mcp.json"


def providers_of(host: Host) -> list[Provider]:
    """The MCP servers of a host that are not turned off. Starts nothing."""
    is_named = host.is_configured and bool(host.config.providers)
    if not is_named and not any(map(os.path.lexists, provider_places(host))):
        return []
    from haft.toolsets.providers.reading import configured_servers

    return [one.provider for one in configured_servers(host) if not one.is_disabled]


def provider_places(host: Host) -> Iterator[str]:
    """The paths of the files that may name servers besides haft.toml."""
    yield os.path.join(host.workspace, WORKSPACE_FILE)
    for skill in host.skills.last_found():
        if skill.is_usable and skill.provenance != "builtin":
            yield os.path.join(skill.folder, SERVERS_FILE)


def start_trust(host: Host) -> StartTrustStore:
    """The store that knows which servers of a host may start."""
    from haft.toolsets.providers.trust_records import StartTrustStore

    return StartTrustStore(host.state_home, host.workspace)
