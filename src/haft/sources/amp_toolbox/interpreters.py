"""Finds out whether the interpreter of a script exists on this machine."""

from __future__ import annotations

import os
import re
from typing import Final

from haft.sources.description_cache import is_found

_INTERPRETER: Final = re.compile(rb"#!\s*(\S+)(?:\s+(?:-S\s+)?(\S+))?")


def missing_interpreter(path: str) -> str | None:
    """The interpreter of a script, if the interpreter does not exist on this machine; otherwise None."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = _INTERPRETER.match(file.readline(1024).rstrip(b"\n"))
    except OSError:
        return None
    if found is None:
        return None
    program, named = (os.fsdecode(word or b"") for word in found.groups())
    if os.path.basename(program) == "env" and os.path.exists(program):
        return named if named and "=" not in named and not is_found(named) else None
    return None if os.path.exists(program) else program
