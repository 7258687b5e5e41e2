"""Checks a file without starting it: its type, who may run and change it, its first line."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from haft.files import shown
from haft.sources.amp_toolbox.interpreters import missing_interpreter
from haft.sources.checks.findings import Finding
from haft.sources.checks.hidden import hidden_in_source

MOST_READ: Final = 2_000_000
"""How many bytes of a file are read at most."""
BOM: Final = b"\xef\xbb\xbf"
_COMPILED: Final = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_SORTS: Final = ((stat.S_ISFIFO, "a fifo"), (stat.S_ISSOCK, "a socket"), (stat.S_ISDIR, "a directory"))


@dataclass(frozen=True, slots=True)
class InspectedFile:
    """A file that was read for a check."""

    path: str
    mode: int
    content: bytes

    @property
    def is_text(self) -> bool:
        return b"\0" not in self.content[:8192]

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace") if self.is_text else ""

    @property
    def is_program(self) -> bool:
        """Whether the file begins like a script or a compiled program."""
        return self.content.removeprefix(BOM).startswith(b"#!") or self.content.startswith(_COMPILED)


def inspect_file(path: str) -> InspectedFile | Finding:
    """Read a file. Returns a finding if that is not possible. Only regular files are opened."""
    if any("\ud800" <= letter <= "\udfff" for letter in path):
        return Finding("file-name", "the name of the file is not UTF-8", "rename it")
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if os.path.islink(path):
            where = f"it is a link to {shown(os.readlink(path))}, which cannot be reached ({error.strerror})"
            return Finding("dangling-link", where, "fix or remove the link")
        return Finding("unreadable", f"it cannot be looked at: {error.strerror}", f"ls -l {shown(path)}")
    if not stat.S_ISREG(mode):
        sort = next((word for is_one, word in _SORTS if is_one(mode)), "a device")
        return Finding("not-a-file", f"it is {sort}, not a file", "remove it")
    try:
        with open(os.open(path, _READ), "rb") as file:
            return InspectedFile(path, mode, file.read(MOST_READ))
    except OSError as error:
        return Finding("unreadable", f"it cannot be read: {error.strerror}", f"chmod u+r {shown(path)}")


def is_all_text(content: bytes) -> bool:
    """Whether `content` is the whole file, and all of it is text: a script may have binary data at its end."""
    if len(content) >= MOST_READ or b"\0" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def check_inside(path: str, within: str | None) -> Iterator[Finding]:
    """Check whether a file really lies in the workspace `within`, after links are resolved."""
    real = os.path.realpath(path)
    if within is not None and not real.startswith(os.path.realpath(within).rstrip("/") + "/"):
        yield Finding(
            "leads-out", f"it leads out of the workspace, to {shown(real)}", "copy the file into the workspace"
        )


def check_file(inspected: InspectedFile) -> Iterator[Finding]:
    """Check who may change a file, and whether its source has hidden characters."""
    yield from check_rights(inspected.path, inspected.mode)
    yield from hidden_in_source(inspected.text)


def check_rights(path: str, mode: int) -> Iterator[Finding]:
    """Check whether other users may change or replace a file."""
    if mode & stat.S_IWOTH:
        yield Finding(
            "world-writable", "everybody may change the file", f"chmod o-w {shown(path)}", path=path, fixable=True
        )
    around = os.path.dirname(os.path.abspath(path))
    try:
        above = os.stat(around).st_mode
    except OSError:
        return
    if above & stat.S_IWOTH and not above & stat.S_ISVTX:
        yield Finding(
            "world-writable",
            "everybody may replace the file: its directory can be written by all",
            f"chmod o-w {shown(around)}",
            path=around,
            fixable=True,
        )


def check_start(inspected: InspectedFile) -> Iterator[Finding]:
    """Check whether the kernel can start a file."""
    path, content = shown(inspected.path), inspected.content
    if not os.access(inspected.path, os.X_OK):
        why = (
            "it may not be executed"
            if inspected.is_program
            else "it may not be executed, and does not begin like a program"
        )
        cure = f"chmod +x {path}" if inspected.is_program else "move it elsewhere: a toolbox holds only tools"
        yield Finding("not-executable", why, cure, path=inspected.path, fixable=inspected.is_program)
    marked = list(check_first_line(inspected))
    yield from marked
    first = content.removeprefix(BOM).split(b"\n", 1)[0]
    if any(finding.code == "crlf-shebang" for finding in marked):
        return
    if first.startswith(b"#!"):
        yield from _interpreter(inspected.path)
    elif not content:
        yield Finding("describe-form", "it is empty", "write it, or remove it")
    elif not inspected.is_program and inspected.is_text:
        yield Finding(
            "no-shebang",
            "it does not say which interpreter runs it",
            "begin it with a line such as `#!/usr/bin/env bash`",
            1,
        )


def check_first_line(inspected: InspectedFile) -> Iterator[Finding]:
    """Check for invisible bytes at the beginning and at the end of a script's first line."""
    content = inspected.content
    if content.startswith(BOM + b"#!"):
        yield Finding(
            "bom-shebang",
            "a byte order mark stands before `#!`",
            "save it without one",
            1,
            inspected.path,
            fixable=is_all_text(content),
        )
    first = content.removeprefix(BOM).split(b"\n", 1)[0]
    if first.startswith(b"#!") and first.endswith(b"\r"):
        yield Finding(
            "crlf-shebang",
            "the first line ends with a carriage return",
            "save it with line ends of Unix",
            1,
            inspected.path,
            fixable=is_all_text(content),
        )


def _interpreter(path: str) -> Iterator[Finding]:
    missing = missing_interpreter(path)
    if missing is not None:
        yield Finding(
            "interpreter-missing", f"`{shown(missing)}` is not on this machine", "install it, or name another one", 1
        )
