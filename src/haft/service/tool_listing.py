"""Lists, describes and looks up the tools of a workspace, for a process that is not a host.

`haft tools list` must stay fast: large modules are imported only if a tool must be described, or if there is a
configuration file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from haft.config import is_configured, load_config
from haft.contracts import DiscoveredTool, Listing, ToolSpec, clean_tool_name
from haft.registry import Catalogue
from haft.sources.amp_toolbox import PREFIX
from haft.storage import StateHome
from haft.toolsets import Discovery, fill_catalogue

if TYPE_CHECKING:
    from haft.config import Config


class ListedTools:
    """The tools on disk and of installed packages, with the configuration of a workspace."""

    def __init__(self, workspace: str, home: StateHome) -> None:
        self._workspace = workspace
        self._home = home
        self.discovery = Discovery(workspace, home, os.environ)
        self.config: Config | None = None
        """The configuration; None if there is no configuration file."""
        if is_configured(workspace, os.environ):
            self.config = load_config(workspace, os.environ, trust_home=home.path)
            self.discovery.configure(self.config)
        self.catalogue = Catalogue(self._why_off, self.discovery.why_inactive)

    def _why_off(self, spec: ToolSpec) -> str | None:
        return None if self.config is None else self.config.enablement.why_not(spec.name, spec.kind)

    def fill(self) -> bool:
        """Add to the catalogue the tools that are known without starting a process. Returns True if there are other
        tools, which haft must describe first."""
        fill_catalogue(self.catalogue, builtin=self.discovery.fill_builtin)
        return self.discovery.fill(self.catalogue)

    def ask(self, told: Callable[[int, int], None]) -> None:
        """Describe every tool that is not described yet. `told` gets the progress."""
        import asyncio

        from haft.toolsets import probe_launcher

        with probe_launcher(self._workspace, self._home, self.config) as launcher:
            asyncio.run(self.discovery.renew(self.catalogue, launcher, told))

    def ask_one(self, path: str) -> DiscoveredTool:
        """Describe the tool in one file, at any path."""
        import asyncio

        from haft.toolsets import probe_launcher

        with probe_launcher(self._workspace, self._home) as launcher:
            return asyncio.run(self.discovery.at(path, launcher))

    def listings(self, thread: str | None = None) -> list[Listing]:
        """All tools, also those that cannot be called."""
        return self.catalogue.listings(all=True, thread=thread)

    def names_in(self, directory: str, names: Sequence[str]) -> list[str]:
        """The names of the tools that the executables `names` in the toolbox `directory` would get; empty if haft does
        not search this directory for toolbox executables."""
        return (
            [clean_tool_name(PREFIX + name) for name in names]
            if self.discovery.searches(directory, "amp-toolbox")
            else []
        )


def approval_of(spec: ToolSpec) -> dict[str, Any] | None:
    """The files that an approval of a tool is bound to, and the imports that could not be resolved; None if the tool
    needs no approval."""
    if spec.is_vouched_for:
        return None
    from haft.policy import loaded_files, pinned_files

    return {"files": pinned_files(spec), "unresolved": list(loaded_files(spec).unresolved)}


def withheld_from(spec: ToolSpec, workspace: str, home: StateHome) -> tuple[str, ...]:
    """The environment variables that a tool says it uses and that are set in this process, but that its calls do not
    get, because no rule grants them to all calls of the tool."""
    from haft.contracts import withheld
    from haft.files import variables_of

    named = variables_of(spec)
    if not named:
        return ()
    granted: tuple[str, ...] = ()
    if is_configured(workspace, os.environ):
        from haft.policy import RUNNABLE_ACTIONS, grants_for_all_calls

        rules = load_config(workspace, os.environ, trust_home=home.path).rules
        granted = grants_for_all_calls((spec.name,), spec.kind, rules, RUNNABLE_ACTIONS).env
    return withheld(named, os.environ, {*spec.grants.env, *granted})
