"""The virtual environment inside a workspace that a person has activated, and what of it decides which code runs.

Calls can write it like anything in the workspace. Whoever puts its programs on PATH wants to know that they are those
that somebody agreed to.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Mapping
from typing import Final

MOST_PROGRAMS: Final = 2_000
_AT_START: Final = ("*.pth", "sitecustomize.py", "usercustomize.py")
"""What Python runs of an environment whatever it is started for."""


def activated_in(workspace: str, host: Mapping[str, str]) -> str | None:
    """Where the environment lies: VIRTUAL_ENV names it and its programs are on PATH, or they stand first there. Nothing
    where it is reached by a link, or others may write it."""
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
    """The programs of an environment, by name. `OSError` where they cannot be listed, or are too many."""
    with os.scandir(os.path.join(place, "bin")) as found:
        programs = {
            entry.name: entry.path for entry in sorted(found, key=lambda each: each.name) if not _is_folder(entry)
        }
    if len(programs) > MOST_PROGRAMS:
        raise OSError(f"{place} has more than {MOST_PROGRAMS} programs")
    return programs


def deciding_files(place: str) -> list[str]:
    """The files that decide what runs when a program of an environment is started, but for the libraries that the
    program itself imports."""
    library = os.path.join(glob.escape(place), "lib", "python*", "site-packages")
    started = [path for name in _AT_START for path in sorted(glob.glob(os.path.join(library, name)))]
    return [*programs_of(place).values(), os.path.join(place, "pyvenv.cfg"), *started]


def state_of(place: str) -> str:
    """Another text when any of these files is another, or was changed."""
    found = []
    for path in deciding_files(place):
        seen = os.lstat(path)
        found.append(f"{path}:{seen.st_dev}:{seen.st_ino}:{seen.st_size}:{seen.st_mtime_ns}:{seen.st_ctime_ns}")
    return "\n".join(found)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)
