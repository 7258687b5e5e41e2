"""What `haft serve mcp` was told on its command line."""

from __future__ import annotations

from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Which tools a server offers, and where it listens."""

    workspace: str
    tools: tuple[str, ...] = ()
    """Globs of tool names. Empty: every tool is offered."""
    lazy: bool = False
    """Whether only `search_tools` and `call_tool` are listed."""
    read_only: bool = False
    """Whether only tools that declare that they change nothing are offered."""
    http: str | None = None
    """The address to listen on, as HOST:PORT; None for stdio."""
    allow_hosts: tuple[str, ...] = ()
    """The host names, beside the loopback ones, under which clients reach the server over HTTP."""
    quiet: bool = False
