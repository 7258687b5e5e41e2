"""The files that a tool needs besides its own: the package of a program, and the Python of an environment.

Another user who can put a file into a directory above a tool must not decide how much of the disk the tool sees. So the
search stops at directories that everyone may write or that another user owns, and at a home directory or any directory
above a home directory.
"""

from __future__ import annotations

import glob
import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from typing import Final

MANIFESTS: Final = ("package.json", "pyproject.toml")
NEVER: Final = ("", ".local", ".local/share", ".config", ".cache", ".cargo", ".ssh", ".gnupg")
"""Directories of a home that are never shown as a whole, whatever they contain."""
SHARED: Final = (
    "/", "/tmp", "/var/tmp", "/run", "/dev/shm", "/data", "/home", "/media", "/mnt", "/opt", "/srv", "/usr",  # noqa: S108
    "/usr/local", "/var",
)  # fmt: skip
"""Directories that are shared, so they are never the root of a package."""
MAX_LEVELS: Final = 40


def package_of(path: str) -> str | None:
    """The root of the package that a file belongs to: the nearest directory above the file that contains a manifest,
    such as `package.json`. None if there is no such directory, if the top of a repository comes first, or if another
    user could have put the manifest there."""
    real = os.path.realpath(path)
    try:
        trusted = {os.stat(real).st_uid, os.geteuid(), 0}
    except OSError:
        return None
    directory = os.path.dirname(real)
    for _level in range(MAX_LEVELS):
        if holds_a_home(directory) or directory in SHARED or not _is_closed(directory, trusted):
            return None
        if any(_is_own_file(os.path.join(directory, name), trusted) for name in MANIFESTS):
            return directory
        if os.path.lexists(os.path.join(directory, ".git")):
            return None
        directory = os.path.dirname(directory)
    return None


def holds_a_home(directory: str) -> bool:
    """Whether a directory is or contains a home directory, or is or contains a part of a home directory that is never
    shown as a whole."""
    if directory == "/":
        return True
    words = directory.split("/")
    homes = [*_homes(), *(["/".join(words[:3])] if words[1] == "home" and len(words) > 2 else [])]
    never = (os.path.normpath(os.path.join(home, name)) for home in homes for name in NEVER)
    return any(place == directory or place.startswith(directory + "/") for place in never)


def _homes() -> Iterator[str]:
    yield os.path.realpath(os.path.expanduser("~"))
    yield "/root"
    try:
        yield os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return


def _is_closed(directory: str, trusted: set[int]) -> bool:
    """Whether only the trusted users, and the group of the directory, may put files there."""
    try:
        found = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid in trusted and not found.st_mode & stat.S_IWOTH


def _is_own_file(path: str, trusted: set[int]) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid in trusted


def interpreter_of(environment: str, env: Mapping[str, str]) -> list[str]:
    """All paths of the Python installation that a virtual environment uses, if uv or pyenv installed it; otherwise an
    empty list. Other installations are not trusted, since a call that can write the environment may link it to any
    file."""
    link = os.path.join(environment, "bin", "python")
    if not os.path.isfile(os.path.join(environment, "pyvenv.cfg")):
        return []
    found: list[str] = []
    for root in _installed_in(env):
        step = link
        for _link in range(10):
            step = os.path.normpath(step)
            relative = os.path.relpath(step, root)
            if not relative.startswith("..") and relative.count("/") == 2:
                place = os.path.join(root, relative.split("/")[0])
                if _is_python(place, root):
                    found += [place, os.path.realpath(place)]
            if not os.path.islink(step):
                break
            step = os.path.join(os.path.dirname(step), os.readlink(step))
    return list(dict.fromkeys(found))


def _installed_in(env: Mapping[str, str]) -> list[str]:
    """The directories in which uv and pyenv install interpreters."""
    home = env.get("HOME") or os.path.expanduser("~")
    data = env.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    roots = [
        env.get("UV_PYTHON_INSTALL_DIR") or os.path.join(data, "uv", "python"),
        os.path.join(env.get("PYENV_ROOT") or os.path.join(home, ".pyenv"), "versions"),
    ]
    named = [os.path.normpath(root) for root in roots if os.path.isabs(root)]
    return [each for root in named for each in dict.fromkeys((root, os.path.realpath(root))) if not holds_a_home(each)]


def _is_python(place: str, root: str) -> bool:
    """Whether a directory is an installation of Python, directly in `root`."""
    real = os.path.realpath(place)
    inside = os.path.dirname(real) == os.path.realpath(root)
    return inside and bool(glob.glob(os.path.join(glob.escape(real), "lib", "python3*", "os.py")))
