"""What `haft serve http` was told on its command line."""

from __future__ import annotations

from typing import Final

from haft.values import dataclass

DEFAULT_ADDRESS: Final = "127.0.0.1:8750"


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where a server listens, and who reaches it how."""

    workspace: str
    is_only: bool = False
    """Whether the person named this workspace, so that the configuration adds no others."""
    listen: str = DEFAULT_ADDRESS
    allow_hosts: tuple[str, ...] = ()
    """The host names, beside the loopback ones, under which the server is reached."""
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_proxy: tuple[str, ...] = ()
    """The addresses from which a proxy that adds TLS passes requests on."""
    makes_link: bool = False
    """Whether a person sits at the terminal, who gets a link that signs them in."""
    quiet: bool = False
