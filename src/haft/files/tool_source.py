"""The source texts of a tool: its files, and the command lines in its arguments."""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final

from haft.contracts import ToolSpec

MAX_FILES: Final = 40
LONGEST: Final = 256_000


def texts_of(spec: ToolSpec, arguments: Mapping[str, object] | None = None) -> Iterator[str]:
    """The source texts of a tool, command lines first. Binary files are left out, and long files are cut."""
    yield from (value for name in spec.commands if isinstance(value := (arguments or {}).get(name), str))
    for path in spec.files[:MAX_FILES]:
        try:
            found = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield _text_at(path, found.st_mtime_ns, found.st_size, found.st_ino)


@functools.lru_cache(maxsize=64)
def _text_at(path: str, _changed: int, _size: int, _inode: int) -> str:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            data = file.read(LONGEST)
    except OSError:
        return ""
    return "" if b"\0" in data else data.decode("utf-8", "replace")
