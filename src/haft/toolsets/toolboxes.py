"""The toolboxes of one workspace and its user: the directories that haft searches, and the executables in them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from haft.contracts import BadUsage, DescribeLauncher, DiscoveredTool, Grants, ToolSpec
from haft.files import leads_inside
from haft.sources.amp_toolbox import (
    Candidate,
    Separators,
    ToolboxDirectory,
    Toolboxes,
    candidate,
    found_tool,
    standard_places,
)
from haft.toolsets.formats import Host, place_of
from haft.values import replace

if TYPE_CHECKING:
    from haft.sources import ProgressCallback, Target
    from haft.sources.amp_toolbox import Export
    from haft.sources.checks import Report
    from haft.sources.skills import Skill
    from haft.toolsets.origins import Origins


class ToolboxSource(Toolboxes):
    """The source of toolbox tools, also of those in skills."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._origins_of: Origins | None = None
        """Finds the tools that exported executables stand for; None until such an executable was found."""
        origins = self._origin if host.elsewhere is not None else None
        separators = _separators(host) if host.is_configured else None
        super().__init__(self._places, host.definitions, separators, origins, host.granted)
        lists = host.config.lists.get("toolbox.paths", ()) if host.is_configured else ()
        self._configured = [place_of(path, source, host.workspace) for source, paths in lists for path in paths]

    def _places(self) -> list[ToolboxDirectory]:
        host = self._host
        places = standard_places(host.env, host.workspace, self._configured)
        active = host.activations.anywhere()
        for skill in host.skills.found():
            if skill.problem is None and skill.shadowed_by is None:
                places += self._bundled(skill, is_active=skill.folder in active)
        return places

    def _bundled(self, skill: Skill, *, is_active: bool) -> Iterator[ToolboxDirectory]:
        workspace = self._host.workspace
        within = workspace if skill.provenance == "workspace" else None
        for directory in skill.tool_folders:
            provenance = "user" if skill.provenance == "builtin" else skill.provenance
            yield ToolboxDirectory(directory, provenance, within, skill.name, skill.folder, is_active, workspace)

    def places(self) -> Iterable[str]:
        yield self._host.activations.path
        yield from (place.directory for place in self._places())
        yield from (os.path.realpath(each.path) for each in self._seen if os.path.islink(each.path))

    @property
    def is_incomplete(self) -> bool:
        return super().is_incomplete or (self._origins_of is not None and self._origins_of.are_unasked)

    async def refresh(
        self, launcher: DescribeLauncher, told: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool] | None:
        are_others = self._origins_of is not None and await self._origins_of.renew(launcher)
        found = await super().refresh(launcher, told, retry_name=retry_name)
        return list(self.found()) if are_others else found

    def due(self) -> bool:
        # The files of other workspaces are not watched.
        return self._origins_of is not None or super().due()

    def is_current(self, spec: ToolSpec) -> bool:
        export = spec.meta.get("export")
        whole = export is None or self._origins_of is None or self._origins_of.is_current(export)
        return whole and super().is_current(spec)

    def recognizes(self, path: str) -> bool:
        return not os.path.isdir(path)

    async def load(self, path: str, launcher: DescribeLauncher, grants: Grants) -> DiscoveredTool:
        from haft.sources.amp_toolbox import export_at, exported_tool

        each = self._candidate(path)
        if each.problem is not None:
            raise BadUsage(f"{path} is not a tool: {each.problem}")
        is_followed = self._host.elsewhere is not None and each.provenance != "workspace"
        if is_followed and (export := export_at(path)) is not None:
            self._origin(export)
            assert self._origins_of is not None
            await self._origins_of.renew(launcher)
            found = exported_tool(each, export, self._origins_of)
            if found.tool is None:
                raise BadUsage(f"{path} stands for a tool that cannot be called: {found.reason}")
            return found
        known = await self.describe_now(each, launcher, grants)
        if "problem" in known:
            raise BadUsage(f"{path} is not a tool: {known['problem']}", hint=f"haft tools check {path}")
        return found_tool(known, each, self.separators)

    def is_checked_at_origin(self, spec: ToolSpec) -> bool:
        return os.path.isfile(spec.origin)

    async def check(self, target: Target, launcher: DescribeLauncher, reserved: Collection[str]) -> Sequence[Report]:
        from haft.sources.amp_toolbox import check_executable

        each = self._candidate(os.path.abspath(target.path))
        if self._host.settings.get("permissions"):
            self.scan()  # Another file may have taken the tool name that a rule names.
            launcher = launcher.with_grants(self.granted_to(each))
        report = await check_executable(target.path, launcher, reserved, folder=target.folder, within=target.within)
        self.forget_failure(each)
        if report.has("separator-unclear") and self._separator_is_set(report.name or "", each):
            left = [finding for finding in report.findings if finding.code != "separator-unclear"]
            report = replace(report, findings=left)
        return [report]

    def _separator_is_set(self, name: str, each: Candidate) -> bool:
        """Whether a setting chooses the separator that this tool expects between the name and the value of an
        argument."""
        directory = os.path.dirname(each.path)
        return self.separators.chosen(name.removeprefix("tb__"), each.path, directory, each.provenance) is not None

    def _candidate(self, path: str) -> Candidate:
        root = self._host.workspace
        inside = leads_inside(path, root)
        place = ToolboxDirectory(os.path.dirname(path), "workspace" if inside else "user", root if inside else None)
        return candidate(path, place)

    async def close(self) -> None:
        if self._origins_of is not None:
            await self._origins_of.close()

    def _origin(self, export: Export) -> DiscoveredTool:
        """The tool that an exported executable stands for."""
        if self._origins_of is None:
            from haft.toolsets.origins import Origins

            assert self._host.elsewhere is not None
            self._origins_of = Origins(lambda: self._host.catalogue, self._host.elsewhere)
        return self._origins_of(export)


def _separators(host: Host) -> Separators:
    config = host.config

    def separators(beneath: Mapping[str, tuple[Any, str]]) -> Separators:
        name = "toolbox.separator"
        marks, source = beneath.get(name, (config.values[name], config.sources[name]))
        special = {place_of(key, source, host.workspace) if os.sep in key else key: mark for key, mark in marks.items()}
        name = "toolbox.text_separator"
        return Separators(beneath.get(name, (config.values[name],))[0], special)

    return replace(separators(config.for_other_tools), workspaces=separators({}))
