"""The plugins that a configuration names: found, asked what they are, and put into the catalogue."""

from __future__ import annotations

import os
from collections.abc import Iterator

from haft.contracts import Definitions, Launcher, Provenance
from haft.registry import Catalogue
from haft.service.config import Config
from haft.sources.answers import Told
from haft.sources.bash_plugin import BashPlugins, PluginFile, PluginReference, Policy, files_of, read_reference

BASH_PLUGINS = "bash-plugin"


class Plugins:
    """Those of one workspace and its user."""

    def __init__(self, config: Config, workspace: str, definitions: Definitions) -> None:
        self._workspace = workspace
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
        )
        self._bash = BashPlugins(lambda: list(self._files()), definitions, self.policy, self._why_disabled)

    def fill(self, catalogue: Catalogue) -> bool:
        """Put in what is known; whether there is anything to ask."""
        self._bash.look()
        catalogue.take(BASH_PLUGINS, self._bash.found())
        return bool(self._bash.unknown())

    async def renew(self, catalogue: Catalogue, launcher: Launcher, told: Told) -> None:
        """Look again, ask what is not known, and put in what there is."""
        import asyncio

        await asyncio.to_thread(self._bash.look)
        if self._bash.unknown():
            await self._bash.ask(launcher, told)
        catalogue.take(BASH_PLUGINS, self._bash.found())

    def is_current(self, path: str) -> bool:
        """Whether a file is still what it was when it was last looked at."""
        return self._bash.is_current(path)

    def _files(self) -> Iterator[PluginFile]:
        for reference in self.references:
            if reference.family == "bash" and reference.path is not None:
                yield from files_of(reference, reference.path, *self._standing(reference, reference.path))

    def _standing(self, reference: PluginReference, path: str) -> tuple[Provenance, str | None]:
        """Who vouches for a plugin, and what its files may not lead out of."""
        is_workspaces = os.path.dirname(reference.source) == self._workspace and not self._trusted
        inside = path.startswith(self._workspace.rstrip("/") + "/")
        return "workspace" if inside or is_workspaces else "user", self._workspace if is_workspaces else None

    def _why_disabled(self, file: PluginFile) -> str | None:
        stem = os.path.splitext(os.path.basename(file.path))[0]
        for name in (file.reference.name, file.reference.written, stem):
            if name in self._disabled:
                return f"`{name}` in `disabled_plugins` ({self._disabled[name]})"
        return None
