"""What a service on a server does not have, and what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from haft.contracts import BadUsage

INSTEAD: Final[Mapping[str, str]] = {
    "start_helper": "the server starts its sandbox by itself",
    "missing_conditions": "conditions are for tests of an embedded service",
    "home": "the state home is the server's: use `runs`, `output`, `diff`, `audit`",
    "config": "the settings are the server's: `haft config show` prints them there",
    "trusted_clients": "they are a setting of the server",
    "catalogue": "use `tools`",
    "discovery": "use `tools(all=True)`",
    "loaded": "the warm pool is the server's",
    "abandoned": "the worker threads are the server's",
    "providers": "`haft providers` manages the MCP servers where the server is",
    "tasks": "call the tool `task`",
    "paused_runs": "use `resume`",
    "hooked": "hooks of agents connect to a haft on the same machine",
    "observed": "hooks of agents connect to a haft on the same machine",
    "programs": "`haft run` runs whole programs where the server is",
    "policy_arguments": "use `permissions_test`",
}
"""The attributes of `ToolService` that make no sense here, each with what to do instead."""


def not_remote(what: str, hint: str) -> BadUsage:
    """The error for something that only an embedded service can do."""
    return BadUsage(f"a service on a server has no `{what}`", hint=hint)
