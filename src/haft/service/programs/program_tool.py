"""The tool `program`: runs one whole program. It is not in the catalogue, so that only a person can start it, with
`haft run`."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any, Final

from haft.contracts import (
    UNTRACKED,
    Answer,
    Command,
    EndedChild,
    Exit,
    Failure,
    Stream,
    ToolContext,
    ToolName,
    ToolSpec,
)
from haft.service.programs.program import Program

SPEC: Final = ToolSpec(
    ToolName("program"),
    "builtin",
    "Run a whole program in one confined run.",
    {
        "type": "object",
        "properties": {"argv": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
        "required": ["argv"],
        "additionalProperties": False,
    },
    provenance="builtin",
    origin=__name__,
    hosting="per-call",
    meta={"noDeadline": True},
)


class ProgramTool:
    """The tool for one run of one program."""

    spec = SPEC

    def __init__(self, program: Program, executable: str, readable: Sequence[str]) -> None:
        self._program = program
        self._executable = executable
        self._readable = readable

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        program = self._program
        command = Command(
            [self._executable, *program.argv[1:]],
            cwd=context.workspace.locate(program.cwd),
            env=dict(program.env),
            readable=self._readable,
            mounts=program.mounts,
            terminal=program.terminal,
            input=None if program.terminal is not None else program.input,
        )
        end = await context.launcher.run(command, _Output(program, context))
        failure = None if end.code == 0 else Failure("tool-failed", _how_it_ended(program.argv[0], end))
        return Answer(exit_code=end.code, failure=failure, changes=UNTRACKED)


class _Output:
    """Passes the output of a program to the person, and keeps it with the run."""

    def __init__(self, program: Program, context: ToolContext) -> None:
        self._program = program
        self._context = context

    def output(self, stream: Stream, data: bytes) -> None:
        if self._program.on_output is not None:
            self._program.on_output(stream, data)
        self._context.output(stream, data)

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self._context.processes_ended(children)


def _how_it_ended(name: str, end: Exit) -> str:
    if end.signal is None:
        return f"`{name}` exited {end.code}"
    try:
        said = f" ({signal.Signals(end.signal).name})"
    except ValueError:
        said = ""
    return f"`{name}` was ended by signal {end.signal}{said}"
