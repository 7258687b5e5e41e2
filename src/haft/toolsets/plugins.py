"""The plugins that a configuration names: found, asked what they are, and put into the catalogue."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from haft.config.config import Config
from haft.contracts import AskingLauncher, Definitions, Provenance, SessionLauncher
from haft.files.links import leads_inside
from haft.registry import Catalogue
from haft.sources.answers import Granted, Told, nothing
from haft.sources.bash_plugin import BashPlugins, PluginFile, PluginReference, Policy, files_of, read_reference
from haft.sources.bash_plugin.finding import DESCRIPTOR

if TYPE_CHECKING:
    from haft.sources.python_plugin import PluginEntry, PythonPlugins
    from haft.toolsets.fetching import Fetching

BASH_PLUGINS = "bash-plugin"
PYTHON_PLUGINS = "python-plugin"


class Plugins:
    """Those of one workspace and its user."""

    def __init__(
        self,
        config: Config,
        workspace: str,
        definitions: Definitions,
        sessions: SessionLauncher | None = None,
        granted: Granted = nothing,
    ) -> None:
        """`sessions` starts the workers of Python plugins; without it their tools are listed and cannot be called."""
        self._workspace = os.path.realpath(workspace)
        self._trusted = config.trusted
        self._disabled = {name: source for source, names in config.lists.get("disabled_plugins", ()) for name in names}
        self.references = [
            read_reference(entry, source, os.path.dirname(source) if os.path.isabs(source) else workspace)
            for source, entries in config.lists.get("plugins", ())
            for entry in entries
        ]
        self.policy = Policy(
            config.values["plugin_policy.allow_bash_tools"],
            config.values["plugin_policy.bash_timeout_seconds"],
            config.values["plugin_policy.stream_stderr"],
            config.values["config"],
            config.secrets,
            {one.entry: one.sentence() for one in config.unset if one.setting == "config"},
        )
        self.fetching: Fetching | None = None
        """For git plugins, where there are any."""
        if any(reference.git is not None for reference in self.references):
            from haft.toolsets.fetching import Fetching

            self.fetching = Fetching(config, workspace, self._why_not_fetched)
        self._bash = BashPlugins(lambda: list(self._files()), definitions, self.policy, self._why_disabled, granted)
        self._python: PythonPlugins | None = None
        if any(reference.family == "python" for reference in self.references):
            from haft.sources.python_plugin import PythonPlugins

            self._python = PythonPlugins(
                lambda: list(self._entries()),
                definitions,
                self.policy,
                self._workspace,
                sessions,
                self._why_disabled,
            )

    def fill(self, catalogue: Catalogue) -> bool:
        """Put in what is known; whether there is anything to ask."""
        unknown: list[object] = []
        for name, source in self._sources():
            source.look()
            catalogue.take(name, source.found())
            unknown += source.unknown()
        return bool(unknown or self._unfetched())

    async def renew(
        self,
        catalogue: Catalogue,
        launcher: AskingLauncher,
        told: Told,
        *,
        fetching: bool = True,
        doubted: str | None = None,
    ) -> None:
        """Look again, ask what is not known, and put in what there is. With `fetching`, fetch what is not there. What
        could not be understood and is listed by the name `doubted` is asked again."""
        import asyncio

        if fetching and self.fetching is not None and (wanted := self._unfetched()):
            await self.fetching.fetch(wanted, told)
        for name, source in self._sources():
            await asyncio.to_thread(source.look)
            if doubted is not None:
                source.doubt(doubted)
            if source.unknown():
                # Without walls, files that a clone brought are not run because someone lists tools.
                but = frozenset() if await launcher.is_walled() else frozenset({"workspace"})
                await source.ask(launcher, told, but=but)
            catalogue.take(name, source.found())
        if self._python is not None:
            await self._python.end_outdated()

    def _sources(self) -> Iterator[tuple[str, BashPlugins | PythonPlugins]]:
        yield BASH_PLUGINS, self._bash
        if self._python is not None:
            yield PYTHON_PLUGINS, self._python

    def is_current(self, path: str, kind: str) -> bool:
        """Whether a file is still what it was when it was last looked at."""
        if kind == "bash-plugin":
            return self._bash.is_current(path)
        return self._python is None or self._python.is_current(path)

    async def close(self) -> None:
        """End the workers."""
        if self._python is not None:
            await self._python.close()

    def _entries(self) -> Iterator[PluginEntry]:
        from haft.sources.python_plugin import entries_of

        told = {**self.policy.config, **self.policy.unset}
        for reference in self.references:
            if reference.family == "python":
                provenance, _within = self._standing(reference, reference.path or "")
                yield from entries_of(reference, reference.path, provenance, told)

    def _files(self) -> Iterator[PluginFile]:
        for reference in self.references:
            if reference.family != "bash":
                continue
            if reference.git is not None:
                yield from self._fetched(reference)
            elif reference.path is not None:
                for file in files_of(reference, reference.path, *self._standing(reference, reference.path)):
                    yield replace(file, provenance="workspace") if leads_inside(file.path, self._workspace) else file

    def _fetched(self, reference: PluginReference) -> Iterator[PluginFile]:
        """The files of a git plugin, or why they are not there."""
        assert self.fetching is not None
        standing = self.fetching.standing(reference)
        if standing.place is None:
            shown = standing.source.url if standing.source is not None else reference.name
            # Where it is off, that is the reason: nobody will fetch it.
            problem = standing.problem if standing.is_final or not self._is_off(reference) else None
            yield PluginFile(shown, "", reference, "user", "", problem)
            return
        place = standing.place
        inner = os.path.realpath(os.path.join(place, reference.subdirectory or "."))
        if inner.startswith(f"{place}/") and os.path.exists(os.path.join(inner, DESCRIPTOR)):
            # A plugin of its own in there; else it is where the files lie that the repository's descriptor names.
            place, reference = inner, replace(reference, subdirectory=None)
        yield from files_of(reference, place, "user", standing.place)

    def _unfetched(self) -> list[PluginReference]:
        """The git plugins that are to be fetched now."""
        if self.fetching is None:
            return []
        return [
            reference
            for reference in self.references
            if reference.git is not None and not self._is_off(reference) and self.fetching.is_wanted(reference)
        ]

    def _is_off(self, reference: PluginReference) -> bool:
        return not self.policy.is_allowed or not self._disabled.keys().isdisjoint((reference.name, reference.written))

    def _why_not_fetched(self, reference: PluginReference) -> str | None:
        if self._is_workspaces(reference):
            return "the workspace names it, and is not trusted to fetch anything: `haft trust`"
        return None

    def _is_workspaces(self, reference: PluginReference) -> bool:
        """Whether a workspace names it that nobody trusts."""
        is_file = os.path.isabs(reference.source)
        return is_file and not self._trusted and os.path.realpath(os.path.dirname(reference.source)) == self._workspace

    def _standing(self, reference: PluginReference, path: str) -> tuple[Provenance, str | None]:
        """Who vouches for a plugin, and what its files may not lead out of."""
        is_workspaces = self._is_workspaces(reference)
        inside = any(each.startswith(self._workspace.rstrip("/") + "/") for each in (path, os.path.realpath(path)))
        return "workspace" if inside or is_workspaces else "user", self._workspace if is_workspaces else None

    def _why_disabled(self, file: PluginFile | PluginEntry) -> str | None:
        stem = os.path.splitext(os.path.basename(file.path))[0]
        for name in (file.reference.name, file.reference.written, stem):
            if name in self._disabled:
                return f"`{name}` in `disabled_plugins` ({self._disabled[name]})"
        return None
