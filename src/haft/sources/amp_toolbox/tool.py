"""A toolbox executable as a tool: its spec, and how it is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import (
    Answer,
    Command,
    Exit,
    Failure,
    ToolContext,
    ToolFailed,
    ToolName,
    ToolSpec,
    clean_tool_name,
)
from haft.sources.amp_toolbox.discover import Candidate, own_files
from haft.sources.amp_toolbox.start_command import readable_paths, start_argv
from haft.sources.identity import identity_at
from haft.values import dataclass

PREFIX: Final = "tb__"


@dataclass(frozen=True, slots=True)
class ToolboxTool:
    """One toolbox executable that was described."""

    spec: ToolSpec
    path: str
    identity: str
    """The identity of the file when it was described."""
    form: str
    separator: str
    folder: str | None = None
    assigns: bool = False
    """Whether the script may set a variable whose name comes from its input."""

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Refuse arguments that cannot be passed, before a person is asked to approve the call. For a tool that takes
        text, null values are left out."""
        if self.form == "text":
            from haft.sources.amp_toolbox.wire import check_text

            arguments = {name: value for name, value in arguments.items() if value is not None}
            declared = self.spec.input_schema.get("properties", ())
            check_text(self.spec.name, arguments, self.separator, declared, assigns=self.assigns)
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        from haft.sources.amp_toolbox.wire import as_json, as_text, execute_environment

        if identity_at(self.path) != self.identity:
            raise ToolFailed(f"{self.path} has changed since the call started", hint="call it again")
        if self.form == "text":
            stdin = as_text(arguments, self.spec.input_schema.get("properties", ()), self.separator)
        else:
            stdin = as_json(arguments)
        command = Command(
            start_argv(self.path),
            cwd=context.workspace.locate(context.cwd),
            env={**context.env, **execute_environment(context.thread)},
            stdin=stdin,
            readable=tuple(readable_paths(self.path, self.folder, from_workspace=self.spec.provenance == "workspace")),
        )
        end = await context.launcher.run(command, context)
        failure = None if end.code == 0 else Failure("tool-failed", _how_it_ended(self.spec.name, end))
        return Answer(exit_code=end.code, failure=failure)


def spec_of(known: Mapping[str, Any], candidate: Candidate, separator: str) -> ToolSpec:
    """The spec of a tool, from its cache entry."""
    place = candidate.place
    meta: dict[str, Any] = {"toolbox": {"form": known["form"], "describes": known["name"]}}
    if known.get("meta"):
        meta["said"] = known["meta"]  # Under its own key: claims of a tool must not look like statements of haft.
    if known["form"] == "text":
        meta["toolbox"]["separator"] = separator
    if place.skill is not None:
        meta |= {"skill": place.skill, "skillFolder": place.folder}
    return ToolSpec(
        name=registered_name(known["name"]),
        kind="amp-toolbox",
        description=known["description"],
        input_schema=known["inputSchema"],
        provenance=place.provenance,
        origin=candidate.path,
        digest=known["digest"],
        hosting="per-call",
        preprocesses=known["form"] == "text",
        files=tuple(own_files(candidate.path, place.folder)),
        meta=meta,
    )


def registered_name(described: str) -> ToolName:
    """The name under which agents call a tool, from the name in its description."""
    return clean_tool_name(PREFIX + described.strip())


def file_name(path: str) -> ToolName:
    """The name that a file is listed by until it is described."""
    return clean_tool_name(PREFIX + os.path.splitext(os.path.basename(path))[0])


def _how_it_ended(name: str, end: Exit) -> str:
    if end.signal is not None:
        return f"`{name}` was ended by signal {end.signal}"
    return f"`{name}` exited {end.code}"
