"""Finds the files that a command line runs as code: programs in the workspace, scripts that it gives to interpreters,
the files that these load, and the files in which a few build tools keep the commands that they run.

Not found: files that a program runs although neither the line nor any code names them, such as the tests that a test
runner collects.
"""

from __future__ import annotations

import os
from typing import Final

from haft.policy.approval.loaded_code.closure import files_of, loaded_by
from haft.policy.approval.loaded_code.reference import Script
from haft.policy.simple_commands import split_commands

_MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
_PACKAGE: Final = ("package.json",)
_COMMANDS_OF: Final = {
    **dict.fromkeys(("make", "gmake"), _MAKEFILES),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _PACKAGE),
    "just": ("justfile", "Justfile", ".justfile"),
    "nox": ("noxfile.py",),
}
"""Programs that run the commands in a file of their directory, and the names of this file."""


def files_run_by(line: str, here: str) -> tuple[str, ...]:
    """The absolute paths of the files that a command line in the directory `here` runs. Accepts any text."""
    from haft.policy.approval.loaded_code import shell

    itself = os.path.join(here, "-")
    found = shell.references_of(Script(itself, itself, itself, itself, line), here)
    files = dict.fromkeys(path for reference in found.references for path in files_of(reference))
    commands = [[word.literal or "" for word in command.words] for command in split_commands(line).commands]
    # The line may change the directory (`cd docs && make`), or tell the program to (`make -C docs`).
    named = [os.path.join(here, word.rpartition("=")[2]) for words in commands for word in words]
    for program, *_ in filter(None, commands):
        names = _COMMANDS_OF.get(os.path.basename(program), ())
        directories = dict.fromkeys((here, *filter(os.path.isdir, named))) if names else ()
        files.update(dict.fromkeys(os.path.join(each, name) for each in directories for name in names))
    return (*files, *loaded_by([*files], here).files)
