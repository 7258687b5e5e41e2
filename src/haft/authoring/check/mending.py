"""Mending what is safe to mend: bits of modes, line ends and a byte order mark. Nothing else of a file changes.

A file is reached through the directory that it was found in, and never through a link that leads out of there. What
lies in the workspace is reached from the workspace on: nothing outside is changed, whichever directory is a link.
Content is replaced in one step, or not at all, and only where all of it is text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from haft.contracts import BadUsage, HaftError, PathEscapes
from haft.files import Root, shown
from haft.sources.checks import BOM, MOST_READ, Finding, is_all_text
from haft.sources.skills import lies_in


@dataclass(slots=True)
class Mended:
    """What was done, and what could not be."""

    done: list[tuple[Finding, str]] = field(default_factory=list)
    """The finding, and what was done about it."""
    refused: list[tuple[Finding, str]] = field(default_factory=list)
    """The finding, and why nothing could be done."""


def mend(findings: Iterable[Finding], workspace: str | None = None) -> Mended:
    """Mend what is marked as fixable. What is named by a path in the workspace must really lie there."""
    mended = Mended()
    # A replaced file keeps its mode: content first, so that a mode is changed on what stays.
    for finding in sorted(findings, key=lambda one: one.code not in ("bom-shebang", "crlf-shebang")):
        if not finding.fixable or finding.path is None:
            continue
        try:
            mended.done.append((finding, _mend(finding.code, *_place(finding.path, workspace))))
        except PathEscapes:
            why = "it is a link out of its directory or of the workspace: mend what it leads to"
            mended.refused.append((finding, why))
        except HaftError as error:
            mended.refused.append((finding, error.message))
        except OSError as error:
            mended.refused.append((finding, error.strerror or str(error)))
    return mended


def _place(path: str, workspace: str | None) -> tuple[Root, str]:
    """From where a file or directory is reached, and by which path."""
    path = os.path.abspath(path)
    for top in () if workspace is None else (os.path.abspath(workspace), os.path.realpath(workspace)):
        if path != top and lies_in(path, top):
            root, inside = Root(top), os.path.relpath(path, top)
            where, above = root.locate(inside), root.locate(os.path.dirname(inside) or ".")
            if above != "." and not lies_in(where, above):
                raise PathEscapes(shown(path), "it is a link out of its directory")
            return root, where
    return Root(os.path.dirname(path)), os.path.basename(path)


def _mend(code: str, root: Root, name: str) -> str:
    if code == "world-writable" and os.path.isdir(os.path.join(root.root, name)):
        return _close_directory(root, name)
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


def _close_directory(root: Root, name: str) -> str:
    if root.locate(name) != name:
        raise PathEscapes(shown(name), "it is a link")
    descriptor = root.open_directory(name)
    try:
        before = stat.S_IMODE(os.fstat(descriptor).st_mode)
        os.fchmod(descriptor, before & ~stat.S_IWOTH)
    finally:
        os.close(descriptor)
    where = shown(os.path.join(root.root, name))
    return f"mode {before:04o} of {where} is now {before & ~stat.S_IWOTH:04o}"


def _change_content(root: Root, name: str, change: Callable[[bytes], bytes]) -> None:
    identity = root.identity(name)
    with root.open(name) as file:
        content = file.read(MOST_READ)
    if not is_all_text(content):
        raise BadUsage("it holds more than text, which line ends may be part of")
    root.replace(name, change(content), expect=identity)
