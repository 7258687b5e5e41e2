"""The names under which the tools of MCP servers are listed: `mcp__SERVER__TOOL`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from haft.contracts import ToolName

PREFIX: Final = "mcp__"
MOST: Final = 64
_HASH: Final = 8


def listed_name(server: str, tool: str | None = None) -> ToolName:
    """The name of a tool of a server, or the name by which the server itself is listed. Characters that names of tools
    cannot have become `_`. The end of a name that is too long is replaced by a hash of the whole name."""
    whole = f"{PREFIX}{server}" if tool is None else f"{PREFIX}{server}__{tool}"
    name = re.sub(r"[^A-Za-z0-9_-]", "_", whole)
    if len(name) > MOST:
        digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
        name = f"{name[: MOST - _HASH - 1]}_{digest}"
    return ToolName(name)


def server_of(name: str, servers: Iterable[str]) -> str | None:
    """The server among `servers` that a tool with this name would belong to; None if it would belong to none."""
    if not name.startswith(PREFIX):
        return None
    fits = [one for one in servers if name == listed_name(one) or name.startswith(f"{listed_name(one)}__")]
    return max(fits, key=len, default=None)
