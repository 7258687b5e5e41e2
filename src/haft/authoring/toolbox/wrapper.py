"""Writes an executable, the wrapper, for each command of a program. A wrapper needs only Python's standard library.

A wrapper consists of the description of the command as a Python value, and the text of two modules of `sources.cli`,
which import nothing of haft.
"""

from __future__ import annotations

import ast
import os
import pprint
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Final

from haft.authoring.toolbox.executables import IMPORTS, WrittenExecutable, in_a_docstring, place
from haft.sources.cli import Command, with_help

_HEAD: Final = '''#!/usr/bin/env python3
"""{summary}

A toolbox executable: TOOLBOX_ACTION=describe says what it takes, TOOLBOX_ACTION=execute runs
`{line}` with the arguments that stdin brings as JSON. Made by `haft toolbox wrap`.
"""

from __future__ import annotations

{imports}
COMMAND = {command}
'''


def wrap(commands: Sequence[Command], directory: str, *, force: bool = False) -> list[WrittenExecutable]:
    """Write an executable for each command, all of them or none."""
    return place({command["name"]: wrapper(command) for command in commands}, directory, force=force)


def wrapper(command: Command) -> str:
    """The text of the executable for a command."""
    description = {key: value for key, value in with_help(command).items() if key != "effects"}
    first = command["description"].strip().split("\n", 1)[0]
    summary = in_a_docstring(first) or command["name"]
    line = in_a_docstring(" ".join([*command["program"], *command["words"]]))
    shown = pprint.pformat(description, width=118, sort_dicts=False)
    head = _HEAD.format(summary=summary, line=line, imports=IMPORTS, command=shown)
    return "\n\n".join([head, *_parts("arguments.py"), *_parts("wrapper_main.py")]) + "\n"


def _parts(module: str) -> Iterator[str]:
    """The source text of the definitions in a module, without its imports."""
    text = resources.files("haft.sources.cli").joinpath(module).read_text(encoding="utf-8")
    for number, node in enumerate(ast.parse(text).body):
        is_docstring = number == 0 and isinstance(node, ast.Expr)
        is_command = isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "COMMAND"
        if not is_docstring and not is_command and not isinstance(node, ast.Import | ast.ImportFrom):
            found = ast.get_source_segment(text, node)
            assert found is not None
            yield found if isinstance(node, ast.Assign) else f"\n{found}"


def pinned(commands: Sequence[Command], path: str) -> list[Command]:
    """The commands with `path` as the full path of their program, so that the program is not searched on PATH."""
    return [{**command, "program": [os.path.abspath(path), *command["program"][1:]]} for command in commands]
