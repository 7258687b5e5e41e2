"""Says why a server's command is refused, from its words alone. Every list of tools needs that, so this module is cheap
to import."""

from __future__ import annotations

from haft.sources.mcp import Provider
from haft.toolsets.providers.packages.command_line import PackageCommand, UnsupportedCommand, parse_command
from haft.toolsets.providers.packages.docker import why_docker_refused


def why_not_installable(provider: Provider) -> str | None:
    """Why a server's command is refused before anything is installed or started, and what to do; None if it is not
    refused. Reads no files."""
    if (why := why_docker_refused(provider)) is not None:
        return why
    try:
        command_of(provider)
    except UnsupportedCommand as error:
        return str(error)
    return None


def command_of(provider: Provider) -> PackageCommand | None:
    """The package that a server's command runs; None if it runs none. Raises `UnsupportedCommand`."""
    if provider.transport != "stdio" or provider.command is None:
        return None
    return parse_command(provider.command, provider.args)
