"""How an executable is started, for either action: by which words, in which variables, seeing which files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

ENVIRONMENT: Final = {"AGENT": "amp", "CLAUDECODE": "1"}
"""What both actions get, besides the action."""
SHARED: Final = (
    "/tmp", "/var/tmp", "/run", "/dev/shm", "/data", "/media", "/mnt", "/opt", "/srv", "/var",  # noqa: S108
)  # fmt: skip
"""What lies beside a file here is anyone's."""
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


def own_places(path: str, folder: str | None = None) -> Iterator[str]:
    """What an executable must be able to read wherever it lies: itself and its neighbours, or the `folder` that it is
    part of. A whole home directory is no neighbourhood."""
    home = os.path.realpath(os.path.expanduser("~"))
    real = os.path.realpath(path)
    for file in dict.fromkeys((path, real)):
        around = os.path.dirname(file)
        yield file if _holds(os.path.realpath(around), home) or os.path.realpath(around) in SHARED else around
    if folder is not None and not _holds(os.path.realpath(folder), home):
        yield folder


def _holds(directory: str, home: str) -> bool:
    return directory == "/" or home == directory or home.startswith(directory.rstrip("/") + "/")
