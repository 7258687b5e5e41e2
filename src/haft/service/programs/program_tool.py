"""The tool `program`: runs one whole program. It is not in the catalogue, so that only a person can start it, with
`haft run`."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from haft.changes import Owner, Transactions
from haft.contracts import (
    UNTRACKED,
    Answer,
    Command,
    EndedChild,
    Exit,
    Failure,
    Mount,
    Stream,
    ToolContext,
    ToolName,
    ToolSpec,
    new_run_id,
)
from haft.service.programs.carry_back import CarryBack
from haft.service.programs.private_home import PrivateHome
from haft.service.programs.program import Program
from haft.service.programs.run_place import outer_socket, run_place

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

_CARRYING: Final = threading.Lock()
"""Held while an agent's files are carried back: several agents that end at the same time write to the same files, and
to the same change sets of the home directory."""


class ProgramTool:
    """The tool for one run of one program."""

    spec = SPEC

    def __init__(
        self,
        program: Program,
        executable: str,
        readable: Sequence[str],
        home: str,
        person_home: str,
        open_transactions: Callable[[str], AbstractContextManager[Transactions]],
    ) -> None:
        """`home` is the state home, `person_home` the person's home directory. `open_transactions` opens the change
        sets of a directory."""
        self._program = program
        self._executable = executable
        self._readable = readable
        self._home = home
        self._person_home = person_home
        self._open_transactions = open_transactions

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        async with run_place(self._home, context.run) as place:
            private = None
            mounts = self._program.mounts
            if self._program.agent is not None:
                private = PrivateHome(place, self._person_home, self._program.agent)
                mounts = (*mounts, *await asyncio.to_thread(private.make))
            try:
                async with outer_socket(place, self._home, context.run) as mount:
                    return await self._run(context, (*mounts, mount))
            finally:
                if private is not None:
                    await asyncio.shield(asyncio.to_thread(self._carry_back, private, context))

    def _carry_back(self, private: PrivateHome, context: ToolContext) -> None:
        owner = Owner(new_run_id(), context.who, context.thread, context.run)
        with _CARRYING:
            carried = CarryBack(private, owner, self._open_transactions).run()
        if self._program.on_carried is not None:
            self._program.on_carried(carried)

    async def _run(self, context: ToolContext, mounts: Sequence[Mount]) -> Answer:
        program = self._program
        command = Command(
            [self._executable, *program.argv[1:]],
            cwd=context.workspace.locate(program.cwd),
            env={**program.env, "HAFT_HOME": os.path.realpath(self._home)},
            readable=self._readable,
            mounts=mounts,
            terminal=program.terminal,
            stdin=b"" if program.terminal is not None else program.stdin,
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
