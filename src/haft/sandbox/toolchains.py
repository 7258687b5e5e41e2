"""Which directories outside of the system's own hold programs that a person uses: the toolchains on PATH.

A home is hidden because of what else lies in it, so the question is how much beside a `bin` belongs to it. Known
toolchains are taken as a whole, or in the parts that hold no secrets; of others the prefix, where it looks like one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from haft.files import NEVER, installed_by_name

KNOWN: Final = (
    ".asdf", ".bun", ".cargo/bin", ".deno", ".dotnet", ".foundry/bin", ".foundry/versions",
    ".ghcup", ".goenv", ".juliaup", ".local/bin",
    ".local/lib", ".local/pipx", ".local/share/fnm", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm",
    ".local/share/uv/python", ".local/share/uv/tools", ".nodenv", ".npm-global", ".nvm", ".opam", ".pixi", ".pyenv",
    ".rbenv", ".rustup", ".rvm", ".sdkman", ".swiftly", ".volta", ".yarn", "anaconda3", "go/bin", "miniconda3",
    "miniforge3",
)  # fmt: skip
"""Below a home. `.cargo` and `.local` hold credentials beside programs: only parts of them."""

COMPANIONS: Final = {".cargo/bin": (".rustup",), ".local/bin": (".local/lib",)}
"""What a toolchain needs beside itself."""

HOMES: Final = "/home"
"""Whose directories are homes, each of them."""

PREFIX_SIGNS: Final = ("lib", "lib64", "libexec", "pyvenv.cfg")
PREFIX_PARTS: Final = (*PREFIX_SIGNS, "include", "share")
"""What of a prefix programs need; whatever else lies there is a project, perhaps, with its secrets."""
MOST_LINKS: Final = 2000
MOST_FILES: Final = 100
MOST_STEPS: Final = 40
"""As many links as the kernel follows."""


def toolchains(
    path: str, hidden: Sequence[str], homes: Sequence[str], is_seen: Callable[[str], bool] | None = None
) -> list[str]:
    """What programs on PATH need that is not seen anyway, given the hidden places, and which of these are homes. With
    `is_seen`, places that are not hidden count too, after the others."""
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
        some = [each for each in files if is_below(each, hidden) == are_hidden][:MOST_FILES]
        kept += outermost([*(each for each in found if is_below(each, hidden) == are_hidden), *some])
    return kept


def _beside(target: str, hidden: Sequence[str], homes: Sequence[str]) -> list[str]:
    """What a program needs that a link on PATH leads to; nothing but itself where this is empty. In a home someone put
    a link to one program there, not to whatever lies beside it; elsewhere it is part of what is installed there."""
    place = os.path.dirname(target)
    taken = _around(place, homes)
    if is_below(target, hidden):
        is_environment = os.path.lexists(os.path.join(os.path.dirname(place), "pyvenv.cfg"))
        return taken if place not in taken or is_environment else []
    return [] if taken == [place] else taken


def _around(directory: str, homes: Sequence[str]) -> list[str]:
    """The toolchain that a directory of programs belongs to: the directory itself where there is none."""
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
    """Where the sources lie of what is installed in an environment only by name: its programs import them from there. A
    whole home, or a place that is hidden as a whole, is no source."""
    if not os.path.lexists(os.path.join(prefix, "pyvenv.cfg")):
        return
    for place in installed_by_name(prefix):
        if not is_seen(place) and not any(is_below(each, (place,)) for each in whole):
            yield place


def _home_of_someone(path: str) -> list[str]:
    words = path.removeprefix(HOMES + "/").split("/")
    return [f"{HOMES}/{words[0]}"] if path.startswith(HOMES + "/") else []


def _is_prefix(directory: str) -> bool:
    return any(os.path.lexists(os.path.join(directory, name)) for name in PREFIX_SIGNS)


def _targets_of_links(directory: str) -> Iterator[str]:
    """Where the links in a directory of programs lead, but for those to another name beside them: that is looked at for
    itself."""
    try:
        with os.scandir(directory) as found:
            links = [entry.path for entry in found if entry.is_symlink() and _leads_elsewhere(entry.path)]
    except OSError:
        return
    places = {directory: directory}
    for link in links[:MOST_LINKS]:
        target = _end_of(link, places)
        if os.path.dirname(target) != directory:
            yield target


def _leads_elsewhere(link: str) -> bool:
    try:
        return "/" in os.readlink(link)
    except OSError:
        return False


def _end_of(link: str, places: dict[str, str]) -> str:
    """Where a link leads in the end, as `os.path.realpath` says. There are hundreds of links and few directories:
    `places` remembers where these really are."""
    path = link
    for _ in range(MOST_STEPS):
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
    """Whether a path is one of the places or lies in one."""
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def outermost(paths: Iterable[str]) -> list[str]:
    """Without those that lie in another one."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda one: (one.count("/"), one)):
        if not is_below(path, kept):
            kept.append(path)
    return kept
