"""One command of a program as a tool. haft starts the program directly, without a wrapper executable."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from haft.contracts import (
    Answer,
    Effects,
    Failure,
    InvalidArguments,
    Provenance,
    ToolContext,
    ToolName,
    ToolSpec,
)
from haft.contracts import Command as Started
from haft.sources.cli.arguments import Refused, words_of
from haft.sources.cli.schema import schema_of
from haft.sources.cli.spec import Command


@dataclass(frozen=True, slots=True)
class CommandTool:
    """One command as a tool: it runs the program, found in PATH, with the arguments of the call as words."""

    spec: ToolSpec
    command: Command

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Refuse arguments that cannot be passed, before a person is asked to approve the call."""
        self._words(arguments)
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        words, stdin = self._words(arguments)
        program = self.command["program"]
        # Without this, Python would write the bytecode of a module into the workspace: an unwanted change.
        quiet = {"PYTHONDONTWRITEBYTECODE": "1"} if program[1:2] == ["-m"] else {}
        command = Started(
            [*program, *words],
            cwd=context.workspace.locate(context.cwd),
            env={**quiet, **context.env},
            stdin=stdin,
        )
        end = await context.launcher.run(command, context)
        if end.code == 0:
            return Answer(exit_code=0)
        how = f"was ended by signal {end.signal}" if end.signal is not None else f"exited {end.code}"
        return Answer(exit_code=end.code, failure=Failure("tool-failed", f"`{self.spec.name}` {how}"))

    def _words(self, arguments: dict[str, Any]) -> tuple[list[str], bytes]:
        try:
            return words_of(self.command, arguments)
        except Refused as error:
            raise InvalidArguments(self.spec.name, [str(error)]) from error


def spec_of(command: Command, origin: str, provenance: Provenance, files: tuple[str, ...] = ()) -> ToolSpec:
    """The spec of a command."""
    return ToolSpec(
        name=ToolName(command["name"]),
        kind="cli",
        description=command["description"],
        input_schema=schema_of(command),
        effects=Effects(**command["effects"]) if provenance != "workspace" else Effects(),
        provenance=provenance,
        origin=origin,
        digest=hashlib.sha256(json.dumps(command, sort_keys=True).encode()).hexdigest(),
        hosting="per-call",
        preprocesses=True,
        files=files,
        meta={"cli": {"program": list(command["program"]), "words": list(command["words"])}},
    )
