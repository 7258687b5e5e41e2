"""Which directories in hidden places hold programs that a person uses: the toolchains on PATH.

A home is hidden because of what else lies in it, so the question is how much beside a `bin` belongs to it. Known
toolchains are taken as a whole, or in the parts that hold no secrets; of others the prefix, where it looks like one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

KNOWN: Final = (
    ".asdf", ".bun", ".cargo/bin", ".deno", ".dotnet", ".foundry", ".ghcup", ".goenv", ".juliaup", ".local/bin",
    ".local/lib", ".local/pipx", ".local/share/fnm", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm",
    ".local/share/uv/python", ".local/share/uv/tools", ".nodenv", ".npm-global", ".nvm", ".opam", ".pixi", ".pyenv",
    ".rbenv", ".rustup", ".rvm", ".sdkman", ".swiftly", ".volta", ".yarn", "anaconda3", "go/bin", "miniconda3",
    "miniforge3",
)  # fmt: skip
"""Below a home. `.cargo` and `.local` hold credentials beside programs: only parts of them."""

COMPANIONS: Final = {".cargo/bin": (".rustup",)}
"""What a toolchain needs beside itself."""

NEVER: Final = ("", ".local", ".config", ".cache", ".cargo", ".ssh", ".gnupg")
"""Never taken as a whole, whatever lies in them."""

MOST_LINKS: Final = 2000


def toolchains(path: str, hidden: Sequence[str], homes: Sequence[str]) -> list[str]:
    """The directories to show, given PATH, the hidden places, and which of these are homes."""
    found: dict[str, None] = {}
    for entry in path.split(os.pathsep):
        if os.path.isabs(entry) and os.path.isdir(entry):
            for directory in (os.path.normpath(entry), *_targets_of_links(entry)):
                if is_below(directory, hidden):
                    found.update(dict.fromkeys(_around(directory, homes)))
    return outermost(found)


def _around(directory: str, homes: Sequence[str]) -> Iterator[str]:
    """The toolchain that a directory of programs belongs to."""
    for home in homes:
        if not is_below(directory, (home,)):
            continue
        relative = os.path.relpath(directory, home)
        for known in KNOWN:
            if relative == known or relative.startswith(known + "/"):
                yield os.path.join(home, known)
                yield from (os.path.join(home, other) for other in COMPANIONS.get(known, ()))
                return
    parent = os.path.dirname(directory)
    refused = {os.path.normpath(os.path.join(home, name)) for home in homes for name in NEVER}
    if parent not in refused and parent != "/" and _is_prefix(parent):
        yield parent
    elif directory not in refused:
        yield directory


def _is_prefix(directory: str) -> bool:
    return any(os.path.lexists(os.path.join(directory, name)) for name in ("lib", "lib64", "libexec", "pyvenv.cfg"))


def _targets_of_links(directory: str) -> Iterator[str]:
    """Where the links in a directory of programs lead, each directory once."""
    seen: set[str] = set()
    real = os.path.realpath(directory)
    if real != os.path.normpath(directory):
        yield real
    try:
        with os.scandir(directory) as found:
            links = [entry.path for entry in found if entry.is_symlink()][:MOST_LINKS]
    except OSError:
        return
    for link in links:
        target = os.path.dirname(os.path.realpath(link))
        if target not in seen and target != real:
            seen.add(target)
            yield target


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
