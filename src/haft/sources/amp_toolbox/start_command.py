"""How an executable is started, for both actions (`describe` and `execute`): its argv, its variables and the files that
it may read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from haft.files import SHARED, holds_a_home, interpreter_of, package_of

ENVIRONMENT: Final = {"AGENT": "amp", "CLAUDECODE": "1"}
"""The variables that both actions get, besides the action itself."""
_PROGRAMS: Final = (b"#!", b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe")
"""The first bytes of files that a kernel can start."""


def start_argv(path: str) -> list[str]:
    """The argv that starts an executable. A script without an interpreter line is run by sh, as shells do."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            head = file.read(256)
    except OSError:
        return [path]
    is_text = bool(head) and not head.startswith(_PROGRAMS) and b"\0" not in head
    return ["/bin/sh", path] if is_text else [path]


def readable_paths(path: str, folder: str | None = None, *, from_workspace: bool = False) -> Iterator[str]:
    """The paths that an executable must be able to read: its own directory, the package or `folder` that it is part of,
    and the Python of the package's environment. The package of a file of the workspace is left out: a cloned repository
    must not choose what else is readable. If the executable's directory contains a home directory, only the file itself
    is readable."""
    packages = []
    for file in dict.fromkeys((path, os.path.realpath(path))):
        around = os.path.dirname(file)
        real = os.path.realpath(around)
        yield file if holds_a_home(real) or real in SHARED else around
        if not from_workspace and (package := package_of(file)) is not None:
            packages.append(package)
    for package in dict.fromkeys(packages):
        yield package
        yield from interpreter_of(os.path.join(package, ".venv"), os.environ)
    if folder is not None and not holds_a_home(os.path.realpath(folder)):
        yield folder
