"""The names under which MCP clients see haft's tools. `surfaces/mcp` offers tools under them, and `surfaces/hook`
recognizes these tools when an agent calls them.

Clients put a prefix of their own before each name, and model providers refuse names of more than 64 characters. So
names offered have at most 50: a longer one is cut, and gets a hash of the whole name, which is the same at every start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

LONGEST_NAME: Final = 50
SERVER_TOOLS: Final = (
    "batch",
    "undo",
    "redo",
    "diff",
    "output",
    "wait",
    "cancel",
    "runs",
    "search_tools",
    "call_tool",
)
"""The tools of the server itself, which are in no catalogue."""
_HASH_LENGTH: Final = 8


def offered_name(name: str, taken: Iterable[str] = ()) -> str:
    """The name under which clients see a tool: its own, unless the name is too long or haft's own tools have it."""
    if len(name) <= LONGEST_NAME and name not in taken:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: LONGEST_NAME - _HASH_LENGTH - 1]}_{mark}"
