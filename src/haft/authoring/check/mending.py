"""Mending what is safe to mend: bits of modes, line ends and a byte order mark. Nothing else of a file changes.

A file is reached through the directory that it was found in, and never through a link that leads out of there. Content
is replaced in one step, or not at all.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from haft.authoring.check.files import BOM
from haft.authoring.check.findings import Finding
from haft.contracts import HaftError, PathEscapes
from haft.files import Root, shown

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Mended:
    """What was done, and what could not be."""

    done: list[tuple[Finding, str]] = field(default_factory=list)
    """The finding, and what was done about it."""
    refused: list[tuple[Finding, str]] = field(default_factory=list)
    """The finding, and why nothing could be done."""


def mend(findings: Iterable[Finding]) -> Mended:
    """Mend what is marked as fixable."""
    mended = Mended()
    # A replaced file keeps its mode: content first, so that a mode is changed on what stays.
    for finding in sorted(findings, key=lambda one: one.code not in ("bom-shebang", "crlf-shebang")):
        if not finding.fixable or finding.path is None:
            continue
        try:
            mended.done.append((finding, _mend(finding.code, finding.path)))
        except PathEscapes:
            mended.refused.append((finding, "it is a link out of its directory: mend what it leads to"))
        except HaftError as error:
            mended.refused.append((finding, error.message))
        except OSError as error:
            mended.refused.append((finding, error.strerror or str(error)))
    return mended


def _mend(code: str, path: str) -> str:
    if code == "world-writable" and os.path.isdir(path):
        return _close_directory(path)
    root, name = Root(os.path.dirname(os.path.abspath(path))), os.path.basename(path)
    match code:
        case "not-executable":
            # Whoever may read it may run it.
            return _change_mode(root, name, lambda mode: mode | (mode & 0o444) >> 2)
        case "world-writable":
            return _change_mode(root, name, lambda mode: mode & ~stat.S_IWOTH)
        case "bom-shebang":
            _change_content(root, name, lambda content: content.removeprefix(BOM))
            return "took the byte order mark away"
        case "crlf-shebang":
            _change_content(root, name, lambda content: content.replace(b"\r\n", b"\n"))
            return "made CRLF plain line ends"
        case _:
            raise AssertionError(code)


def _change_mode(root: Root, name: str, change: Callable[[int], int]) -> str:
    with root.open(name) as file:
        before = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        os.fchmod(file.fileno(), change(before))
    return f"mode {before:04o} is now {change(before):04o}"


def _close_directory(path: str) -> str:
    descriptor = os.open(path, _DIRECTORY)
    try:
        before = stat.S_IMODE(os.fstat(descriptor).st_mode)
        os.fchmod(descriptor, before & ~stat.S_IWOTH)
    finally:
        os.close(descriptor)
    return f"mode {before:04o} of {shown(path)} is now {before & ~stat.S_IWOTH:04o}"


def _change_content(root: Root, name: str, change: Callable[[bytes], bytes]) -> None:
    identity = root.identity(name)
    with root.open(name) as file:
        content = file.read()
    root.replace(name, change(content), expect=identity)
