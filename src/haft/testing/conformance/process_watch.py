"""Notices whether code starts processes."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final

_STARTS: Final = frozenset(
    ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system", "pty.spawn")
)
_watching = threading.local()
_installed = False


@contextlib.contextmanager
def process_starts() -> Iterator[list[str]]:
    """A list, to which each start of a process by this thread is added."""
    global _installed
    if not _installed:
        sys.addaudithook(_note)
        _installed = True
    before, found = getattr(_watching, "found", None), list[str]()
    _watching.found = found
    try:
        yield found
    finally:
        _watching.found = before


def _note(event: str, args: tuple[Any, ...]) -> None:
    if event in _STARTS and (found := getattr(_watching, "found", None)) is not None:
        found.append(f"{event} {args[0] if args else ''}".strip())
