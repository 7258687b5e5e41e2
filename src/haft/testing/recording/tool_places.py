"""Finds the tool of a past run on disk: what a scenario must load so that it has this tool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from haft.config import secret_texts
from haft.contracts import BadUsage, Listing, Secrets, near_miss
from haft.service import ListedTools
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.service import StateHome

_CONFIGS = ("haft.toml", "haft.json", ".mcp.json")


@dataclass(frozen=True)
class ToolPlace:
    """Where the tool of a run is."""

    listing: Listing
    load: tuple[str, ...]
    """The absolute paths to load; empty for built-in tools."""

    @property
    def folder(self) -> str | None:
        """The folder in which the tool is; None for built-in tools."""
        return os.path.dirname(self.load[0]) if self.load else None


class WorkspaceTools:
    """The tools of a workspace as they are now, and the secrets of its configuration."""

    def __init__(self, workspace: str, home: StateHome) -> None:
        self._workspace = workspace
        self._tools = ListedTools(workspace, home)
        if self._tools.fill():
            self._tools.ask(lambda _done, _all: None)
        config = self._tools.config
        configured = set() if config is None else secret_texts(config)
        self.secrets: frozenset[str] = self._tools.discovery.secrets.values | Secrets(configured, 1).values

    def find(self, name: str) -> ToolPlace:
        """The tool with a name. Raises `BadUsage` if it is not on disk any more, or was made by a program."""
        found = [each for each in self._tools.listings() if each.spec.name == name]
        if not found:
            near = near_miss(name, [each.spec.name for each in self._tools.listings()])
            raise BadUsage(
                f"there is no tool `{name}` in {self._workspace} now, so that a scenario could not call it",
                hint=f"is it `{near}` now?" if near else "a tool that a program made of a function is not on disk",
            )
        listing = min(found, key=lambda each: not each.enabled)
        return ToolPlace(listing, tuple(_paths(listing, self._workspace)))


def _paths(listing: Listing, workspace: str) -> Sequence[str]:
    spec = listing.spec
    if spec.kind == "builtin":
        return ()
    if spec.kind == "mcp":
        return [path for each in _CONFIGS if os.path.lexists(path := os.path.join(workspace, each))][:1]
    if spec.kind == "python" and not os.path.isabs(spec.origin) and spec.files:
        return [spec.files[0]]
    if spec.kind == "cli" or not os.path.isabs(spec.origin):
        return [_configuration(workspace, spec.name)]
    folder = os.path.dirname(spec.origin)
    if spec.kind == "bash-plugin" and os.path.lexists(os.path.join(folder, "agent_plugin.json")):
        return [folder]
    return [spec.origin]


def _configuration(workspace: str, name: str) -> str:
    for each in _CONFIGS:
        path = os.path.join(workspace, each)
        if os.path.lexists(path):
            return path
    raise BadUsage(
        f"the tool `{name}` comes from no file of {workspace}, so that a scenario could not load it",
        hint=f"name the tool in {os.path.join(workspace, _CONFIGS[0])}",
    )
