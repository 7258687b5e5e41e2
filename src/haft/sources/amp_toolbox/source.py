"""The toolboxes of one workspace: their files, what is known of each, and the tools that come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import NO_GRANTS, AskingLauncher, Definitions, Found, Grants, State, ToolName, ToolSpec
from haft.sources.amp_toolbox.discover import Candidate, Place, candidates
from haft.sources.amp_toolbox.tool import ToolboxTool, file_name, registered_name, spec_of
from haft.sources.dependency_state import surroundings
from haft.sources.describing_source import DescribingSource
from haft.sources.description_cache import CacheEntry, GrantsFor, no_grants
from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.sources.amp_toolbox.exports import Export, Origins

COLON: Final = ": "


@dataclass(frozen=True, slots=True)
class Separators:
    """What stands between name and value for tools that take text: what was set for a tool or a directory, what its
    script shows, what was set for all."""

    default: str = COLON
    """For all others. What a script shows counts more than the protocol's own, and less than another one."""
    special: Mapping[str, str] = field(default_factory=dict)
    """By the name of a tool, or by directory."""
    workspaces: Separators | None = None
    """For the tools of the workspace, where those are others."""

    def of(self, name: str, candidate: Candidate, shown: str | None) -> str:
        place = candidate.place
        return self.chosen(name, candidate.path, place.directory, place.provenance) or shown or COLON

    def chosen(self, name: str, path: str, directory: str, provenance: str) -> str | None:
        """What settings say; None where they leave it to the script."""
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
        directories: Callable[[], Sequence[Place]],
        definitions: Definitions,
        separators: Separators | None = None,
        origins: Origins | None = None,
        granted: GrantsFor = no_grants,
    ) -> None:
        """`origins` finds the tools that exported executables stand for; without it they are tools like others.
        `granted` says what a file may have when it is asked what it is."""
        super().__init__(self._candidates, definitions, granted=granted)
        self._directories = directories
        self._origins = origins
        self._exports: dict[tuple[str, str], Export | None] = {}
        self.separators = separators or Separators()

    def _candidates(self) -> list[Candidate]:
        return [each for place in self._directories() for each in candidates(place)]

    def granted_to(self, each: Candidate) -> Grants:
        """What a file may have when it is asked what it is, by what it said before."""
        return self._granted_to(each, self._answers.of(each))

    async def described(self, each: Candidate, launcher: AskingLauncher, besides: Grants = NO_GRANTS) -> CacheEntry:
        """What one file says when it is asked now, with what a rule grants to it, and this."""
        from haft.sources.brief_run import DESCRIBE_SECONDS

        return await self._answers.ask_one(each, self.describe, launcher, DESCRIBE_SECONDS, besides)

    async def describe(self, file: Candidate, launcher: AskingLauncher, seconds: float) -> CacheEntry:
        from haft.sources.amp_toolbox.describe import describe

        return await describe(file, launcher, seconds)

    def unknown(self) -> list[Candidate]:
        return [each for each in super().unknown() if self._export(each) is None]

    def found(self) -> Iterator[Found]:
        """Every file, as the tool that it is, or why it is none. The first of a name has it."""
        holders: dict[str, str] = {}
        for one in super().found():
            path = one.spec.origin
            holder = holders.get(one.spec.name)
            if one.tool is not None and holder is not None:
                reason = f"{holder} has the name `{one.spec.name}` already, and comes before {path}"
                yield Found(one.spec, None, "duplicate", reason)
                continue
            if one.tool is not None:
                holders[one.spec.name] = path
            yield one

    def found_at(self, each: Candidate, known: Mapping[str, Any]) -> Iterator[Found]:
        export = self._export(each)
        if export is None or self._origins is None:
            yield from super().found_at(each, known)
            return
        from haft.sources.amp_toolbox.exports import as_the_tool

        yield as_the_tool(each, export, self._origins)

    def tools_of(self, file: Candidate, known: Mapping[str, Any]) -> Iterator[Found]:
        yield as_found(known, file, self.separators)

    def bare(self, file: Candidate, known: Mapping[str, Any]) -> ToolSpec:
        place = file.place
        meta = {"skill": place.skill, "skillFolder": place.folder} if place.skill is not None else {}
        return ToolSpec(
            name=self.said(known) or file_name(file.path),
            kind="amp-toolbox",
            description="",
            input_schema={"type": "object", "properties": {}},
            provenance=place.provenance,
            origin=file.path,
            hosting="per-call",
            meta=meta,
        )

    def said(self, known: Mapping[str, Any]) -> ToolName | None:
        said = super().said(known)
        return None if said is None else registered_name(said)

    def told(self, each: Candidate, problem: str) -> str:
        return problem

    def holds_name(self, file: Candidate) -> bool:
        return file.problem is None and file.place.is_active

    def why_not(self, each: Candidate) -> tuple[State, str] | None:
        if each.problem is None and not each.place.is_active:
            skill = each.place.skill
            return "inactive", f"its skill `{skill}` is not active: `haft skills activate {skill}`"
        return super().why_not(each)

    def surroundings(self, file: Candidate) -> str:
        return surroundings(file.path, file.place.folder)

    def _export(self, each: Candidate) -> Export | None:
        """What a file stands for. A workspace's own stand for nothing: who brings one does not choose among the tools
        of others."""
        if self._origins is None or each.place.provenance == "workspace":
            return None
        key = each.path, each.identity
        if key not in self._exports:
            from haft.sources.amp_toolbox.exports import export_at

            self._exports[key] = export_at(each.path)
        return self._exports[key]


def as_found(known: Mapping[str, Any], each: Candidate, separators: Separators) -> Found:
    """A tool from what is known of it."""
    separator = separators.of(known["name"], each, known.get("separator"))
    spec = spec_of(known, each, separator)
    tool = ToolboxTool(
        spec, each.path, each.identity, known["form"], separator, each.place.folder, known.get("assigns", True)
    )
    return Found(spec, tool)
