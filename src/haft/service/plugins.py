"""The plugins that a configuration names: lists them with their tools, compares them with their repositories, and
updates them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from haft.config import Config
from haft.contracts import BadUsage, Listing, near_miss
from haft.registry import Catalogue
from haft.sources.bash_plugin import PluginReference
from haft.storage import StateHome
from haft.toolsets import (
    BashPluginSource,
    CheckoutState,
    Host,
    NotFetched,
    PythonPluginSource,
    Updated,
    probe_launcher,
)

ProgressCallback = Callable[[int, int], None]
"""Reports progress: the number of tools that are done, and the number of all."""


@dataclass(frozen=True, slots=True)
class ListedPlugin:
    """One plugin, as `haft plugins list` prints it."""

    reference: PluginReference
    checkout_state: CheckoutState | None
    """The state of the plugin's checkout; None if the plugin does not come from git."""
    state: str
    reason: str | None
    tools: tuple[str, ...]
    now: str | None = None
    """The current commit of the plugin's ref in its repository; None if haft did not ask the repository."""

    def where(self) -> str:
        """The path of the plugin, or the repository that it comes from, as a text for people."""
        if self.checkout_state is None or self.checkout_state.source is None:
            return self.reference.path or self.reference.dotted or self.reference.name
        pinned = f" @ {self.checkout_state.commit[:12]}" if self.checkout_state.commit else ""
        return self.checkout_state.source.words + pinned

    def to_json(self) -> dict[str, Any]:
        git = None
        if self.checkout_state is not None and self.checkout_state.source is not None:
            source = self.checkout_state.source
            git = {
                "url": source.url,
                "ref": source.ref,
                "commit": self.checkout_state.commit,
                "remoteCommit": self.now,
                "checkout": self.checkout_state.place,
                "lock": source.lock,
            }
        return {
            "name": self.reference.name,
            "family": self.reference.family,
            "source": self.reference.source,
            "path": self.reference.path,
            "git": git,
            "state": self.state,
            "reason": self.reason,
            "tools": list(self.tools),
            "grant": self.reference.grant.to_json() if self.reference.keeps_process else None,
        }


class PluginsFacade:
    """The plugins of one workspace. Only `update` fetches anything."""

    def __init__(self, workspace: str, home: StateHome, config: Config) -> None:
        self._workspace, self._home, self._config = workspace, home, config
        host = Host(workspace, home, os.environ, None, None)
        host.configure(config)
        bash = BashPluginSource(host)
        bash.fetches = False
        self._sources = (bash, PythonPluginSource(host))
        self._plugins = bash.plugins

    async def listed(self, told: ProgressCallback, now: dict[PluginReference, str] | None = None) -> list[ListedPlugin]:
        """All plugins. Describes the tools that are not described yet. `now` is the result of `remote`."""
        listings = await self._listings(told)
        return [self._listed(reference, listings, (now or {}).get(reference)) for reference in self._plugins.references]

    async def remote(self, warn: Callable[[str], None]) -> dict[PluginReference, str]:
        """The current commit of each git plugin's ref in its repository. If a repository does not answer, `warn` gets a
        message, and the plugin is left out of the result."""
        found: dict[PluginReference, str] = {}
        fetching = self._plugins.fetching

        async def one(reference: PluginReference) -> None:
            assert fetching is not None
            try:
                found[reference] = await fetching.remote(reference)
            except NotFetched as error:
                warn(f"{reference.name}: {error}")

        fetched = [reference for reference in self._plugins.references if reference.git is not None]
        pinned = [each for each in fetched if fetching is not None and fetching.checkout_state(each).commit is not None]
        await asyncio.gather(*map(one, pinned))
        return found

    async def update(self, names: Sequence[str], told: ProgressCallback) -> list[Updated]:
        """Fetch and pin the current commit of each git plugin with one of these names; without names, of all git
        plugins."""
        wanted = self._wanted(names)
        if not wanted:
            return []
        assert self._plugins.fetching is not None
        return await self._plugins.fetching.update(wanted, told)

    def _wanted(self, names: Sequence[str]) -> list[PluginReference]:
        """The git plugins with these names, each once."""
        references = self._plugins.references
        fetched = [reference for reference in references if reference.git is not None]
        for name in names:
            if any(reference.name == name for reference in fetched):
                continue
            if any(reference.name == name for reference in references):
                raise BadUsage(f"the plugin `{name[:80]}` lies on this machine: there is nothing to fetch")
            near = near_miss(name, [reference.name for reference in fetched])
            hint = f"did you mean `{near}`?" if near else "`haft plugins list` shows all plugins"
            raise BadUsage(f"there is no plugin called `{name[:80]}`", hint=hint)
        return list(dict.fromkeys(reference for reference in fetched if not names or reference.name in names))

    async def _listings(self, told: ProgressCallback) -> list[Listing]:
        enablement = self._config.enablement
        catalogue = Catalogue(lambda spec: enablement.why_not(spec.name, spec.kind))
        for source in self._sources:
            catalogue.replace_source(source.name, source.find())
        if any(source.is_incomplete for source in self._sources):
            with probe_launcher(self._workspace, self._home, self._config) as launcher:
                for source in self._sources:
                    found = await source.refresh(launcher, told)
                    if found is not None:
                        catalogue.replace_source(source.name, found)
        return catalogue.listings(all=True)

    def _listed(self, reference: PluginReference, listings: Sequence[Listing], remote: str | None) -> ListedPlugin:
        fetching = self._plugins.fetching if reference.git is not None else None
        checkout_state = None if fetching is None else fetching.checkout_state(reference)
        own = [one for one in listings if one.spec.meta.get("plugin", {}).get("reference") == reference.written]
        state, reason = _state(own)
        if (
            checkout_state is not None
            and checkout_state.place is None
            and state == "broken"
            and not checkout_state.is_final
        ):
            state = "not fetched"
        if checkout_state is not None and remote is not None and remote != checkout_state.commit:
            state = "moved"
            reason = f"a newer commit is there, {remote[:12]}: `haft plugins update {reference.name}` fetches it"
        tools = tuple(one.spec.name for one in own if one.state != "broken")
        is_there = checkout_state is None or checkout_state.place is not None
        return ListedPlugin(reference, checkout_state, state, reason, tools if is_there else (), remote)


def _state(listings: Sequence[Listing]) -> tuple[str, str | None]:
    """The state of a plugin, which is the worst state of its tools, and the reason; the reason is None if all tools are
    ready."""
    for state in ("broken", "duplicate", "disabled"):
        for one in listings:
            if one.state == state:
                return state, one.reason
    return ("ready", None) if listings else ("broken", "no tool of it was found")
