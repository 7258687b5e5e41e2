"""Gets the commands of a Python program by running `introspector` in a process in the sandbox."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import Any, Literal

from haft.contracts import BadUsage, Launcher
from haft.contracts import Command as Started
from haft.files import editable_sources, steps_of
from haft.sources.brief_run import run_briefly, stderr_summary
from haft.sources.cli.introspector import MARK, MOST_FILES
from haft.sources.cli.spec import Command, commands_of

Form = Literal["click", "argparse"]

SECONDS = 30.0
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "introspector.py")


@dataclass(frozen=True, slots=True)
class Introspection:
    """The commands of a program, and the files that define them."""

    commands: list[Command]
    files: tuple[str, ...]
    """The absolute paths of the files that the program loaded: its commands change only if one of these files
    changes."""


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
    """The commands of `MODULE:OBJECT`. `python` is the interpreter that has the module. `program` is the command that a
    tool will call: by default the installed script of the object, or `python -m MODULE` if there is no such script.
    With `here`, the module may lie in the current directory."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise BadUsage(
            f"`{reference}` names no object of a module", hint="write `MODULE:OBJECT`, such as `app.cli:main`"
        )
    python = python or sys.executable
    argv = [python, "-B", PROGRAM, form, reference, *(["here"] if here else [])]
    output = await run_briefly(Started(argv, readable=tuple(_readable(python))), launcher, seconds=SECONDS)
    if output.start_failure is not None:
        raise BadUsage(f"the commands of `{reference}` could not be read: {output.start_failure}")
    lines = output.stdout.decode("utf-8", "replace").splitlines()
    answer = next((line.removeprefix(MARK) for line in reversed(lines) if line.startswith(MARK)), None)
    if answer is None:
        late = f"it did not answer within {SECONDS:g} s" if output.timed_out else ""
        long = "it printed too much" if output.is_too_long else ""
        why = late or long or stderr_summary(output.stderr) or "it printed nothing"
        raise BadUsage(f"the commands of `{reference}` could not be read: {why}")
    try:
        facts: dict[str, Any] = json.loads(answer)
        problem, hint, script, commands = (facts.get(key) for key in ("problem", "hint", "script", "commands"))
    except (ValueError, AttributeError, RecursionError) as error:
        raise BadUsage(f"the commands of `{reference}` could not be read: its answer is not valid") from error
    if problem is not None:
        if module.endswith(".py") and os.path.exists(module):
            hint = f"did you mean `{module.removesuffix('.py').replace(os.sep, '.')}:{name}`?"
        raise BadUsage(f"`{reference}` cannot be wrapped: {problem}", hint=str(hint) if hint else None)
    if program is None:
        is_name = isinstance(script, str) and bool(script) and os.sep not in script and "\0" not in script
        program = [str(script)] if is_name else [python, "-m", module]
    if not isinstance(commands, list) or not all(isinstance(one, dict) for one in commands):
        raise BadUsage(f"the commands of `{reference}` could not be read: its answer is not valid")
    if len(commands) == 1 and commands[0].get("words") == [] and prefix is None:
        # The program has no subcommands.
        prefix, commands[0]["name"] = "", os.path.basename(program[-1])
    listed = commands_of({"program": program, "commands": commands}, reference, prefix=prefix)
    files = facts.get("files")
    paths = [one for one in files if _is_path(one)] if isinstance(files, list) else []
    return Introspection(listed, tuple(paths[:MOST_FILES]))


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and os.path.isabs(value) and "\0" not in value and value.isprintable()


def _readable(python: str) -> list[str]:
    found = shutil.which(python) or python
    prefix = os.path.dirname(os.path.dirname(found))
    steps = [os.path.dirname(step) for step in steps_of(found)]
    return [PROGRAM, prefix, sys.prefix, sys.base_prefix, *steps, *editable_sources(prefix)]
