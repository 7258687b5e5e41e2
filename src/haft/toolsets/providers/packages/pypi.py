"""Installs packages of PyPI with uv, as wheels only: nothing is built, so no code of a package runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from haft.contracts import ToolFailed
from haft.lazy import regex
from haft.sandbox import Tool
from haft.toolsets.environments.installer import find_uv, installer_environment, readable_certificates
from haft.toolsets.providers.packages.command_line import PackageCommand, package_name
from haft.toolsets.providers.packages.places import Interpreter
from haft.toolsets.providers.packages.programs import readable_for
from haft.toolsets.providers.packages.recipe import FoundProgram, Step, no_program

_MOST_BYTES: Final = 1_000_000
_HINTS: Final = (
    (
        r"no usable wheels|no wheels|distributions is disabled|no-build|only-binary|Wheels are required",
        (
            "haft builds no packages of servers, because a build runs code of their authors: name a version that has a "
            "wheel, or install the package yourself and name its program as the command"
        ),
    ),
    (r"not found in the package registry", "the index has no such package: check its name in the command"),
    (
        r"dns error|error sending request|tcp connect|connection refused|Could not connect|Failed to fetch",
        (
            "the package index does not answer: is this machine online? SSL_CERT_FILE and UV_DEFAULT_INDEX in your "
            "environment are passed on"
        ),
    ),
    (r"does not satisfy Python|requires-python|Requires-Python", "the package needs another Python: add `--python X`"),
    (r"No solution found|unsatisfiable", "no version satisfies the command"),
)


class PypiRecipe:
    """Installs the packages of one command into an environment of their own."""

    ground: Final = "uv"
    index_tools: tuple[Tool, ...] = ("uv",)

    def __init__(self, command: PackageCommand, env: Mapping[str, str], python: str) -> None:
        """Raises `ToolFailed` if uv is missing."""
        self._command = command
        self._env = env
        self._python = python
        self._uv = find_uv(env)
        self._names = tuple(package_name("PyPI", spec) for spec in command.packages)

    @property
    def index_packages(self) -> Sequence[str]:
        return self._names

    @property
    def readable(self) -> tuple[str, ...]:
        return self._uv, *readable_for(self._python), *readable_certificates(self._env)

    def variables(self, cache: str, *, passes_proxies: bool) -> dict[str, str]:
        return installer_environment(self._env, cache, passes_proxies=passes_proxies)

    def begin(self, folder: str) -> None: ...

    def steps(self, folder: str, final: str) -> Sequence[Step]:
        uv, python = self._uv, self._python
        install = (uv, "pip", "install", "--python", f"{folder}/bin/python", "--only-binary", ":all:", "--")
        # Python would name the temporary directory in its messages, if it were not told the final one.
        compiled = ("-m", "compileall", "-q", "-j", "0", "-s", folder, "-p", final, os.path.join(folder, "lib"))
        return [
            Step((uv, "venv", "--quiet", "--no-project", "--relocatable", "--python", python, folder)),
            Step((*install, *self._command.packages), uses_network=True),
            Step((python, "-I", "-S", *compiled), may_fail=True),
        ]

    def program(self, folder: str) -> FoundProgram:
        # The environment must lead to the same Python after it was moved.
        link = os.path.join(folder, "bin", "python")
        os.unlink(link)
        os.symlink(self._python, link)
        name = self._names[0]
        about = _dist_info(folder, name)
        programs = _programs(about)
        wanted = self._command.program or name
        path = os.path.join("bin", wanted)
        if not os.path.isfile(os.path.join(folder, path)) or wanted.startswith("python"):
            if self._command.program is not None or len(programs) != 1:
                raise no_program(name, self._command.program, programs)
            path = os.path.join("bin", next(iter(programs)))
        version = about.removesuffix(".dist-info").rpartition("-")[2]
        return FoundProgram(path, _interpreter(os.path.join(folder, path)), f"{name} {version}")

    def hint(self, output: str) -> str | None:
        return next((hint for pattern, hint in _HINTS if regex(pattern, 2).search(output)), None)


def _normal(name: str) -> str:
    return regex(r"[-_.]+").sub("_", name).lower()


def _dist_info(folder: str, name: str) -> str:
    """The path of the directory that describes an installed package."""
    library = os.path.join(folder, "lib")
    for version in os.listdir(library):
        packages = os.path.join(library, version, "site-packages")
        for found in os.listdir(packages):
            words, _, _version = found.removesuffix(".dist-info").rpartition("-")
            if found.endswith(".dist-info") and _normal(words) == _normal(name):
                return os.path.join(packages, found)
    raise ToolFailed(f"the package `{name}` was not installed")


def _programs(about: str) -> dict[str, str]:
    """The programs of a package, by name."""
    try:
        with open(os.path.join(about, "entry_points.txt"), encoding="utf-8") as file:
            lines = file.read(_MOST_BYTES).splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found: dict[str, str] = {}
    section = ""
    for line in lines:
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == "console_scripts" and "=" in line:
            name, _, function = line.partition("=")
            if regex(r"\w[\w.+@-]*").fullmatch(name.strip()):  # Any other name could lead out of the installation.
                found[name.strip()] = function.strip()
    return found


def _interpreter(path: str) -> Interpreter:
    with open(path, "rb") as file:
        first, second = file.readline(500), file.readline(500)
    is_python = first.startswith(b"#!") and (b"python" in first or second.startswith(b"'''exec'"))
    return "python" if is_python else "none"
