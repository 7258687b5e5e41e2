"""`shell`: runs one command line with bash.

A command line can do anything, so this tool declares neither effects nor changes. The pipeline and the launcher handle
its deadline, its output and the end of its processes; this module only says which command to run and how the command
ended.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from haft.builtin.definition import PATH, Builtin
from haft.contracts import UNTRACKED, Answer, Command, Exit, Failure, InvalidArguments, ToolContext

_LONGEST_COMMAND: Final = 128 * 1024 - 1
"""The longest single argument, in bytes, that Linux accepts when it starts a program."""


class Shell(Builtin):
    name = "shell"
    description = (
        "Run a command line with bash.\n"
        "Pipes, lists and redirections work. Each call is a new shell: directory changes and variables do not last to "
        "the next one; use cwd and env. There is no terminal and no input, so nothing interactive can be used. "
        "Programs still running when the command ends are ended with it. The output is stdout and stderr as they come; "
        "a non-zero exit is a failure. Prefer read_file, edit_file, search and find_files where they serve."
    )
    properties: ClassVar[dict[str, Any]] = {
        "command": {"type": "string", "minLength": 1, "description": "The command line, in bash's language."},
        "cwd": {**PATH, "description": "Directory to run in, relative to the workspace. Default: the workspace."},
        "env": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Environment variables to set for this command.",
        },
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Seconds after which the command is ended. Default: the configured limit.",
        },
    }
    required = ("command",)
    hosting = "per-call"
    commands = ("command",)
    paths = ("cwd",)
    meta: ClassVar[dict[str, Any]] = {"timeoutArgument": "timeout"}

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        command: str = arguments["command"]
        env = {**context.env, **arguments.get("env", {})}
        problems = [*_command_problems(command), *_env_problems(env)]
        if problems:
            raise InvalidArguments(self.name, problems)
        cwd: str = arguments.get("cwd", context.cwd)
        os.close(context.workspace.open_directory(cwd))  # Raises if it is not a directory in the workspace.
        # `--` ends bash's own options, because a command line may begin with a dash.
        argv = ["bash", "--noprofile", "--norc", "-c", "--", command]
        end = await context.launcher.run(Command(argv, cwd=context.workspace.locate(cwd), env=env), context)
        failure = None if end.code == 0 else Failure("tool-failed", _how_it_ended(end))
        return Answer(exit_code=end.code, failure=failure, changes=UNTRACKED)


def _command_problems(command: str) -> list[str]:
    if "\0" in command:
        return ["command contains a NUL character"]
    try:
        length = len(os.fsencode(command))
    except UnicodeEncodeError:
        return ["command is not valid Unicode: it contains a lone surrogate"]
    if length > _LONGEST_COMMAND:
        return [f"command has {length:_} bytes, more than can be started: write it to a file and run that"]
    return []


def _env_problems(env: Mapping[str, str]) -> list[str]:
    problems = []
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            problems.append(f"env: {name!r} cannot be the name of a variable")
        elif "\0" in value:
            problems.append(f"env: the value of {name!r} contains a NUL character")
    return problems


def _how_it_ended(end: Exit) -> str:
    if end.signal is not None:
        return f"`bash` was ended by signal {end.signal}{_signal_name(end.signal)}"
    if 128 < end.code < 160:  # With such an exit code, bash reports that a signal ended its last command.
        return (
            f"`bash` exited {end.code}: its command was ended by signal {end.code - 128}{_signal_name(end.code - 128)}"
        )
    return f"`bash` exited {end.code}"


def _signal_name(number: int) -> str:
    import signal

    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""
