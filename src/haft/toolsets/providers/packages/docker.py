"""Servers that need the Docker socket are refused before they start: no grant opens the socket, so they would only fail
later, with a message of Docker that does not help."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from haft.lazy import regex
from haft.sources.mcp import Provider

CLIENTS: Final = ("docker", "docker-compose", "podman", "nerdctl")
_SOCKET: Final = regex(r"(?:^|[/:=@])(?:docker|podman|containerd)(?:-api)?\.sock(?![\w.-])")
_ELSEWHERE: Final = regex(r"(?:tcp|http|https|ssh)://")


def why_docker_refused(provider: Provider) -> str | None:
    """Why a server is refused because it needs the Docker socket, and what to do instead; None if it does not need the
    socket."""
    if provider.transport != "stdio" or provider.command is None:
        return None
    name = os.path.basename(provider.command)
    if name in CLIENTS and _ELSEWHERE.match(provider.env.get("DOCKER_HOST", "")):
        return None  # It connects over the network, and network grants decide.
    if name in CLIENTS:
        needs = f"`{name}` needs the socket of the container service"
    elif (socket := _named_socket((provider.command, *provider.args, *provider.env.values()))) is not None:
        needs = f"it names the socket `{socket}`"
    else:
        return None
    return (
        f"the server `{provider.name}` is refused: {needs}, and no grant opens a Unix socket to a server, because this "
        "one would give it the whole machine. Either start the container yourself, let its server speak HTTP, and "
        f"write `url = …` below `[providers.{provider.name}]` instead of the command. Or, if Docker also listens on a "
        "TCP port of this machine and the server may control the whole machine, add these two lines below "
        f'`[providers.{provider.name}]`: `env = {{DOCKER_HOST = "tcp://localhost:2375"}}` and '
        '`grant = {network = ["localhost:2375"]}`'
    )


def _named_socket(words: Iterable[str]) -> str | None:
    return next((word for word in words if _SOCKET.search(word)), None)
