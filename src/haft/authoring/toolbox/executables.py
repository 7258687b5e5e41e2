"""Writes executables into a directory: all of them or none, and never over another file without `force`."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from haft.authoring.directories import make_directories, unmake_directories
from haft.contracts import BadUsage

LONGEST: Final = 110
"""How many characters of a description the docstring of an executable contains."""


IMPORTS: Final = """import os
import sys

# Files beside this one must not be imported as modules.
_BESIDE = {os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.realpath(__file__))}
sys.path[:] = [place for place in sys.path if os.path.abspath(place) not in _BESIDE]

import json  # noqa: E402
"""
"""The beginning of every executable. It keeps the executable from importing files that lie beside it."""


@dataclass(frozen=True, slots=True)
class WrittenExecutable:
    """An executable that was written, or that existed already with the same text."""

    name: str
    path: str
    is_new: bool

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "path": self.path, "new": self.is_new}


def place(texts: Mapping[str, str], directory: str, *, force: bool = False) -> list[WrittenExecutable]:
    """Write each text in `texts` to an executable file. The keys of `texts` are the file names. Raises `BadUsage` if a
    file of that name has another text, unless `force` is set."""
    made = _made(directory)
    paths = {name: os.path.join(directory, name) for name in texts}
    there = {name: _text_at(path) for name, path in paths.items()}
    others = [paths[name] for name, text in there.items() if text is not None and text != texts[name]]
    if others and not force:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise BadUsage(f"{others[0]}{more} exists already with other content", hint="`--force` replaces it")
    for path in paths.values():
        if os.path.isdir(path):
            raise BadUsage(f"{path} is a directory")
    staged: list[tuple[str, str]] = []
    try:
        for name, text in texts.items():
            if there[name] != text or not os.access(paths[name], os.X_OK):
                staged.append((_staged(text, directory), paths[name]))
        for temporary, path in staged:
            os.replace(temporary, path)
    except OSError as error:
        unmake_directories(made)
        raise BadUsage(f"{directory} cannot be written to: {error.strerror}") from error
    finally:
        for temporary, _path in staged:
            if os.path.lexists(temporary):
                os.unlink(temporary)
    written = {path for _temporary, path in staged}
    return [WrittenExecutable(name, path, path in written) for name, path in paths.items()]


def _made(directory: str) -> list[str]:
    try:
        return make_directories(directory)
    except OSError as error:
        raise BadUsage(f"{directory} cannot be made: {error.strerror}") from error


def _staged(text: str, directory: str) -> str:
    descriptor, path = tempfile.mkstemp(prefix=".making-", dir=directory)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), 0o777 & ~mask)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(path)
        raise
    return path


def in_a_docstring(text: str) -> str:
    """A text that somebody else wrote, as one line that cannot end the docstring around it."""
    plain = "".join(letter if letter.isprintable() and letter != "\\" else " " for letter in text.replace('"', "'"))
    line = " ".join(plain.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _text_at(path: str) -> str | None:
    """The text of a file; None if there is no file, empty if it cannot be read or is not a regular file."""
    if not os.path.lexists(path):
        return None
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(2_000_000)
    except OSError:
        return ""
