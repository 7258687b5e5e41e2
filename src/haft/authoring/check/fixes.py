"""The fixes of `--fix`: mode bits, line ends and a byte order mark. Nothing else of a file changes.

A file is opened through the directory that it was found in, and never through a link out of that directory. A file in
the workspace is opened relative to the workspace, so that nothing outside changes even if a directory is a link. The
content of a file is replaced in one step, and only if the whole content is text.
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
class FixResult:
    """The fixes that were made, and those that could not be made."""

    done: list[tuple[Finding, str]] = field(default_factory=list)
    """Each finding that was fixed, and what was done."""
    refused: list[tuple[Finding, str]] = field(default_factory=list)
    """Each finding that was not fixed, and why."""


def apply_fixes(findings: Iterable[Finding], workspace: str | None = None) -> FixResult:
    """Fix the findings that are marked as fixable. A path in the workspace must not lead out of the workspace."""
    result = FixResult()
    # Fix the content first, then the modes, because a fix of the content replaces the file by a new one.
    for finding in sorted(findings, key=lambda one: one.code not in ("bom-shebang", "crlf-shebang")):
        if not finding.fixable or finding.path is None:
            continue
        try:
            result.done.append((finding, _fix(finding.code, *_place(finding.path, workspace))))
        except PathEscapes:
            why = "it is a link out of its directory or of the workspace: fix the target of the link"
            result.refused.append((finding, why))
        except HaftError as error:
            result.refused.append((finding, error.message))
        except OSError as error:
            result.refused.append((finding, error.strerror or str(error)))
    return result


def _place(path: str, workspace: str | None) -> tuple[Root, str]:
    """The root below which a file or directory is opened, and its path relative to that root."""
    path = os.path.abspath(path)
    for top in () if workspace is None else (os.path.abspath(workspace), os.path.realpath(workspace)):
        if path != top and lies_in(path, top):
            root, inside = Root(top), os.path.relpath(path, top)
            where, above = root.locate(inside), root.locate(os.path.dirname(inside) or ".")
            if above != "." and not lies_in(where, above):
                raise PathEscapes(shown(path), "it is a link out of its directory")
            return root, where
    return Root(os.path.dirname(path)), os.path.basename(path)


def _fix(code: str, root: Root, name: str) -> str:
    if code == "world-writable" and os.path.isdir(os.path.join(root.root, name)):
        return _close_directory(root, name)
    match code:
        case "not-executable":
            # Afterwards, everyone who may read the file may run it.
            return _change_mode(root, name, lambda mode: mode | (mode & 0o444) >> 2)
        case "world-writable":
            return _change_mode(root, name, lambda mode: mode & ~stat.S_IWOTH)
        case "bom-shebang":
            _change_content(root, name, lambda content: content.removeprefix(BOM))
            return "removed the byte order mark"
        case "crlf-shebang":
            _change_content(root, name, lambda content: content.replace(b"\r\n", b"\n"))
            return "replaced CRLF line ends with LF"
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
        raise BadUsage("it holds data that is not text, and line ends may be part of the data")
    root.replace(name, change(content), expect=identity)
