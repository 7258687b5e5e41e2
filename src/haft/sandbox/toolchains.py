"""Finds the toolchains on PATH: directories with programs that a person uses and that do not belong to the system.

haft hides home directories, which also contain private files. So haft must decide which files beside a `bin` directory
belong to the toolchain. It shows known toolchains as a whole, or their parts without secrets. Of other toolchains, it
shows the parent directory of `bin`, if that directory looks like an installation prefix.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from haft.files import NEVER, editable_sources

KNOWN: Final = (
    ".asdf", ".bun", ".cargo/bin", ".deno", ".dotnet", ".foundry/bin", ".foundry/versions",
    ".ghcup", ".goenv", ".juliaup", ".local/bin",
    ".local/lib", ".local/pipx", ".local/share/fnm", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm",
    ".local/share/uv/python", ".local/share/uv/tools", ".nodenv", ".npm-global", ".nvm", ".opam", ".pixi", ".pyenv",
    ".rbenv", ".rustup", ".rvm", ".sdkman", ".swiftly", ".volta", ".yarn", "anaconda3", "go/bin", "miniconda3",
    "miniforge3",
)  # fmt: skip
"""Paths below a home. Only parts of `.cargo` and `.local` are here, since these also contain credentials."""

COMPANIONS: Final = {".cargo/bin": (".rustup",), ".local/bin": (".local/lib",)}
"""Other directories that a toolchain needs."""

HOMES: Final = "/home"
"""Every directory in this one is the home of a user."""

PREFIX_SIGNS: Final = ("lib", "lib64", "libexec", "pyvenv.cfg")
PREFIX_PARTS: Final = (*PREFIX_SIGNS, "include", "share")
"""The parts of a prefix that programs need. Anything else there may be a project with secrets."""
MAX_LINKS: Final = 2000
MAX_FILES: Final = 100
MAX_STEPS: Final = 40
"""As many links as the kernel follows."""


def toolchains(
    path: str, hidden: Sequence[str], homes: Sequence[str], is_seen: Callable[[str], bool] | None = None
) -> list[str]:
    """The directories and files that programs on PATH need, but that calls would not see otherwise. `homes` says which
    of the `hidden` directories are homes. `is_seen` says which paths calls see; without it, calls see all that is not
    hidden. Hidden paths come first in the result."""
    is_seen = is_seen or (lambda place: not is_below(place, hidden))
    found: dict[str, None] = {}
    files: dict[str, None] = {}
    looked: set[str] = set()
    for entry in path.split(os.pathsep):
        if not os.path.isabs(entry) or not os.path.isdir(entry):
            continue
        directory, real = os.path.normpath(entry), os.path.realpath(entry)
        for place in dict.fromkeys((directory, real)):
            if not is_seen(place):
                found.update(dict.fromkeys(_around(place, homes)))
            found.update(dict.fromkeys(_sources_of(os.path.dirname(place), is_seen, (*hidden, *homes, "/"))))
        for target in () if real in looked else _targets_of_links(real):
            if not is_seen(target) and os.path.isfile(target):
                taken = _beside(target, hidden, homes)
                files.update(dict.fromkeys([] if taken else [target]))
                found.update(dict.fromkeys(taken))
        looked.add(real)
    kept: list[str] = []
    for are_hidden in (True, False):
        some = [each for each in files if is_below(each, hidden) == are_hidden][:MAX_FILES]
        kept += outermost([*(each for each in found if is_below(each, hidden) == are_hidden), *some])
    return kept


def _beside(target: str, hidden: Sequence[str], homes: Sequence[str]) -> list[str]:
    """The directories that a program needs if PATH has a link to the program; empty if the program needs only its own
    file. If the program is in a hidden directory such as a home, the link usually means this one program and not the
    files beside it. Elsewhere the program is part of an installation."""
    place = os.path.dirname(target)
    taken = _around(place, homes)
    if is_below(target, hidden):
        is_environment = os.path.lexists(os.path.join(os.path.dirname(place), "pyvenv.cfg"))
        return taken if place not in taken or is_environment else []
    return [] if taken == [place] else taken


def _around(directory: str, homes: Sequence[str]) -> list[str]:
    """The paths of the toolchain that a directory of programs belongs to; only the directory itself if it belongs to
    none."""
    owners = [home for home in (*homes, *_home_of_someone(directory)) if is_below(directory, (home,))]
    for home in owners:
        relative = os.path.relpath(directory, home)
        for known in KNOWN:
            if relative == known or relative.startswith(known + "/"):
                return [os.path.join(home, name) for name in (known, *COMPANIONS.get(known, ()))]
    parent = os.path.dirname(directory)
    refused = {os.path.normpath(os.path.join(home, name)) for home in owners for name in NEVER}
    if parent not in refused and parent not in ("/", HOMES) and _is_prefix(parent):
        parts = [directory, *(os.path.join(parent, name) for name in PREFIX_PARTS)]
        return [part for part in parts if os.path.lexists(part)]
    return [] if directory in refused or parent == "/" else [directory]


def _sources_of(prefix: str, is_seen: Callable[[str], bool], whole: Sequence[str]) -> Iterator[str]:
    """The source directories of the packages that are installed in an environment as editable: the programs of the
    environment import from these directories. A whole home, or a whole hidden directory, does not count as a source
    directory."""
    if not os.path.lexists(os.path.join(prefix, "pyvenv.cfg")):
        return
    for place in editable_sources(prefix):
        if not is_seen(place) and not any(is_below(each, (place,)) for each in whole):
            yield place


def _home_of_someone(path: str) -> list[str]:
    words = path.removeprefix(HOMES + "/").split("/")
    return [f"{HOMES}/{words[0]}"] if path.startswith(HOMES + "/") else []


def _is_prefix(directory: str) -> bool:
    return any(os.path.lexists(os.path.join(directory, name)) for name in PREFIX_SIGNS)


def _targets_of_links(directory: str) -> Iterator[str]:
    """The targets of the links in a directory of programs. Targets in the same directory are left out."""
    try:
        with os.scandir(directory) as found:
            links = [entry.path for entry in found if entry.is_symlink() and _leads_elsewhere(entry.path)]
    except OSError:
        return
    places = {directory: directory}
    for link in links[:MAX_LINKS]:
        target = _end_of(link, places)
        if os.path.dirname(target) != directory:
            yield target


def _leads_elsewhere(link: str) -> bool:
    try:
        return "/" in os.readlink(link)
    except OSError:
        return False


def _end_of(link: str, places: dict[str, str]) -> str:
    """The final target of a link, as `os.path.realpath` returns it. There are hundreds of links in few directories, so
    `places` caches the real paths of the directories."""
    path = link
    for _ in range(MAX_STEPS):
        parent, name = os.path.split(path)
        if parent not in places:
            places[parent] = os.path.realpath(parent)
        path = os.path.join(places[parent], name)
        try:
            path = os.path.join(places[parent], os.readlink(path))
        except OSError:
            return path if name not in ("", ".", "..") else os.path.realpath(path)
    return link


def is_below(path: str, places: Iterable[str]) -> bool:
    """Whether a path is one of `places`, or is inside one of them."""
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def outermost(paths: Iterable[str]) -> list[str]:
    """The paths that are not inside another one of these paths."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda one: (one.count("/"), one)):
        if not is_below(path, kept):
            kept.append(path)
    return kept
