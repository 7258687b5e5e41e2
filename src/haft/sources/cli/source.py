"""The source of command-line tools in one workspace. A spec file or the program itself describes them.

A spec file is read again when it changes. A program is run once, in the sandbox; its answer is kept until the program's
configuration or one of its files changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from haft.contracts import (
    Definitions,
    DescribeLauncher,
    DiscoveredTool,
    HaftError,
    Launcher,
    Provenance,
    ToolSpec,
    clean_tool_name,
)
from haft.sources.cli.spec import Command
from haft.sources.cli.spec_file import read_spec_file
from haft.sources.cli.tool import CommandTool, spec_of
from haft.sources.description_cache import NOT_DESCRIBED
from haft.sources.identity import identity_at
from haft.sources.port import ProgressCallback, ToolSource

GROUP: Final = "cli:"


@dataclass(frozen=True, slots=True)
class CommandLine:
    """One configured command line."""

    name: str
    source: str
    """The file that configures this command line."""
    provenance: Provenance
    spec: str | None = None
    """The path of the spec file; None if the program describes itself."""
    form: str | None = None
    """`click` or `argparse`; None if a spec file describes the program."""
    reference: str = ""
    python: str | None = None
    program: tuple[str, ...] = ()
    prefix: str | None = None
    here: bool = False
    """Whether the program's module may lie in the workspace. False if the user's own configuration names the module,
    which then means the installed module."""
    problem: str | None = None

    @property
    def identity(self) -> str:
        """A text that changes when the spec file must be read again or the program must be described again."""
        if self.spec is not None:
            return identity_at(self.spec) or "gone"
        return f"{self.form} {self.reference} {self.python} {self.program} {self.prefix}"


class CommandLines(ToolSource):
    """The source of configured command lines."""

    name = "cli"

    def __init__(self, lines: Sequence[CommandLine], definitions: Definitions, workspace: str) -> None:
        self._lines = list(lines)
        self._definitions = definitions
        self._group = f"{GROUP}{workspace}"
        self._known: dict[str, Any] | None = None
        self._problems: dict[str, tuple[str, str]] = {}
        self._seen: dict[str, str] = {}

    def find(self) -> Iterable[DiscoveredTool]:
        self._look()
        return list(self.found())

    @property
    def is_incomplete(self) -> bool:
        return bool(self._unknown())

    async def refresh(
        self, launcher: DescribeLauncher, progress: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool] | None:
        has_changed = self._look()
        if self._unknown():
            await self._ask(launcher)
            has_changed = True
        return list(self.found()) if has_changed else None

    def places(self) -> Iterable[str]:
        for line in self._lines:
            if line.spec is not None:
                yield line.spec
            elif line.form is not None:
                yield from (self._kept(line) or {}).get("files", ())

    def cure(self, spec: ToolSpec) -> str:
        return f"it is described by {spec.origin}"

    def _look(self) -> bool:
        """Look at the files again. Returns whether anything changed."""
        before, self._seen = self._seen, {line.name: self._identity(line) for line in self._lines}
        return self._seen != before

    def is_current(self, spec: ToolSpec) -> bool:
        name = spec.meta["cli"].get("line")
        line = next((one for one in self._lines if one.name == name), None)
        return line is None or self._seen.get(line.name) == self._identity(line)

    def _unknown(self) -> list[CommandLine]:
        """The command lines whose program must be described."""
        programs = [line for line in self._lines if line.form is not None and line.problem is None]
        return [line for line in programs if self._kept(line) is None and self._why_not(line) is None]

    async def _ask(self, launcher: Launcher) -> None:
        """Describe the programs that are not described yet, and keep the result."""
        from haft.sources.cli.introspect import introspect_commands

        wanted = self._unknown()
        for line in wanted:
            try:
                result = await introspect_commands(
                    "argparse" if line.form == "argparse" else "click",
                    line.reference,
                    launcher,
                    python=line.python,
                    program=list(line.program) or None,
                    prefix=line.prefix,
                    here=line.here,
                )
                files = {path: identity_at(path) for path in result.files}
                self._keep(line, {"commands": result.commands, "files": files})
            except HaftError as error:
                # Not saved, so that the next process tries again: the cause may be fixed by then.
                self._problems[line.name] = line.identity, error.message

    def found(self) -> Iterator[DiscoveredTool]:
        """Every tool of every command line; for a command line without tools, the reason."""
        for line in self._lines:
            try:
                commands = self._commands(line)
            except HaftError as error:
                yield DiscoveredTool(_bare(line), None, "broken", error.message)
                continue
            if isinstance(commands, str):
                yield DiscoveredTool(_bare(line), None, "broken", commands)
                continue
            for command in commands:
                files = (line.spec,) if line.spec is not None else ()
                spec = spec_of(command, line.spec or line.reference, line.provenance, files)
                spec.meta["cli"]["line"] = line.name
                yield DiscoveredTool(spec, CommandTool(spec, command))

    def _commands(self, line: CommandLine) -> list[Command] | str:
        if line.problem is not None:
            return line.problem
        if line.spec is not None:
            commands = read_spec_file(line.spec, prefix=line.prefix)
            if not line.program:
                return commands
            return [{**command, "program": list(line.program)} for command in commands]
        known = self._kept(line)
        if known is None:
            return self._why_not(line) or NOT_DESCRIBED
        found: list[Command] = known["commands"]
        return found

    def _why_not(self, line: CommandLine) -> str | None:
        """Why a program could not be described; None if haft has not tried yet, or if the program's configuration has
        changed since."""
        identity, problem = self._problems.get(line.name, ("", ""))
        return problem if identity == line.identity else None

    def _kept(self, line: CommandLine) -> dict[str, Any] | None:
        if self._known is None:
            self._known = self._definitions.load(self._group)
        known = self._known.get(line.name)
        if not isinstance(known, dict) or not isinstance(known.get("commands"), list):
            return None
        is_same = all(identity_at(path) == identity for path, identity in known.get("files", {}).items())
        return known if known.get("identity") == line.identity and is_same else None

    def _identity(self, line: CommandLine) -> str:
        """A text that changes when the command line changes, or when the kept description is no longer valid."""
        return line.identity if line.form is None or self._kept(line) is not None else f"{line.identity} unknown"

    def _keep(self, line: CommandLine, known: dict[str, Any]) -> None:
        names = {one.name for one in self._lines}
        kept = {name: one for name, one in (self._known or {}).items() if name in names}
        self._known = {**kept, line.name: {"identity": line.identity, **known}}
        self._definitions.save(self._group, self._known)


def _bare(line: CommandLine) -> ToolSpec:
    return ToolSpec(
        name=clean_tool_name(line.name),
        kind="cli",
        description="",
        input_schema={"type": "object", "properties": {}},
        provenance=line.provenance,
        origin=line.spec or line.reference or line.source,
        hosting="per-call",
        meta={"cli": {"line": line.name}},
    )
