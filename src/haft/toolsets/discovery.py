"""The tools that lie on disk: found, asked what they are, put into the catalogue, and looked at again.

What is known from earlier is there at once. What is new or was changed is asked, behind walls, and kept. Nothing here
is imported by whoever has none of it, but for a look at a few directories.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import (
    NO_GRANTS,
    NO_SECRETS,
    AskingLauncher,
    BadUsage,
    Found,
    Grants,
    Kind,
    Launcher,
    Provenance,
    Secrets,
    SessionLauncher,
    ToolSpec,
    clean_tool_name,
)
from haft.registry import Catalogue
from haft.sources.amp_toolbox import Place, Separators, Toolboxes, as_found, candidate, standard_places
from haft.sources.answers import Claim
from haft.sources.skills import Activations, Skill, Skills, SkillTool
from haft.storage import KeptDefinitions, StateHome

if TYPE_CHECKING:
    import asyncio

    from haft.config.config import Config
    from haft.config.placeholders import Unset
    from haft.sources.amp_toolbox.exports import Export
    from haft.sources.amp_toolbox.finding import Candidate
    from haft.toolsets.command_lines import ConfiguredCommandLines
    from haft.toolsets.describe_grants import DescribeGrants
    from haft.toolsets.origins import Origins
    from haft.toolsets.plugins import Plugins
    from haft.toolsets.templates import ConfiguredTemplates

TOOLBOXES: Final = "amp-toolbox"
SKILL: Final = "skill"
UNSET: Final = "unset"
_KINDS: Final[dict[str, Kind]] = {"cli": "cli", "plugins": "bash-plugin", "templates.instances": "agent-studio"}

Told = Callable[[int, int], None]


class Discovery:
    """What one workspace and its user have on disk. Use it from one loop."""

    def __init__(
        self,
        workspace: str,
        home: StateHome,
        env: Mapping[str, str],
        sessions: SessionLauncher | None = None,
        *,
        follows_exports: bool = True,
    ) -> None:
        """`sessions` starts what outlives a call; without it such tools are listed, and cannot be called. With
        `follows_exports`, executables that stand for a tool are taken for it."""
        from haft.version import __version__

        self._workspace = os.path.realpath(workspace)
        self._env = env
        self._sessions = sessions
        self._definitions = KeptDefinitions(home.definitions, __version__)
        self.skills = Skills(self._workspace, self._definitions, env)
        self.activations = Activations(home.path, self._workspace)
        self._configured: tuple[str, ...] = ()
        self._separators = Separators()
        self._toolboxes: Toolboxes | None = None
        self._plugins: Plugins | None = None
        self._templates: ConfiguredTemplates | None = None
        self._command_lines: ConfiguredCommandLines | None = None
        self._home = home.path
        self._state = home
        self._grants: DescribeGrants | None = None
        self._config: Config | None = None
        self._catalogue: Catalogue | None = None
        self._follows_exports = follows_exports
        self._opened = functools.partial(_elsewhere, home, env, sessions)
        self._origins: Origins | None = None
        """Once an executable was found that stands for a tool."""
        self._skill: SkillTool | None = None
        self._turn: asyncio.Lock | None = None

    def configure(self, config: Config) -> None:
        """Take in the directories and separators that were configured, and what rules let tools have."""
        self._config = config
        self._definitions.context = confinement_of(config)
        if config.values["permissions"]:
            from haft.toolsets.describe_grants import DescribeGrants

            self._grants = DescribeGrants(config, self._state, self._workspace)
        self._configured = tuple(self._directories(config))
        self._separators = self._configured_separators(config)
        if config.values["plugins"]:
            from haft.toolsets.plugins import Plugins

            self._plugins = Plugins(config, self._workspace, self._definitions, self._sessions, self._granted)
        if config.values["templates.paths"] or config.values["templates.instances"]:
            self._templates = self._configured_templates(config)
        if config.values["cli"]:
            from haft.toolsets.command_lines import ConfiguredCommandLines

            self._command_lines = ConfiguredCommandLines(config, self._workspace, self._definitions)

    def _configured_separators(self, config: Config) -> Separators:
        def separators(beneath: Mapping[str, tuple[Any, str]]) -> Separators:
            name = "toolbox.separator"
            marks, source = beneath.get(name, (config.values[name], config.sources[name]))
            special = {self._directory(key, source) if os.sep in key else key: mark for key, mark in marks.items()}
            name = "toolbox.text_separator"
            return Separators(beneath.get(name, (config.values[name],))[0], special)

        return replace(separators(config.beneath), workspaces=separators({}))

    def _configured_templates(self, config: Config) -> ConfiguredTemplates:
        from haft.toolsets.templates import ConfiguredTemplates

        return ConfiguredTemplates(config, self._workspace, self._definitions, self._home, self._env)

    @property
    def secrets(self) -> Secrets:
        """What templates declare to be secret of the parameters that they are given."""
        return NO_SECRETS if self._templates is None else self._templates.source.secrets

    def closed_to_calls(self) -> list[str]:
        """What calls may not write in the workspace, since it would be run without being looked at."""
        return [] if self._templates is None else list(self._templates.environments_inside())

    def _directories(self, config: Config) -> Iterator[str]:
        for source, paths in config.lists.get("toolbox.paths", ()):
            yield from (self._directory(path, source) for path in paths)

    def _directory(self, path: str, source: str) -> str:
        """A path as it was written in a file, or said by a caller."""
        base = os.path.dirname(source) if os.path.isabs(source) else self._workspace
        return os.path.normpath(os.path.join(base, os.path.expanduser(path)))

    def why_inactive(self, spec: ToolSpec, thread: str | None) -> str | None:
        """Why a tool of a skill has not joined a thread; None where it has."""
        skill = spec.meta.get("skill") if spec.kind == "amp-toolbox" else None
        if skill is None or spec.meta.get("skillFolder") in self.activations.of(thread):
            return None
        return f"its skill `{skill}` is not active: `haft skills activate {skill}`"

    def fill_builtin(self, catalogue: Catalogue, changed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Put in the built-in tool by which agents read skills. `changed` is awaited when one became active."""
        self._skill = self._skill or SkillTool(
            self.skills,
            self.activations,
            changed or _nobody,
            lambda thread: catalogue.listings(all=True, thread=thread),
        )
        catalogue.take(SKILL, [Found(self._skill.spec, self._skill)])

    def fill(self, catalogue: Catalogue) -> bool:
        """Put in what is known; whether there is anything to ask."""
        self._catalogue = catalogue
        toolboxes = self._boxes()
        toolboxes.look()
        catalogue.take(TOOLBOXES, toolboxes.found())
        if self._templates is not None:
            self._templates.fill(catalogue)
        if self._config is not None:
            catalogue.take(UNSET, (found for one in self._config.unset if (found := _needing(one)) is not None))
        unknown = [bool(toolboxes.unknown()), self._origins is not None and self._origins.are_unasked]
        unknown += [source.fill(catalogue) for source in (self._plugins, self._command_lines) if source is not None]
        return any(unknown)

    async def renew(
        self,
        catalogue: Catalogue,
        launcher: AskingLauncher,
        told: Told = lambda _done, _all: None,
        *,
        doubted: str | None = None,
    ) -> None:
        """Look again, ask what is not known, and put in what there is. What could not be understood and is listed by
        the name `doubted` is asked again."""
        import asyncio

        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            self._catalogue = catalogue
            toolboxes = self._boxes()
            others = self._origins is not None and await self._origins.renew(launcher)
            seen = await asyncio.to_thread(toolboxes.look)
            if doubted is not None:
                toolboxes.doubt(doubted)
            unknown = toolboxes.unknown()
            if unknown:
                # Without walls, files that a clone brought are not run because someone lists tools.
                but = frozenset() if await launcher.is_walled() else frozenset({"workspace"})
                await toolboxes.ask(launcher, told, but=but)
            if seen or unknown or others:
                catalogue.take(TOOLBOXES, toolboxes.found())
            if self._plugins is not None:
                await self._plugins.renew(catalogue, launcher, told, doubted=doubted)
            if self._templates is not None:
                await self._templates.renew(catalogue)
            if self._command_lines is not None:
                await self._command_lines.renew(catalogue, launcher)
            self.fill_builtin(catalogue)

    def is_current(self, spec: ToolSpec) -> bool:
        """Whether a tool is still what it was when its file was last looked at."""
        if "export" in spec.meta and spec.kind == "amp-toolbox":
            whole = self._origins is None or self._origins.is_current(spec.meta["export"])
            return whole and self._boxes().is_current(spec.origin)
        if "plugin" in spec.meta:
            return self._plugins is None or self._plugins.is_current(spec.origin, spec.kind)
        if spec.kind == "cli":
            return self._command_lines is None or self._command_lines.source.is_current(spec)
        if spec.kind == "agent-studio":
            return self._templates is None or self._templates.source.is_current(spec.origin)
        return spec.kind != "amp-toolbox" or self._boxes().is_current(spec.origin)

    def sets_separator(self, name: str, path: str) -> bool:
        """Whether a setting says what stands between name and value for a tool."""
        from haft.files.links import lies_inside

        described = name.removeprefix("tb__")
        provenance = "workspace" if lies_inside(path, self._workspace) else "user"
        return self._separators.chosen(described, path, os.path.dirname(path), provenance) is not None

    def searches(self, directory: str) -> bool:
        """Whether the executables in a directory are tools here."""
        wanted = os.path.realpath(directory)
        return any(os.path.realpath(place.directory) == wanted for place in self._places() if place.skill is None)

    def forget_failures(self, paths: Iterable[str]) -> None:
        """Ask these files again, if they could not be understood before."""
        for path in paths:
            for kind in ("amp-toolbox", "bash-plugin"):
                group = f"{kind}:{os.path.dirname(path)}"
                known = self._definitions.load(group)
                if "problem" in known.get(path, {}):
                    del known[path]
                    self._definitions.save(group, known)

    async def at(self, path: str, launcher: AskingLauncher, grants: Grants = NO_GRANTS) -> Found:
        """The tool at a path, wherever it lies, asked anew, with what a rule or whoever names it grants."""
        from haft.sources.amp_toolbox.describing import script
        from haft.sources.amp_toolbox.exports import as_the_tool, export_at
        from haft.sources.bash_plugin.finding import is_bash_plugin

        path = os.path.abspath(os.path.expanduser(path))
        if not os.path.lexists(path):
            raise BadUsage(f"there is no file {path}")
        if os.path.isdir(path) or os.path.basename(path) == "tool.py":
            return self._template_at(path)
        each = self._candidate(path)
        provenance = each.place.provenance
        if is_bash_plugin(script(path).encode()):
            return await self._plugin_at(path, provenance, launcher.granting(grants))
        if each.problem is not None:
            raise BadUsage(f"{path} is no tool: {each.problem}")
        if self._follows_exports and provenance != "workspace" and (export := export_at(path)) is not None:
            self._origin(export)
            assert self._origins is not None
            await self._origins.renew(launcher)
            found = as_the_tool(each, export, self._origins)
            if found.tool is None:
                raise BadUsage(f"{path} stands for a tool that cannot be called: {found.reason}")
            return found
        known = await self._boxes().described(each, launcher, grants)
        if "problem" in known:
            raise BadUsage(f"{path} is no tool: {known['problem']}", hint=f"haft tools check {path}")
        return as_found(known, each, self._separators)

    def granted_at(self, path: str) -> Grants:
        """What rules let the toolbox executable at a path have when it is described."""
        boxes = self._boxes()
        boxes.look()  # Another file may have the name.
        return boxes.granted_to(self._candidate(os.path.abspath(path)))

    def _candidate(self, path: str) -> Candidate:
        from haft.files.links import leads_inside

        inside = leads_inside(path, self._workspace)
        place = Place(os.path.dirname(path), "workspace" if inside else "user", self._workspace if inside else None)
        return candidate(path, place)

    def _loaded(self) -> Config:
        from haft.config.config import load_config

        return load_config(self._workspace, self._env, trust_home=self._home)

    def _template_at(self, path: str) -> Found:
        """The template in a folder, with the user parameters that are its defaults."""
        from haft.sources.agent_studio.finding import ENTRY

        folder = os.path.dirname(path) if os.path.basename(path) == ENTRY else path
        if not os.path.lexists(os.path.join(folder, ENTRY)):
            raise BadUsage(f"{path} is a directory, and no template", hint="name an executable file, or a template")
        if self._templates is None:
            self._templates = self._configured_templates(self._config or self._loaded())
        found = self._templates.at(folder)
        if found.tool is None:
            raise BadUsage(f"{folder} cannot be called: {found.reason}", hint=f"haft templates check {folder}")
        return found

    async def _plugin_at(self, path: str, provenance: Provenance, launcher: Launcher) -> Found:
        """The bash plugin at a path: whoever names it here allows it."""
        from haft.sources.asking import DESCRIBE_SECONDS
        from haft.sources.bash_plugin import PluginReference, Policy, as_found, files_of
        from haft.sources.bash_plugin.source import describe

        reference = PluginReference(f"bash:{path}", "the command line", "bash", path=path, is_file=True)
        (file,) = files_of(reference, path, provenance, None)
        known = {"problem": file.problem} if file.problem else await describe(file, launcher, DESCRIBE_SECONDS)
        if "problem" in known:
            raise BadUsage(f"{path} is no tool: {known['problem']}", hint=f"haft tools check {path}")
        return as_found(known, file, Policy(is_allowed=True) if self._plugins is None else self._plugins.policy)

    async def close(self) -> None:
        """End what outlived its calls."""
        if self._plugins is not None:
            await self._plugins.close()
        if self._origins is not None:
            await self._origins.close()
        if self._grants is not None:
            self._grants.close()

    def _origin(self, export: Export) -> Found:
        """The tool that an executable stands for."""
        if self._origins is None:
            from haft.toolsets.origins import Origins

            self._origins = Origins(lambda: self._catalogue, self._opened)
        return self._origins(export)

    def _granted(self, claim: Claim) -> Grants:
        return NO_GRANTS if self._grants is None else self._grants(claim)

    def _boxes(self) -> Toolboxes:
        if self._toolboxes is None:
            self._toolboxes = Toolboxes(
                self._places,
                self._definitions,
                self._separators,
                self._origin if self._follows_exports else None,
                self._granted,
            )
        return self._toolboxes

    def _places(self) -> list[Place]:
        places = standard_places(self._env, self._workspace, self._configured)
        active = self.activations.anywhere()
        for skill in self.skills.found():
            if skill.problem is None and skill.shadowed_by is None:
                places += self._bundled(skill, is_active=skill.folder in active)
        return places

    def _bundled(self, skill: Skill, *, is_active: bool) -> Iterator[Place]:
        within = self._workspace if skill.provenance == "workspace" else None
        for directory in skill.tool_folders:
            provenance = "user" if skill.provenance == "builtin" else skill.provenance
            yield Place(directory, provenance, within, skill.name, skill.folder, is_active, self._workspace)


def _elsewhere(
    home: StateHome, env: Mapping[str, str], sessions: SessionLauncher | None, workspace: str
) -> tuple[Discovery, Catalogue]:
    """Another workspace, as it is configured there, and a catalogue for what it has."""
    from haft.config.config import load_config

    config = load_config(workspace, env, trust_home=home.path)
    enablement = config.enablement
    discovery = Discovery(workspace, home, env, sessions, follows_exports=False)
    discovery.configure(config)
    return discovery, Catalogue(lambda spec: enablement.why_not(spec.name, spec.kind))


def confinement_of(config: Config) -> str:
    """What configuration says of how programs are confined that are asked what they are; nothing by default."""
    grants = [
        one["grant"] for each in config.rule_sets if each.counting is None for one in each.tables if "grant" in one
    ]
    said = [config.sandbox_mode, grants]
    return "" if said == ["auto", []] else repr(said)


def _needing(unset: Unset) -> Found | None:
    """A tool that there would be if a variable were set."""
    kind = _KINDS.get(unset.setting)
    if kind is None:
        return None
    name = clean_tool_name(os.path.splitext(os.path.basename(unset.entry))[0])
    spec = ToolSpec(name, kind, "", {"type": "object", "properties": {}}, origin=unset.source, provenance="user")
    return Found(spec, None, "needs-config", unset.sentence())


async def _nobody() -> None:
    """Where no service is open, nobody waits for tools to join."""
