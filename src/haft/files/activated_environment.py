"""The virtual environment that a person has activated, if it lies in the workspace; and those of its files that decide
which code runs.

Calls can write this environment like any file of the workspace. So before haft puts the environment's programs on PATH,
it checks that a person approved exactly these programs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final

from haft.files.caches import CACHES
from haft.files.links import steps_of

MAX_PROGRAMS: Final = 2_000
_AT_START: Final = ("sitecustomize", "usercustomize")
"""Modules of an environment that Python runs at every start, in whatever form they exist."""
_PRIVATE: Final = ("/tmp", "/var/tmp", "/dev/shm", "/run", *(f"~/{each}" for each in CACHES.values()))  # noqa: S108
"""Directories where a call does not see the host's files, but only files that calls left there."""


def activated_in(workspace: str, host: Mapping[str, str]) -> str | None:
    """The directory of the activated environment. An environment counts as activated if VIRTUAL_ENV names it and its
    programs are on PATH, or if its programs are first on PATH. None if no environment is activated, if its path has a
    link in it, or if everyone may write there."""
    entries = [os.path.normpath(entry) for entry in host.get("PATH", "").split(os.pathsep) if os.path.isabs(entry)]
    named = host.get("VIRTUAL_ENV", "")
    wanted = os.path.join(os.path.normpath(named), "bin") if os.path.isabs(named) else None
    for entry in ([wanted] if wanted in entries else []) + entries[:1]:
        place = os.path.dirname(entry)
        inside = place.startswith(workspace.rstrip("/") + "/")
        if inside and os.path.basename(entry) == "bin" and os.path.isfile(os.path.join(place, "pyvenv.cfg")):
            try:
                is_closed = not os.stat(entry).st_mode & stat.S_IWOTH
            except OSError:
                return None
            return place if is_closed and os.path.realpath(entry) == entry else None
    return None


def programs_of(place: str) -> dict[str, str]:
    """The programs of an environment, by name. Raises `OSError` if they cannot be listed."""
    with os.scandir(os.path.join(place, "bin")) as found:
        return {entry.name: entry.path for entry in sorted(found, key=lambda each: each.name) if not entry.is_dir()}


def deciding_files(place: str) -> list[str]:
    """The files that decide which code runs when a program of an environment starts, without the libraries that the
    program imports. All files in `bin` are among them, since a script imports from its own directory first. Raises
    `OSError` if the files cannot be listed or are too many, or if a call would see other files in their place."""
    found = [os.path.join(place, "bin"), os.path.join(place, "pyvenv.cfg"), *_run_at_start(place)]
    for path in found:  # The list grows by the content of each directory.
        _check(path, place)
        if os.path.isdir(path):
            found += [os.path.join(path, name) for name in sorted(os.listdir(path))]
        if len(found) > MAX_PROGRAMS:
            raise OSError(f"{place} has more than {MAX_PROGRAMS} programs")
    return found


def state_of(place: str) -> str:
    """A text that changes when any of the `deciding_files` of an environment is replaced or changed."""
    seen = ((path, found) for path in deciding_files(place) for found in (os.lstat(path), os.stat(path)))
    return "\n".join(
        f"{path}:{one.st_dev}:{one.st_ino}:{one.st_size}:{one.st_mtime_ns}:{one.st_ctime_ns}" for path, one in seen
    )


def _run_at_start(place: str) -> Iterator[str]:
    """Yield the files that Python runs at every start and that are in the library directories of an environment."""
    for library in ("lib", "lib64"):
        for version in _listed(os.path.join(place, library), place):
            packages = os.path.join(version, "site-packages")
            for path in _listed(packages, place) if os.path.isdir(version) else ():
                if path.endswith(".pth") or _is_at_start(path):
                    yield path
            yield from filter(_is_at_start, _listed(os.path.join(packages, "__pycache__"), place))


def _listed(folder: str, place: str) -> list[str]:
    """The paths in a directory; empty if it does not exist."""
    if not os.path.lexists(folder):
        return []
    _check(folder, place)
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))] if os.path.isdir(folder) else []


def _is_at_start(path: str) -> bool:
    return os.path.basename(path).partition(".")[0] in _AT_START


def _check(path: str, place: str) -> None:
    """Raise `OSError` if a path does not exist, or leads to a directory where calls see other files than the host."""
    os.stat(path)
    own = os.path.dirname(place) + "/"
    for step in (*steps_of(path), os.path.realpath(path)):
        private = any(f"{step}/".startswith(os.path.expanduser(each) + "/") for each in _PRIVATE)
        if private and not step.startswith(own):
            raise OSError(f"{path} leads to {step}, where calls see other files than the host")
