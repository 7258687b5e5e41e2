"""The templates that a configuration names: their folders, their tools, and their environments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from haft.config import MISSING_VARIABLES, Config
from haft.contracts import (
    BadUsage,
    DescribeLauncher,
    DiscoveredTool,
    Effects,
    Environment,
    Environments,
    Grants,
    Provenance,
)
from haft.files import lies_inside
from haft.sources import Target
from haft.sources.agent_studio import ENTRY, ENVIRONMENT, HASH_FILE, ConfiguredInstance, TemplateDirectory, Templates
from haft.toolsets.formats import Host

_MADE = (ENVIRONMENT, HASH_FILE)


class TemplateSource(Templates):
    """The templates of one workspace and its user."""

    def __init__(self, host: Host) -> None:
        self._config = host.config
        self._named: list[str] = []
        """Folders of templates that `load` has loaded."""
        self._workspace = host.workspace
        super().__init__(
            lambda: list(self._places()),
            lambda: list(self._wanted()),
            host.definitions,
            _OnUse(host.config, host.state_home, host.env, host.workspace),
            host.config.values["templates.cold"],
        )

    def closed_to_calls(self) -> Iterator[str]:
        """The paths to which calls may not write: the environments of the templates, because haft runs the programs in
        them without checking them."""
        inside = self._workspace.rstrip("/") + "/"
        for folder in dict.fromkeys((*self.folders(), *self._named)):
            for way in dict.fromkeys((folder, os.path.realpath(folder))):
                if way.startswith(inside):
                    yield from (os.path.relpath(os.path.join(way, name), self._workspace) for name in _MADE)

    def recognizes(self, path: str) -> bool:
        return os.path.lexists(os.path.join(_folder(path), ENTRY))

    def targets(self, path: str) -> Iterator[Target]:
        yield Target(_folder(path), self.name)

    async def load(self, path: str, launcher: DescribeLauncher, grants: Grants) -> DiscoveredTool:
        """Load the template in a folder. If the configuration has an entry for the template, the user parameters come
        from there; if not, they have their defaults."""
        folder = _folder(path)
        place = self.place(folder, "the command line")
        self._named.append(folder)
        real = os.path.realpath(folder)
        wanted = [each for each in self._wanted() if os.path.realpath(each.place.directory) == real]
        if len(wanted) > 1:
            named = ", ".join(f"`{each.name}`" for each in wanted)
            raise BadUsage(f"{folder} has several tools: {named}", hint="call one of them by its name")
        source = Templates(lambda: [place], lambda: wanted, self._definitions, self._environments, self._cold)
        (found, *_others) = source.find()
        if found.tool is None:
            raise BadUsage(f"{folder} cannot be called: {found.reason}", hint=f"haft templates check {folder}")
        return found

    def _places(self) -> Iterator[TemplateDirectory]:
        for source, paths in self._config.lists.get("templates.paths", ()):
            for path in paths:
                yield self.place(path, source)

    def _wanted(self) -> Iterator[ConfiguredInstance]:
        for source, entries in self._config.lists.get("templates.instances", ()):
            for entry in entries:
                told: Mapping[str, Any] = entry  # type: ignore[assignment]  # a table, as its check saw to
                place = self.place(told["template"], source)
                effects = Effects(readonly=told.get("readonly", False), cacheable=told.get("cacheable", False))
                user, unset = told.get("user_params", {}), told.get(MISSING_VARIABLES, {})
                yield ConfiguredInstance(told["name"], place, user, source, unset, effects)

    def place(self, path: str, source: str) -> TemplateDirectory:
        """The template directory at `path`. A relative path begins at the directory of the configuration file `source`,
        or at the workspace if `source` is not a file."""
        is_file = os.path.isabs(source)
        base = os.path.dirname(source) if is_file else self._workspace
        directory = os.path.normpath(os.path.join(base, os.path.expanduser(path)))
        is_workspaces = is_file and os.path.realpath(base) == self._workspace and not self._config.trusted
        provenance: Provenance = "workspace" if is_workspaces or lies_inside(directory, self._workspace) else "user"
        return TemplateDirectory(directory, provenance, self._workspace if is_workspaces else None)


def _folder(path: str) -> str:
    """The folder of a template. `path` is the path of this folder, or of the entry file in the folder."""
    return os.path.dirname(path) if os.path.basename(path) == ENTRY and not os.path.isdir(path) else path


class _OnUse(Environments):
    """The environments of templates. Their modules are imported at the first use."""

    def __init__(self, config: Config, state_home: str, env: Mapping[str, str], workspace: str) -> None:
        self._given = config, state_home, env, workspace
        self._made: Environments | None = None

    def _real(self) -> Environments:
        if self._made is None:
            from haft.toolsets.environments import TemplateEnvironments

            self._made = TemplateEnvironments(*self._given)
        return self._made

    def current(self, folder: str) -> Environment | None:
        return self._real().current(folder)

    async def prepare(self, folder: str, told: Any = lambda _line: None, *, may_build: bool = False) -> Environment:
        return await self._real().prepare(folder, told, may_build=may_build)

    def allow_build(self, folder: str, requirements: str) -> None:
        self._real().allow_build(folder, requirements)
