"""The toolboxes of one workspace: their files, what is known of each, and the tools that come of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import NO_GRANTS, AskingLauncher, Definitions, Found, Grants, ToolName, ToolSpec
from haft.sources.amp_toolbox.finding import Candidate, Place, candidates
from haft.sources.amp_toolbox.tool import ToolboxTool, file_name, registered_name, spec_of
from haft.sources.answers import NOT_ASKED, UNWALLED, Answers, Claim, Granted, Known, Told, nothing
from haft.sources.identity import identity_at
from haft.sources.surrounding import surroundings

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


class Toolboxes:
    """The source of toolbox executables."""

    def __init__(
        self,
        places: Callable[[], Sequence[Place]],
        definitions: Definitions,
        separators: Separators | None = None,
        origins: Origins | None = None,
        granted: Granted = nothing,
    ) -> None:
        """`origins` finds the tools that exported executables stand for; without it they are tools like others.
        `granted` says what a file may have when it is asked what it is."""
        self._granted = granted
        self._origins = origins
        self._exports: dict[tuple[str, str], Export | None] = {}
        self._places = places
        self._answers = Answers(definitions, lambda file: surroundings(file.path, file.place.folder), self._granted_to)
        self._separators = separators or Separators()
        self._seen: list[Candidate] = []
        self._unasked: frozenset[str] = frozenset()

    def granted_to(self, each: Candidate) -> Grants:
        """What a file may have when it is asked what it is, by what it said before."""
        return self._granted_to(each, self._answers.of(each))

    def _granted_to(self, each: Candidate, known: Mapping[str, Any]) -> Grants:
        """What a file may have when it is asked what it is."""

        def is_taken(name: str) -> bool:
            before = itertools.takewhile(lambda other: other.path != each.path, self._seen)
            usable = (other for other in before if other.problem is None and other.place.is_active)
            return any(name == _bare(other, self._answers.of(other)).name for other in usable)

        said, otherwise = _said(known), file_name(each.path)
        return self._granted(Claim(said, otherwise, "amp-toolbox", each.path, each.place.provenance, is_taken))

    async def described(self, each: Candidate, launcher: AskingLauncher, besides: Grants = NO_GRANTS) -> Known:
        """What one file says when it is asked now, with what a rule grants to it, and this."""
        from haft.sources.amp_toolbox.describing import describe
        from haft.sources.asking import DESCRIBE_SECONDS

        return await self._answers.ask_one(each, describe, launcher, DESCRIBE_SECONDS, besides)

    def look(self) -> bool:
        """See what lies there now; whether that is anything else than before."""
        before = self._seen
        self._seen = [each for place in self._places() for each in candidates(place)]
        return self._seen != before

    def is_current(self, path: str) -> bool:
        """Whether a file is still the one that was seen."""
        seen = next((each for each in self._seen if each.path == path), None)
        return seen is not None and identity_at(path) == seen.identity

    def unknown(self) -> list[Candidate]:
        """The files that have to be asked what they are."""
        return [
            each
            for each in self._seen
            if each.problem is None
            and each.place.is_active
            and self._answers.is_outdated(each)
            and self._export(each) is None
        ]

    def doubt(self, name: str) -> None:
        """Ask again what could not be understood and is listed by this name."""
        for each in self._seen:
            if _bare(each, self._answers.of(each)).name == name:
                self._answers.doubt(each)

    async def ask(
        self, launcher: AskingLauncher, told: Told = lambda _done, _all: None, *, but: frozenset[str] = frozenset()
    ) -> None:
        """Ask those that are not known, and keep what they say; `but` those of these provenances."""
        from haft.sources.amp_toolbox.describing import describe

        self._unasked = but
        wanted = [each for each in self.unknown() if each.place.provenance not in but]
        if wanted:
            await self._answers.ask(wanted, self._seen, describe, launcher, told)

    def found(self) -> Iterator[Found]:
        """Every file, as the tool that it is, or why it is none."""
        holders: dict[str, str] = {}
        for each in self._seen:
            one = self._found(each)
            holder = holders.get(one.spec.name)
            if one.tool is not None and holder is not None:
                reason = f"{holder} has the name `{one.spec.name}` already, and comes before {each.path}"
                yield Found(one.spec, None, "duplicate", reason)
                continue
            if one.tool is not None:
                holders[one.spec.name] = each.path
            yield one

    def _found(self, each: Candidate) -> Found:
        if each.problem is not None:
            return Found(_bare(each), None, "broken", each.problem)
        if not each.place.is_active:
            reason = f"its skill `{each.place.skill}` is not active: `haft skills activate {each.place.skill}`"
            return Found(_bare(each), None, "inactive", reason)
        export = self._export(each)
        if export is not None and self._origins is not None:
            from haft.sources.amp_toolbox.exports import as_the_tool

            return as_the_tool(each, export, self._origins)
        known = self._answers.of(each)
        if known.get("identity") != each.identity:
            is_open = each.place.provenance in self._unasked
            return Found(_bare(each, known), None, "broken", UNWALLED if is_open else NOT_ASKED)
        if "problem" in known:
            return Found(_bare(each, known), None, "broken", known["problem"])
        return as_found(known, each, self._separators)

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


def _bare(each: Candidate, known: Mapping[str, Any] = MappingProxyType({})) -> ToolSpec:
    """What can be said of a file that has not spoken: its name is what it was called when it last did."""
    place = each.place
    meta = {"skill": place.skill, "skillFolder": place.folder} if place.skill is not None else {}
    return ToolSpec(
        name=_said(known) or file_name(each.path),
        kind="amp-toolbox",
        description="",
        input_schema={"type": "object", "properties": {}},
        provenance=each.place.provenance,
        origin=each.path,
        hosting="per-call",
        meta=meta,
    )


def _said(known: Mapping[str, Any]) -> ToolName | None:
    """The name of the tool that a file last said it is."""
    said = known.get("name", known.get("was"))
    return registered_name(said) if isinstance(said, str) else None
