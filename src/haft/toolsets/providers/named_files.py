"""Finds the local files that the command of an MCP server names: the program, and files among its arguments.

Trust in the start of a server is bound to the bytes of these files. A program that is found on PATH is not among them,
unless it lies in the workspace. Files that these files load are found later, by `trust_records`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from haft.lazy import regex

_INTERPRETERS: Final = regex(r"(?:python|pypy)[\d.]*|node|nodejs|bun|deno|tsx|ts-node|ruby|perl|php|(?:ba|da|z|k)?sh")
_DIRECTORY_OPTIONS: Final = {"--directory", "--cwd", "--project", "--prefix", "--dir", "-C", "--package-path"}
_PROJECT_FILES: Final = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch"), ("pyproject.toml",)),
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile",),
    "cargo": ("Cargo.toml",),
    "deno": ("deno.json",),
}
"""Programs that run what a file in the directory says, and these files."""
_MAIN_FILES: Final = ("__main__.py", "index.js", "index.mjs", "index.ts")
MOST: Final = 200


def named_files(command: str, args: Sequence[str], directory: str, workspace: str, path: str) -> tuple[str, ...]:
    """The absolute paths of the files, in the order in which the command names them. `directory` is where the command
    starts, and `path` is the PATH that it is looked up on."""
    found: dict[str, None] = {}
    for one in _candidates(command, args, directory, workspace, path):
        if len(found) < MOST:
            with suppress(OSError, ValueError):
                if os.path.isfile(one):
                    found[os.path.realpath(one)] = None
    return tuple(found)


def _on_path(command: str, path: str) -> str | None:
    """The program that a command finds on PATH. `shutil` has a function for this, and takes longer to load."""
    places = (os.path.join(entry, command) for entry in path.split(os.pathsep) if entry)
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)


def _candidates(command: str, args: Sequence[str], directory: str, workspace: str, path: str) -> Iterator[str]:
    program = os.path.basename(command)
    if "/" in command:
        yield os.path.join(directory, os.path.expanduser(command))
    elif (real := _on_path(command, path)) is not None and _lies_in(os.path.realpath(real), workspace):
        yield real
    places = [directory, *(os.path.join(directory, each) for each in _directories(args))]
    is_interpreter = _INTERPRETERS.fullmatch(program) is not None
    for place in places:
        yield from (os.path.join(place, name) for name in _PROJECT_FILES.get(program, ()))
        for before, one in zip(("", *args), args, strict=False):
            value = one.partition("=")[2] if one.startswith("-") else one
            if not value:
                continue
            target = os.path.join(place, os.path.expanduser(value))
            yield target
            if before == "-m":
                module = os.path.join(place, *value.split("."))
                yield from (f"{module}.py", os.path.join(module, "__init__.py"), os.path.join(module, "__main__.py"))
            elif is_interpreter and os.path.isdir(target):
                yield from _of_package(target)


def _directories(args: Sequence[str]) -> Iterator[str]:
    """The directories that options of the command change to."""
    for before, one in zip(("", *args), args, strict=False):
        if before in _DIRECTORY_OPTIONS:
            yield os.path.expanduser(one)
        name, _equals, value = one.partition("=")
        if value and name in _DIRECTORY_OPTIONS:
            yield os.path.expanduser(value)


def _of_package(directory: str) -> Iterator[str]:
    """The files that an interpreter runs if it is given a directory."""
    yield from (os.path.join(directory, name) for name in _MAIN_FILES)
    manifest = os.path.join(directory, "package.json")
    yield manifest
    with suppress(OSError, ValueError, RecursionError):
        with open(manifest, "rb") as file:
            told: Any = json.loads(file.read(1_000_000))
        if isinstance(told, dict) and isinstance(told.get("main"), str):
            yield os.path.join(directory, told["main"])


def _lies_in(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")
