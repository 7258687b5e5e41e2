"""Asks a Python program what its commands are, in a process in the sandbox."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import Any, Literal

from haft.contracts import BadUsage, Launcher
from haft.contracts import Command as Started
from haft.files import installed_by_name, steps_of
from haft.sources.brief_run import run_briefly, stderr_summary
from haft.sources.cli.introspector import MARK, MOST_FILES
from haft.sources.cli.spec import Command, commands_of

Form = Literal["click", "argparse"]

SECONDS = 30.0
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "introspector.py")


@dataclass(frozen=True, slots=True)
class Introspection:
    """What a program said of itself."""

    commands: list[Command]
    files: tuple[str, ...]
    """What it is made of, as far as it was loaded, absolute: it says something else only when these change."""


async def introspect_commands(
    form: Form,
    reference: str,
    launcher: Launcher,
    *,
    python: str | None = None,
    program: list[str] | None = None,
    prefix: str | None = None,
    here: bool = False,
) -> Introspection:
    """The commands of `MODULE:OBJECT`. `python` is the interpreter that has the module, `program` what is run to call
    it: by default the script that is installed for it, else the module itself. With `here`, the module may lie in the
    directory that this is asked in."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise BadUsage(
            f"`{reference}` names no object of a module", hint="write `MODULE:OBJECT`, such as `app.cli:main`"
        )
    python = python or sys.executable
    argv = [python, "-B", PROGRAM, form, reference, *(["here"] if here else [])]
    output = await run_briefly(Started(argv, readable=tuple(_readable(python))), launcher, seconds=SECONDS)
    if output.start_failure is not None:
        raise BadUsage(f"`{reference}` could not be asked: {output.start_failure}")
    lines = output.stdout.decode("utf-8", "replace").splitlines()
    answer = next((line.removeprefix(MARK) for line in reversed(lines) if line.startswith(MARK)), None)
    if answer is None:
        late = f"it did not answer within {SECONDS:g} s" if output.timed_out else ""
        flood = "it said more than anyone reads" if output.is_too_long else ""
        raise BadUsage(
            f"`{reference}` could not be asked: {late or flood or stderr_summary(output.stderr) or 'it said nothing'}"
        )
    try:
        told: dict[str, Any] = json.loads(answer)
        problem, hint, script, commands = (told.get(key) for key in ("problem", "hint", "script", "commands"))
    except (ValueError, AttributeError, RecursionError) as error:
        raise BadUsage(f"`{reference}` could not be asked: it said what cannot be understood") from error
    if problem is not None:
        if module.endswith(".py") and os.path.exists(module):
            hint = f"did you mean `{module.removesuffix('.py').replace(os.sep, '.')}:{name}`?"
        raise BadUsage(f"`{reference}` cannot be wrapped: {problem}", hint=str(hint) if hint else None)
    if program is None:
        is_name = isinstance(script, str) and bool(script) and os.sep not in script and "\0" not in script
        program = [str(script)] if is_name else [python, "-m", module]
    if not isinstance(commands, list) or not all(isinstance(one, dict) for one in commands):
        raise BadUsage(f"`{reference}` could not be asked: it said what cannot be understood")
    if len(commands) == 1 and commands[0].get("words") == [] and prefix is None:
        # The program is the command.
        prefix, commands[0]["name"] = "", os.path.basename(program[-1])
    listed = commands_of({"program": program, "commands": commands}, reference, prefix=prefix)
    files = told.get("files")
    paths = [one for one in files if _is_path(one)] if isinstance(files, list) else []
    return Introspection(listed, tuple(paths[:MOST_FILES]))


def _is_path(told: Any) -> bool:
    return isinstance(told, str) and os.path.isabs(told) and "\0" not in told and told.isprintable()


def _readable(python: str) -> list[str]:
    found = shutil.which(python) or python
    prefix = os.path.dirname(os.path.dirname(found))
    steps = [os.path.dirname(step) for step in steps_of(found)]
    return [PROGRAM, prefix, sys.prefix, sys.base_prefix, *steps, *installed_by_name(prefix)]
