"""The plugins that a configuration names: listed with their tools, held against their repositories, fetched anew."""

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
    Host,
    NotFetched,
    PythonPluginSource,
    Standing,
    Updated,
    probe_launcher,
)

ProgressCallback = Callable[[int, int], None]
"""How far something has come: how many of how many."""


@dataclass(frozen=True, slots=True)
class ListedPlugin:
    """One plugin, as `haft plugins list` has it."""

    reference: PluginReference
    standing: Standing | None
    """Of one that is fetched."""
    state: str
    reason: str | None
    tools: tuple[str, ...]
    now: str | None = None
    """What its ref means in the repository, where that was asked."""

    def where(self) -> str:
        """Where it lies or comes from, in words."""
        if self.standing is None or self.standing.source is None:
            return self.reference.path or self.reference.dotted or self.reference.name
        pinned = f" @ {self.standing.commit[:12]}" if self.standing.commit else ""
        return self.standing.source.words + pinned

    def to_json(self) -> dict[str, Any]:
        git = None
        if self.standing is not None and self.standing.source is not None:
            source = self.standing.source
            git = {
                "url": source.url,
                "ref": source.ref,
                "commit": self.standing.commit,
                "remoteCommit": self.now,
                "checkout": self.standing.place,
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
    """Of one workspace. Nothing is fetched but by `update`."""

    def __init__(self, workspace: str, home: StateHome, config: Config) -> None:
        self._workspace, self._home, self._config = workspace, home, config
        host = Host(workspace, home, os.environ, None, None)
        host.configure(config)
        bash = BashPluginSource(host)
        bash.fetches = False
        self._sources = (bash, PythonPluginSource(host))
        self._plugins = bash.plugins

    async def listed(self, told: ProgressCallback, now: dict[PluginReference, str] | None = None) -> list[ListedPlugin]:
        """Every plugin. Files that are new are asked what they are. `now` is what `remote` found."""
        listings = await self._listings(told)
        return [self._listed(reference, listings, (now or {}).get(reference)) for reference in self._plugins.references]

    async def remote(self, warn: Callable[[str], None]) -> dict[PluginReference, str]:
        """What the refs mean in their repositories. One that does not answer is told, and left out."""
        found: dict[PluginReference, str] = {}
        fetching = self._plugins.fetching

        async def one(reference: PluginReference) -> None:
            assert fetching is not None
            try:
                found[reference] = await fetching.remote(reference)
            except NotFetched as error:
                warn(f"{reference.name}: {error}")

        fetched = [reference for reference in self._plugins.references if reference.git is not None]
        pinned = [each for each in fetched if fetching is not None and fetching.standing(each).commit is not None]
        await asyncio.gather(*map(one, pinned))
        return found

    async def update(self, names: Sequence[str], told: ProgressCallback) -> list[Updated]:
        """Fetch what the refs of git plugins mean now, and pin that; of these names, or all."""
        wanted = self._wanted(names)
        if not wanted:
            return []
        assert self._plugins.fetching is not None
        return await self._plugins.fetching.update(wanted, told)

    def _wanted(self, names: Sequence[str]) -> list[PluginReference]:
        """The git plugins of these names, each once."""
        references = self._plugins.references
        fetched = [reference for reference in references if reference.git is not None]
        for name in names:
            if any(reference.name == name for reference in fetched):
                continue
            if any(reference.name == name for reference in references):
                raise BadUsage(f"the plugin `{name[:80]}` lies on this machine: there is nothing to fetch")
            near = near_miss(name, [reference.name for reference in fetched])
            hint = f"did you mean `{near}`?" if near else "`haft plugins list` shows the plugins there are"
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
        standing = None if fetching is None else fetching.standing(reference)
        own = [one for one in listings if one.spec.meta.get("plugin", {}).get("reference") == reference.written]
        state, reason = _state(own)
        if standing is not None and standing.place is None and state == "broken" and not standing.is_final:
            state = "not fetched"
        if standing is not None and remote is not None and remote != standing.commit:
            state = "moved"
            reason = f"it is {remote[:12]} by now: `haft plugins update {reference.name}` takes that"
        tools = tuple(one.spec.name for one in own if one.state != "broken")
        is_there = standing is None or standing.place is not None
        return ListedPlugin(reference, standing, state, reason, tools if is_there else (), remote)


def _state(listings: Sequence[Listing]) -> tuple[str, str | None]:
    """Of a plugin, from those of its tools: the one that most needs to be seen to."""
    for state in ("broken", "duplicate", "disabled"):
        for one in listings:
            if one.state == state:
                return state, one.reason
    return ("ready", None) if listings else ("broken", "nothing of it was found")
