"""Decides which tools may be called at all, by `tools.disable`, `tools.enable`, and features that are switched off.

The configuration comes from several places, such as the files of the user and of the workspace. A tool is disabled if
any of them names it in `tools.disable`, or if any of them has a list `tools.enable` that does not name it. If one place
disables a tool, no other place can enable it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import BadConfig
from haft.policy.rules.names import check_name_pattern, name_matches
from haft.values import dataclass

EXPLICITLY: Final = "Tool explicitly disabled"
_SEED_REASONS: Final = {"*": "All tools disabled", "mcp:*": "MCP tools disabled"}
"""The reasons for disabled MCP tools in the words that agents already know, by the pattern that disables the tool."""


@dataclass(frozen=True, slots=True)
class NameList:
    """Patterns of tool names from one place of the configuration, such as a file."""

    patterns: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Feature:
    """A part of haft that is switched off, and the built-in tool that gives access to it."""

    tool: str
    reason: str
    """Why the tool is disabled, in the words that agents know."""


@dataclass(frozen=True, slots=True)
class Enablement:
    """Tells for each tool whether it may be called at all."""

    disable: tuple[NameList, ...] = ()
    enable: tuple[NameList, ...] = ()
    """The `tools.enable` lists. A tool that is missing in one of them is disabled; an empty list is ignored."""
    off: tuple[Feature, ...] = ()

    def __post_init__(self) -> None:
        for setting, lists in (("tools.disable", self.disable), ("tools.enable", self.enable)):
            for one in lists:
                for pattern in one.patterns:
                    try:
                        check_name_pattern(pattern)
                    except ValueError as error:
                        raise BadConfig(f"{one.source}: `{setting}`: `{pattern}` {error}") from None

    def why_not(self, name: str, kind: str, meta: Mapping[str, Any] | None = None) -> str | None:
        """Why a tool is disabled; None if it is enabled."""
        del meta  # Not used yet: later, patterns may name groups of tools by their `meta`.
        for listed in self.disable:
            for pattern in listed.patterns:
                if name_matches(pattern, name, kind):
                    if kind == "mcp" and pattern in (*_SEED_REASONS, name):
                        return _SEED_REASONS.get(pattern, EXPLICITLY)
                    return f"`{pattern}` in `tools.disable` ({listed.source})"
        for feature in self.off:
            if kind == "builtin" and name == feature.tool:
                return feature.reason
        for closed in self.enable:
            if closed.patterns and not any(name_matches(pattern, name, kind) for pattern in closed.patterns):
                return f"it is not in `tools.enable` ({closed.source})"
        return None
