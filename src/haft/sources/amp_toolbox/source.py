"""The source of toolbox tools in one workspace: their files, cache entries and tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import NO_GRANTS, Definitions, DescribeLauncher, DiscoveredTool, Grants, State, ToolName, ToolSpec
from haft.sources.amp_toolbox.discover import Candidate, ToolboxDirectory, candidates
from haft.sources.amp_toolbox.tool import ToolboxTool, file_name, registered_name, spec_of
from haft.sources.dependency_state import dependency_state
from haft.sources.describing_source import DescribingSource
from haft.sources.description_cache import CacheEntry, GrantsFor, no_grants
from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.sources.amp_toolbox.exports import Export, Origins

COLON: Final = ": "


@dataclass(frozen=True, slots=True)
class Separators:
    """The settings for the separator between name and value, for tools that take text. The setting for a tool or
    directory comes first, then what the script shows, then the setting for all tools."""

    default: str = COLON
    """The separator for all other tools. If it is `: `, the separator that a script shows overrides it; another default
    is not overridden."""
    special: Mapping[str, str] = field(default_factory=dict)
    """The separators of single tools and directories, by tool name, path or directory."""
    workspaces: Separators | None = None
    """The settings for tools of the workspace; None if they have the same settings."""

    def of(self, name: str, candidate: Candidate, shown: str | None) -> str:
        place = candidate.place
        return self.chosen(name, candidate.path, place.directory, place.provenance) or shown or COLON

    def chosen(self, name: str, path: str, directory: str, provenance: str) -> str | None:
        """The separator that the settings give; None if they leave it to the script."""
        if provenance == "workspace" and self.workspaces is not None:
            return self.workspaces.chosen(name, path, directory, "")
        for key in (name, f"tb__{name}", path, directory):
            if key in self.special:
                return self.special[key]
        return None if self.default == COLON else self.default


class Toolboxes(DescribingSource[Candidate]):
    """The source of toolbox executables."""

    name = "amp-toolbox"

    def __init__(
        self,
        directories: Callable[[], Sequence[ToolboxDirectory]],
        definitions: Definitions,
        separators: Separators | None = None,
        origins: Origins | None = None,
        granted: GrantsFor = no_grants,
    ) -> None:
        """`origins` returns the tool of an exported executable; if it is None, exported executables are ordinary tools.
        `granted` returns what a file may access while it is described."""
        super().__init__(self._candidates, definitions, granted=granted)
        self._directories = directories
        self._origins = origins
        self._exports: dict[tuple[str, str], Export | None] = {}
        self.separators = separators or Separators()

    def _candidates(self) -> list[Candidate]:
        return [each for place in self._directories() for each in candidates(place)]

    def granted_to(self, each: Candidate) -> Grants:
        """What a file may access while it is described. This depends on its last cache entry."""
        return self._granted_to(each, self._cache.get(each))

    async def describe_now(self, each: Candidate, launcher: DescribeLauncher, extra: Grants = NO_GRANTS) -> CacheEntry:
        """Describe one file now, with the grants that rules give to the file, and with the grants in `extra`."""
        from haft.sources.brief_run import DESCRIBE_SECONDS

        return await self._cache.describe_one(each, self.describe, launcher, DESCRIBE_SECONDS, extra)

    async def describe(self, file: Candidate, launcher: DescribeLauncher, seconds: float) -> CacheEntry:
        from haft.sources.amp_toolbox.describe import describe

        return await describe(file, launcher, seconds)

    def undescribed(self) -> list[Candidate]:
        return [each for each in super().undescribed() if self._export(each) is None]

    def found(self) -> Iterator[DiscoveredTool]:
        """Every file as a tool, or why it is not a tool. If several files have the same tool name, the first file keeps
        it."""
        holders: dict[str, str] = {}
        for one in super().found():
            path = one.spec.origin
            holder = holders.get(one.spec.name)
            if one.tool is not None and holder is not None:
                reason = f"{holder} has the name `{one.spec.name}` already, and comes before {path}"
                yield DiscoveredTool(one.spec, None, "duplicate", reason)
                continue
            if one.tool is not None:
                holders[one.spec.name] = path
            yield one

    def found_in(self, each: Candidate, known: Mapping[str, Any]) -> Iterator[DiscoveredTool]:
        export = self._export(each)
        if export is None or self._origins is None:
            yield from super().found_in(each, known)
            return
        from haft.sources.amp_toolbox.exports import exported_tool

        yield exported_tool(each, export, self._origins)

    def tools_of(self, file: Candidate, known: Mapping[str, Any]) -> Iterator[DiscoveredTool]:
        yield found_tool(known, file, self.separators)

    def undescribed_spec(self, file: Candidate, known: Mapping[str, Any]) -> ToolSpec:
        place = file.place
        meta = {"skill": place.skill, "skillFolder": place.folder} if place.skill is not None else {}
        return ToolSpec(
            name=self.last_name(known) or file_name(file.path),
            kind="amp-toolbox",
            description="",
            input_schema={"type": "object", "properties": {}},
            provenance=place.provenance,
            origin=file.path,
            hosting="per-call",
            meta=meta,
        )

    def last_name(self, known: Mapping[str, Any]) -> ToolName | None:
        name = super().last_name(known)
        return None if name is None else registered_name(name)

    def shown_problem(self, each: Candidate, problem: str) -> str:
        return problem

    def holds_name(self, file: Candidate) -> bool:
        return file.problem is None and file.place.is_active

    def why_not(self, each: Candidate) -> tuple[State, str] | None:
        if each.problem is None and not each.place.is_active:
            skill = each.place.skill
            return "inactive", f"its skill `{skill}` is not active: `haft skills activate {skill}`"
        return super().why_not(each)

    def dependency_state(self, file: Candidate) -> str:
        return dependency_state(file.path, file.place.folder)

    def _export(self, each: Candidate) -> Export | None:
        """What the file exports, if `haft toolbox export` made it; otherwise None. A file of the workspace never counts
        as an export: otherwise a workspace could name any tool of the user."""
        if self._origins is None or each.place.provenance == "workspace":
            return None
        key = each.path, each.identity
        if key not in self._exports:
            from haft.sources.amp_toolbox.exports import export_at

            self._exports[key] = export_at(each.path)
        return self._exports[key]


def found_tool(known: Mapping[str, Any], each: Candidate, separators: Separators) -> DiscoveredTool:
    """The tool that a cache entry describes."""
    separator = separators.of(known["name"], each, known.get("separator"))
    spec = spec_of(known, each, separator)
    tool = ToolboxTool(
        spec, each.path, each.identity, known["form"], separator, each.place.folder, known.get("assigns", True)
    )
    return DiscoveredTool(spec, tool)
