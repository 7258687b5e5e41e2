"""A configured MCP server, and what the source of MCP tools needs around it.

`toolsets` reads providers from configuration files. The modules of this package connect to them. This module imports
nothing of the `mcp` package, which takes a second to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, Protocol

from haft.contracts import NO_GRANTS, NO_SECRETS, Grants, Provenance, Secrets
from haft.values import dataclass, field

START_SECONDS: Final = 60.0
"""How long a server has until it must have listed its tools."""
ProviderTransport = Literal["stdio", "http", "sse"]


@dataclass(frozen=True, slots=True)
class Provider:
    """One MCP server as it is configured, with its placeholders filled in."""

    name: str
    """Letters, digits, `-` and single `_`."""
    transport: ProviderTransport
    command: str | None = None
    """The program of a `stdio` server, as it was written."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    """The absolute path of the directory in which the server starts; None for the workspace."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    grants: Grants = NO_GRANTS
    """What the server may reach besides the default sandbox. `grants.env` names the variables of the host that it
    gets."""
    include: tuple[str, ...] = ()
    """Globs of tool names. If there are any, other tools are left out."""
    exclude: tuple[str, ...] = ()
    timeout: float | None = None
    """The deadline of its tools in seconds."""
    timeouts: Mapping[str, float] = field(default_factory=dict)
    """Deadlines of single tools, by their names on the server."""
    trusts_annotations: bool = False
    """Whether the person believes what the server says about the effects of its tools."""
    provenance: Provenance = "user"
    source: str = ""
    """The configuration file that names the server."""
    skill: tuple[str, str] | None = None
    """The name and the folder of the skill that brings the server; None if no skill does."""
    files: tuple[str, ...] = ()
    """The absolute paths of the local files that the command names. Trust is bound to their bytes."""
    identity: str = ""
    """The digest of everything that trust in its start is bound to, as it was written, without the bytes of `files`."""
    secrets: Secrets = NO_SECRETS
    problem: str | None = None
    """Why the server cannot be used, and what to do; None if it can."""
    oauth: Mapping[str, str] = field(default_factory=dict)
    """Settings for logging in: `client_id`, `client_secret`, `scope`."""


@dataclass(frozen=True, slots=True)
class InstalledServer:
    """A server that comes as a package of npm or PyPI, installed once."""

    argv: tuple[str, ...]
    """The command that starts it without the network."""
    readable: tuple[str, ...]
    """Absolute paths that it must be able to read."""
    env: Mapping[str, str]
    version: str
    """The package and its version, such as `mcp-server-time 2026.8.1`."""
    digest: str
    """The digest of what was installed. A new one counts as a changed definition."""
    keeps: tuple[str, ...] = ()
    """Absolute paths of directories in which the server keeps files of its own between its starts."""
    note: str = ""
    """What a person should know if the server does not start; empty if there is nothing."""


class ServerPackages(Protocol):
    """Installs the packages of servers that are started with `npx`, `uvx`, `bunx` or `pipx run`."""

    def names_package(self, provider: Provider) -> bool:
        """Whether the provider's command runs a package, so that it must be installed first."""
        ...

    def installed(self, provider: Provider) -> InstalledServer | None:
        """The installed package; None if it is not installed. Starts no process."""
        ...

    async def install(
        self, provider: Provider, progress: Callable[[str], None], *, upgrade: bool = False
    ) -> InstalledServer:
        """Install the package if it is not installed. With `upgrade`, also install the newest version that the command
        allows. Raises `ToolFailed` with the last lines of output if that fails."""
        ...


class StartTrust(Protocol):
    """Whether a person let a server start."""

    def why_not(self, provider: Provider) -> str | None:
        """Why the server may not start, and what to do; None if it may."""
        ...
