"""Whether a host has MCP servers, and which. Reads their files only if there are any, because most hosts have none and
listing tools must stay quick."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from haft.config import WORKSPACE_FILES, load_config, user_file
from haft.contracts import HaftError

if TYPE_CHECKING:
    from haft.config import ProviderTables
    from haft.sources.mcp import Provider
    from haft.toolsets.formats import Host
    from haft.toolsets.providers.trust_records import StartTrustStore

WORKSPACE_FILE: Final = ".mcp.json"
SERVERS_FILE: Final = "mcp.json"

_read: WeakKeyDictionary[Host, tuple[Any, tuple[ProviderTables, ...]]] = WeakKeyDictionary()
"""For each host, the state of the configuration files when their servers were read, and these servers."""


def providers_of(host: Host) -> list[Provider]:
    """The MCP servers of a host that are not turned off. Starts nothing."""
    if not provider_tables(host) and not any(map(os.path.lexists, _other_places(host))):
        return []
    from haft.toolsets.providers.reading import configured_servers

    return [one.provider for one in configured_servers(host) if not one.is_disabled]


def provider_tables(host: Host) -> tuple[ProviderTables, ...]:
    """The servers that haft.toml files and the embedding program name. Other settings of an open host stay as they
    were, but its servers follow the files, so that people can add and remove servers meanwhile. A file that cannot be
    read changes nothing."""
    if not host.is_configured:
        return ()
    now = [_identity(path) for path in _config_files(host)]
    before = _read.get(host)
    if before is not None and before[0] == now:
        return before[1]
    tables = host.config.providers if before is None else before[1]
    if before is not None:
        with suppress(HaftError):
            found = load_config(host.workspace, host.env, trust_home=host.state_home).providers
            tables = (*(one for one in host.config.providers if not os.path.isabs(one.source)), *found)
    _read[host] = now, tables
    return tables


def provider_places(host: Host) -> Iterator[str]:
    """The paths of the files that may name servers."""
    yield from _config_files(host)
    yield from _other_places(host)


def _config_files(host: Host) -> Iterator[str]:
    yield user_file(host.env)
    yield from (os.path.join(host.workspace, name) for name in WORKSPACE_FILES)


def _identity(path: str) -> Any:
    with suppress(OSError):
        found = os.stat(path)
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return None


def _other_places(host: Host) -> Iterator[str]:
    yield os.path.join(host.workspace, WORKSPACE_FILE)
    for skill in host.skills.last_found():
        if skill.is_usable and skill.provenance != "builtin":
            yield os.path.join(skill.folder, SERVERS_FILE)


def start_trust(host: Host) -> StartTrustStore:
    """The store that knows which servers of a host may start."""
    from haft.toolsets.providers.trust_records import StartTrustStore

    return StartTrustStore(host.state_home, host.workspace)
