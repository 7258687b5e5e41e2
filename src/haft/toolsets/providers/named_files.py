"""Finds the local files that the command of an MCP server names: the program, files among its arguments and in lines of
shell, and files in its own variables (`NODE_OPTIONS`, `LD_PRELOAD` and the like).

Trust in the start of a server is bound to the bytes of these files. A program that is found on PATH is not among them,
unless it lies in the workspace, or only the server's own PATH finds it. Files that these files load are found later, by
`trust_records`.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from haft.files import lies_inside
from haft.lazy import regex

_INTERPRETERS: Final = regex(r"(?:python|pypy)[\d.]*|node|nodejs|bun|deno|tsx|ts-node|ruby|perl|php|(?:ba|da|z|k)?sh")
_DIRECTORY_OPTIONS: Final = {"--directory", "--cwd", "--project", "--prefix", "--dir", "-C", "--package-path"}
_PROJECT_FILES: Final = {
    **dict.fromkeys(("npm", "pnpm", "yarn"), ("package.json", ".npmrc", ".yarnrc.yml", ".yarnrc", ".pnpmfile.cjs")),
    "bun": ("package.json", "bunfig.toml"),
    "bunx": ("bunfig.toml",),
    **dict.fromkeys(("tsx", "ts-node"), ("tsconfig.json",)),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch"), ("pyproject.toml", "uv.toml", "poetry.toml", "pdm.toml")),
    "pipenv": ("Pipfile",),
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "cargo": ("Cargo.toml", "build.rs", ".cargo/config.toml"),
    "go": ("go.mod", "go.work"),
    "deno": ("deno.json", "deno.jsonc"),
    "bundle": ("Gemfile",),
    "rake": ("Rakefile",),
}
"""Programs that run what a file in the directory says, and these files."""
_MAIN_FILES: Final = ("__main__.py", "index.js", "index.mjs", "index.ts")
_MODULE_PATHS: Final = ("PYTHONPATH", "NODE_PATH")
_CUSTOM_FILES: Final = ("sitecustomize.py", "usercustomize.py")
"""Python runs these files of PYTHONPATH at its start."""
_AROUND_WORD: Final = ";&|()<>`\"'"
MOST: Final = 200


def named_files(
    command: str, args: Sequence[str], env: Mapping[str, str], directory: str, workspace: str, path: str
) -> tuple[str, ...]:
    """The absolute paths of the files, in the order in which the command names them. `env` has the server's own
    variables, `directory` is where the command starts, and `path` is the host's PATH. If a path of the workspace leads
    out of it through a link, both the path and the file are among them, because the workspace chose the file."""
    found: dict[str, None] = {}
    for one in _candidates(command, args, env, directory, workspace, path):
        if len(found) < MOST:
            with suppress(OSError, ValueError):
                if os.path.isfile(one):
                    written, real = os.path.abspath(one), os.path.realpath(one)
                    if _lies_in(written, workspace) and not _lies_in(real, os.path.realpath(workspace)):
                        found[written] = None
                    found[real] = None
    return tuple(found)


def _candidates(
    command: str, args: Sequence[str], env: Mapping[str, str], directory: str, workspace: str, path: str
) -> Iterator[str]:
    program = os.path.basename(command)
    yield from _programs(command, env, directory, workspace, path)
    lines = [word for one in args for word in _words_of_line(one)]
    after_cd = [word for before, word in zip(("", *lines), lines, strict=False) if before == "cd"]
    modules = [each for name in _MODULE_PATHS for each in env.get(name, "").split(":") if each]
    named = [*_directories(args), *map(os.path.expanduser, after_cd)]
    places = [directory, *(os.path.join(directory, each) for each in dict.fromkeys(named))]
    is_interpreter = _INTERPRETERS.fullmatch(program) is not None
    for place in places:
        for each in dict.fromkeys((program, *args, *lines)):
            yield from (os.path.join(place, name) for name in _PROJECT_FILES.get(os.path.basename(each), ()))
        for word in (*lines, *_words_of_scripts(program, lines, place)):
            yield os.path.join(place, os.path.expanduser(word))
        yield from _of_arguments(args, place, is_interpreter=is_interpreter)
    for each in modules:
        folder = os.path.join(directory, os.path.expanduser(each))
        yield from (os.path.join(folder, name) for name in _CUSTOM_FILES)
        yield from _of_arguments(args, folder, is_interpreter=False)
    for value in env.values():
        for word in regex(r"[\s:=,;]+").split(value):
            if word:
                yield os.path.join(directory, os.path.expanduser(word))


def _on_path(command: str, path: str) -> str | None:
    """The program that a command finds on PATH. `shutil` has a function for this, and takes longer to load."""
    places = (os.path.join(entry, command) for entry in path.split(os.pathsep) if entry)
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)


def _programs(command: str, env: Mapping[str, str], directory: str, workspace: str, path: str) -> Iterator[str]:
    if "/" in command:
        yield os.path.join(directory, os.path.expanduser(command))
        return
    usual = _on_path(command, path)
    if usual is not None and lies_inside(usual, workspace):
        yield usual
    if "PATH" in env:
        own = os.pathsep.join(os.path.join(directory, each) for each in env["PATH"].split(os.pathsep))
        if (real := _on_path(command, own)) is not None and real != usual:
            yield real


def _of_arguments(args: Sequence[str], place: str, *, is_interpreter: bool) -> Iterator[str]:
    for before, one in zip(("", *args), args, strict=False):
        if one.startswith("-m") and len(one) > 2:
            yield from _of_module(place, one[2:])
        if one.startswith("-") and not one.startswith("--") and len(one) > 2:
            yield os.path.join(place, one[2:])  # A short option may have its value right behind it.
        value = one.partition("=")[2] if one.startswith("-") else one
        if not value:
            continue
        target = os.path.join(place, os.path.expanduser(value))
        yield target
        if before == "-m":
            yield from _of_module(place, value)
        elif is_interpreter and os.path.isdir(target):
            yield from _of_package(target)


def _of_module(place: str, name: str) -> Iterator[str]:
    module = os.path.join(place, *name.split("."))
    yield from (f"{module}.py", os.path.join(module, "__init__.py"), os.path.join(module, "__main__.py"))


def _words_of_line(text: str) -> list[str]:
    """The words of an argument that is a line of shell; none if it is one word."""
    if not any(map(str.isspace, text)):
        return []
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [word for each in words if (word := each.strip(_AROUND_WORD))]


def _words_of_scripts(program: str, lines: Sequence[str], place: str) -> list[str]:
    """The words of the scripts in a package.json, if the command runs them."""
    if not {"npm", "pnpm", "yarn", "bun"} & {program, *lines}:
        return []
    scripts = _manifest(os.path.join(place, "package.json")).get("scripts")
    texts = scripts.values() if isinstance(scripts, dict) else ()
    return [word for text in texts if isinstance(text, str) for word in _words_of_line(f"{text} ")]


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
    main = _manifest(manifest).get("main")
    if isinstance(main, str):
        yield os.path.join(directory, main)


def _manifest(path: str) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        with open(path, "rb") as file:
            told: Any = json.loads(file.read(1_000_000))
        if isinstance(told, dict):
            return told
    return {}


def _lies_in(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")
