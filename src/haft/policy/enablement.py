"""Which tools there are at all: `tools.disable`, `tools.enable`, and the features that are off. It only narrows.

What any source disables is disabled; where a source has a closed list, a tool must be on it. No source takes back what
another one closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haft.contracts import BadConfig
from haft.policy.rules.names import check_name_pattern, name_fits
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class NameList:
    """Patterns of names that one source wrote down."""

    patterns: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Feature:
    """A part of haft that is off, and the built-in tool that is the way to it."""

    tool: str
    setting: str
    source: str


@dataclass(frozen=True, slots=True)
class Enablement:
    """Says of each tool whether it may be called at all."""

    disable: tuple[NameList, ...] = ()
    enable: tuple[NameList, ...] = ()
    """Closed lists; one without patterns closes nothing."""
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
        """Why a tool is disabled; None where it is not."""
        del meta  # what groups of tools a source adds may one day be named by
        for listed in self.disable:
            for pattern in listed.patterns:
                if name_fits(pattern, name, kind):
                    return f"`{pattern}` in `tools.disable` ({listed.source})"
        for feature in self.off:
            if kind == "builtin" and name == feature.tool:
                return f"`{feature.setting}` is false ({feature.source})"
        for closed in self.enable:
            if closed.patterns and not any(name_fits(pattern, name, kind) for pattern in closed.patterns):
                return f"it is not in `tools.enable` ({closed.source})"
        return None
