"""Parses the `requirements.txt` of a template: a plain list of packages, and nothing else.

The file comes with the template, so it is not trusted: a line that could name another index, read files of this
machine, or run code is refused. The other lines go to the installer, without options. Versions and markers are not
checked: the installer does that.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass
from typing import Final

from haft.contracts import ToolFailed
from haft.files import shown

NAME: Final = "requirements.txt"
MOST_BYTES: Final = 100_000
MOST_SHOWN: Final = 80
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PASSED_OVER: Final = ("--only-binary", "--prefer-binary", "--require-hashes")
"""Options that are accepted and skipped, because they are in effect anyway."""
_PACKAGE: Final = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[A-Za-z0-9._,\s-]*\])?\s*(?P<rest>.*)")
_HASHES: Final = re.compile(r"(\s+--hash[= ]\s*[a-z0-9]+:[0-9a-fA-F]+)+\s*$")
_OPTION_WITHIN: Final = re.compile(r"\s-")
"""An option after a package. It is also searched after a marker (`; …`), because an installer may read options
there."""
_ADDRESS: Final = re.compile(r"(git\+)?https://[^\s\\]+(\s*;.*)?")
_ARCHIVES: Final = (".whl", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".tar")
_BUILDS: Final = "`templates.allow_builds = true` in your own configuration allows it, and runs code of its authors"


@dataclass(frozen=True, slots=True)
class Requirements:
    """The parsed content of a `requirements.txt`."""

    content: bytes
    """The bytes on disk."""
    lines: tuple[str, ...]
    """The lines that name packages, one package each."""
    has_hashes: bool
    """Whether every package must have a known digest."""


def read_requirements(folder: str) -> bytes:
    """The content of the `requirements.txt` in a folder. Raises `ToolFailed` if the file is missing, is not a regular
    file, or is too long."""
    path = os.path.join(folder, NAME)
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ToolFailed(f"{shown(path)} is a link: replace it by a regular file") from error
        why = "it does not exist" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise ToolFailed(f"{shown(path)} cannot be read: {why}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ToolFailed(f"{shown(path)} is not a regular file")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            content = file.read(MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MOST_BYTES:
        raise ToolFailed(f"{shown(path)} is too long: more than {MOST_BYTES:_} bytes")
    return content


def parse_requirements(content: bytes, *, allow_builds: bool) -> Requirements:
    """The packages that a file names. Raises `ToolFailed` with the first refused line and the reason."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{NAME} is not UTF-8: byte {error.start}") from error
    lines: list[str] = []
    has_hashes = False
    for number, line in _logical_lines(text):
        why, hint = _refused(line, allow_builds=allow_builds)
        if why is not None:
            raise ToolFailed(f"line {number} of {NAME} is refused: `{_brief(line)}` {why}", hint=hint)
        has_hashes = has_hashes or line.startswith("--require-hashes") or "--hash" in line
        if not line.startswith("-"):
            lines.append(line)
    return Requirements(content, tuple(lines), has_hashes)


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """The lines with the number of each, without comments and empty lines. Lines that end with a backslash are
    joined."""
    found: list[tuple[int, str]] = []
    begun, parts = 0, ""
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        begun = begun or number
        goes_on = line.endswith("\\") and not line.lstrip().startswith("#")
        parts += line[:-1] + " " if goes_on else line
        if not goes_on:
            if words := re.sub(r"(^|\s)#.*$", "", parts).strip():
                found.append((begun, words))
            begun, parts = 0, ""
    if words := parts.strip():
        found.append((begun, words))
    return found


def _refused(line: str, *, allow_builds: bool) -> tuple[str | None, str | None]:
    """Why a line is refused, and what to do; None and None if it is accepted."""
    if any(not character.isprintable() and character != "\t" for character in line):
        return "has characters that cannot be printed", None
    if "${" in line:
        return "names a variable of the environment", "write the value itself"
    if line.startswith("-"):
        return _refused_option(line)
    if _OPTION_WITHIN.search(_HASHES.sub("", f" {line}")):
        return "has an option among its words", "only `--hash` may follow a package, at the end"
    is_address = _ADDRESS.fullmatch(line) is not None
    package = None if is_address else _PACKAGE.fullmatch(line)
    rest = "" if package is None else _HASHES.sub("", f" {package['rest']}").strip()
    if rest.startswith("@"):
        is_address = _ADDRESS.fullmatch(rest[1:].strip()) is not None
        if not is_address:
            return "names a location that is not an `https://` address", "name the package by its name and version"
    if is_address:
        return (None, None) if allow_builds else ("is an address, not a package of the index", _BUILDS)
    if package is None or "/" in rest.partition(";")[0] or package["name"].lower().endswith(_ARCHIVES):
        return "is not a package: files of this machine are not installed", "name packages of the index"
    if " -" in rest.partition(";")[0] or (rest and rest[0] not in "=<>!~(;-") or rest.startswith("-"):
        return "cannot be understood", "a line is a package, its version and a marker: `requests>=2.28`"
    return None, None


def _refused_option(line: str) -> tuple[str | None, str | None]:
    option = re.split(r"[=\s]", line, maxsplit=1)[0]
    if option in _PASSED_OVER:
        return None, None
    if option in ("-e", "--editable") or line.startswith("-e"):
        return "installs a project of this machine", "put modules beside tool.py: it finds them there"
    if option in ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--no-index", "--trusted-host"):
        return "names a package index", "set UV_DEFAULT_INDEX in your environment, for all templates"
    if option in ("-r", "--requirement", "-c", "--constraint") or line[:2] in ("-r", "-c"):
        return "reads another file", "write its lines here"
    return "is an option", "only packages are listed here"


def _brief(line: str) -> str:
    words = shown(line)
    return words if len(words) <= MOST_SHOWN else words[: MOST_SHOWN - 1] + "…"
