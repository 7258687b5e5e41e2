"""The plugins that a configuration names, the provenance of each, and the sources of their tools."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from haft.config import Config
from haft.contracts import BadUsage, DescribeLauncher, DiscoveredTool, Grants, Provenance, ToolSpec
from haft.files import leads_inside
from haft.sources import Target
from haft.sources.bash_plugin import (
    DESCRIPTOR,
    BashPlugins,
    PluginFile,
    PluginReference,
    Policy,
    files_of,
    found_tool,
    is_bash_plugin,
    read_reference,
)
from haft.sources.python_plugin import PluginEntry, PythonPlugins, digest_of_config, entries_of, has_same_files
from haft.toolsets.formats import Host

if TYPE_CHECKING:
    from haft.sources import ProgressCallback
    from haft.sources.checks import Report
    from haft.toolsets.fetching import Fetching


class ConfiguredPlugins:
    """The plugins of one workspace and its user."""

    def __init__(self, config: Config, workspace: str) -> None:
        self._workspace = os.path.realpath(workspace)
        self._disabled = {name: source for source, names in config.lists.get("disabled_plugins", ()) for name in names}
        self._untrusted = {
            source
            for source, _entries in config.lists.get("plugins", ())
            if os.path.isabs(source)
            and not config.trusted
            and os.path.realpath(os.path.dirname(source)) == self._workspace
        }
        """The configuration files of an untrusted workspace that name plugins."""
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
        """Fetches git plugins; None if there are none."""
        if any(reference.git is not None for reference in self.references):
            from haft.toolsets.fetching import Fetching

            self.fetching = Fetching(config, workspace, self._why_not_fetched)

    def entries(self) -> list[PluginEntry]:
        """All Python plugins."""
        return [
            entry
            for reference in self.references
            if reference.family == "python"
            for entry in self.entries_of(reference)
        ]

    def entries_of(self, reference: PluginReference) -> list[PluginEntry]:
        """The Python plugins that one reference names."""
        provenance, _within = self._provenance(reference, reference.path or "")
        return entries_of(reference, reference.path, provenance, self._config_digest)

    def is_current(self, entry: PluginEntry) -> bool:
        """Whether a Python plugin is as it was found."""
        if entry.path == entry.reference.path and entry.problem is None:
            return has_same_files(entry, self._config_digest)
        return entry in self.entries_of(entry.reference)

    @functools.cached_property
    def _config_digest(self) -> str:
        return digest_of_config({**self.policy.config, **self.policy.unset})

    def files(self) -> Iterator[PluginFile]:
        for reference in self.references:
            if reference.family != "bash":
                continue
            if reference.git is not None:
                yield from self._fetched(reference)
            elif reference.path is not None:
                for file in files_of(reference, reference.path, *self._provenance(reference, reference.path)):
                    yield replace(file, provenance="workspace") if leads_inside(file.path, self._workspace) else file

    def _fetched(self, reference: PluginReference) -> Iterator[PluginFile]:
        """The files of a git plugin. If it is not fetched, one entry that says why."""
        assert self.fetching is not None
        checkout_state = self.fetching.checkout_state(reference)
        if checkout_state.place is None:
            shown = checkout_state.source.url if checkout_state.source is not None else reference.name
            # A disabled plugin is not fetched. So the listing must name that reason, not that fetching is still to
            # come.
            problem = checkout_state.problem if checkout_state.is_final or not self._is_off(reference) else None
            yield PluginFile(shown, "", reference, "user", "", problem)
            return
        place = checkout_state.place
        inner = os.path.realpath(os.path.join(place, reference.subdirectory or "."))
        if inner.startswith(f"{place}/") and os.path.exists(os.path.join(inner, DESCRIPTOR)):
            # The subdirectory has a descriptor, so it is a plugin of its own. If it had none, the repository's
            # descriptor would name files in it.
            place, reference = inner, replace(reference, subdirectory=None)
        yield from files_of(reference, place, "user", checkout_state.place)

    def unfetched(self) -> list[PluginReference]:
        """The git plugins that should be fetched now."""
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
            return "the workspace names it, and haft fetches it only after `haft trust`"
        return None

    def _is_workspaces(self, reference: PluginReference) -> bool:
        """Whether the configuration file of an untrusted workspace names the plugin."""
        return reference.source in self._untrusted

    def _provenance(self, reference: PluginReference, path: str) -> tuple[Provenance, str | None]:
        """The provenance of a plugin, and the directory out of which links in the plugin may not lead; None in place of
        the directory if links may lead anywhere."""
        is_workspaces = self._is_workspaces(reference)
        inside = any(each.startswith(self._workspace.rstrip("/") + "/") for each in (path, os.path.realpath(path)))
        return "workspace" if inside or is_workspaces else "user", self._workspace if is_workspaces else None

    def why_disabled(self, file: PluginFile | PluginEntry) -> str | None:
        stem = os.path.splitext(os.path.basename(file.path))[0]
        for name in (file.reference.name, file.reference.written, stem):
            if name in self._disabled:
                return f"`{name}` in `disabled_plugins` ({self._disabled[name]})"
        return None


class BashPluginSource(BashPlugins):
    """The tools of bash plugins. Fetches git plugins first."""

    fetches = True

    def __init__(self, host: Host) -> None:
        self.plugins = plugins = ConfiguredPlugins(host.config, host.workspace)
        super().__init__(
            lambda: list(plugins.files()), host.definitions, plugins.policy, plugins.why_disabled, host.granted
        )
        self._workspace = host.workspace

    @property
    def is_incomplete(self) -> bool:
        return bool(self.plugins.unfetched()) or super().is_incomplete

    async def refresh(
        self, launcher: DescribeLauncher, told: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool] | None:
        if self.fetches and (wanted := self.plugins.unfetched()):
            assert self.plugins.fetching is not None
            await self.plugins.fetching.fetch(wanted, told)
        return await super().refresh(launcher, told, retry_name=retry_name)

    def places(self) -> Iterable[str]:
        yield from super().places()
        for reference in self.plugins.references:
            if reference.family == "bash" and reference.path is not None:
                yield reference.path
        if self.plugins.fetching is not None:
            yield from self.plugins.fetching.locks(self.plugins.references)

    def due(self) -> bool:
        # haft tries again to fetch a plugin that could not be fetched.
        return super().due() or any(each.problem is not None for each in self._seen if each.reference.git is not None)

    def recognizes(self, path: str) -> bool:
        from haft.sources.amp_toolbox import script

        if os.path.isdir(path):
            return os.path.lexists(os.path.join(path, DESCRIPTOR))
        return is_bash_plugin(script(path).encode())

    async def load(self, path: str, launcher: DescribeLauncher, grants: Grants) -> DiscoveredTool | None:
        """Load the plugin at a path, and return its tool; None if the path is a directory. The plugin need not be
        configured, because a person or a program named its path."""
        from haft.sources import DESCRIBE_SECONDS

        if os.path.isdir(path):
            return None
        inside = leads_inside(path, self._workspace)
        reference = PluginReference(f"bash:{path}", "the command line", "bash", path=path, is_file=True)
        (file,) = files_of(reference, path, "workspace" if inside else "user", None)
        if file.problem is None:
            known = await self.describe(file, launcher.with_grants(grants), DESCRIBE_SECONDS)
        else:
            known = {"problem": file.problem}
        if "problem" in known:
            raise BadUsage(f"{path} is not a tool: {known['problem']}", hint=f"haft tools check {path}")
        return found_tool(known, file, self.policy if self.plugins.references else Policy(is_allowed=True))

    def targets(self, path: str) -> Iterable[Target]:
        from haft.sources.bash_plugin import files_to_check

        files = files_to_check(path) if os.path.isdir(path) else [path]
        return [Target(file, self.name) for file in files]

    def is_checked_at_origin(self, spec: ToolSpec) -> bool:
        return os.path.isfile(spec.origin)

    async def check(self, target: Target, launcher: DescribeLauncher, reserved: Collection[str]) -> Sequence[Report]:
        from haft.sources.bash_plugin import check_plugin

        report = await check_plugin(target.path, launcher, reserved)
        if not self._seen:
            self.scan()
        for file in (each for each in self._seen if each.path == os.path.abspath(target.path)):
            self.forget_failure(file)
        return [report]


class PythonPluginSource(PythonPlugins):
    """The tools of Python plugins."""

    def __init__(self, host: Host) -> None:
        plugins = ConfiguredPlugins(host.config, host.workspace)
        super().__init__(
            plugins.entries,
            plugins.is_current,
            host.definitions,
            plugins.policy,
            host.workspace,
            host.sessions,
            plugins.why_disabled,
        )
