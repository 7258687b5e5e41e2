"""How an executable is started, for either action: by which words, in which variables, seeing which files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from haft.files import SHARED, holds_a_home, interpreter_of, package_of

ENVIRONMENT: Final = {"AGENT": "amp", "CLAUDECODE": "1"}
"""What both actions get, besides the action."""
_PROGRAMS: Final = (b"#!", b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe")
"""How files begin that a kernel can start."""


def started_as(path: str) -> list[str]:
    """The words that start an executable. A script that does not say who runs it is run by sh, as shells do."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            head = file.read(256)
    except OSError:
        return [path]
    is_text = bool(head) and not head.startswith(_PROGRAMS) and b"\0" not in head
    return ["/bin/sh", path] if is_text else [path]


def own_places(path: str, folder: str | None = None, *, is_workspaces: bool = False) -> Iterator[str]:
    """What an executable must be able to read wherever it lies: itself and its neighbours, the package or the `folder`
    that it is part of, and the Python of the package's environment. One of the workspace sees that, and no package
    around it: a clone does not choose what else is seen. A whole home directory is no neighbourhood."""
    packages = []
    for file in dict.fromkeys((path, os.path.realpath(path))):
        around = os.path.dirname(file)
        real = os.path.realpath(around)
        yield file if holds_a_home(real) or real in SHARED else around
        if not is_workspaces and (package := package_of(file)) is not None:
            packages.append(package)
    for package in dict.fromkeys(packages):
        yield package
        yield from interpreter_of(os.path.join(package, ".venv"), os.environ)
    if folder is not None and not holds_a_home(os.path.realpath(folder)):
        yield folder
