"""How packages of one registry are installed. `npm` and `pypi` have the two recipes, `installing` carries them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from haft.contracts import ToolFailed
from haft.sandbox import Tool
from haft.toolsets.providers.packages.places import Interpreter
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One command of an installation."""

    argv: Sequence[str]
    uses_network: bool = False
    may_fail: bool = False


@dataclass(frozen=True, slots=True)
class FoundProgram:
    """The program of an installed package."""

    path: str
    """Relative to the directory of the installation."""
    interpreter: Interpreter
    version: str
    """The package and its version."""
    without_scripts: tuple[str, ...] = ()


class Recipe(Protocol):
    """Installs one command's packages into a directory."""

    @property
    def ground(self) -> str:
        """The name of the directory for downloads."""
        ...

    @property
    def index_tools(self) -> tuple[Tool, ...]:
        """The tools whose configured package indexes are reached."""
        ...

    @property
    def index_packages(self) -> Sequence[str]: ...

    @property
    def readable(self) -> tuple[str, ...]: ...

    def variables(self, cache: str, *, passes_proxies: bool) -> dict[str, str]: ...

    def begin(self, folder: str) -> None:
        """Write the files that the steps need."""
        ...

    def steps(self, folder: str, final: str) -> Sequence[Step]:
        """The commands that install into `folder`, which will be moved to `final`."""
        ...

    def program(self, folder: str) -> FoundProgram:
        """The program of the installed package. Raises `ToolFailed` if there is no such program."""
        ...

    def hint(self, output: str) -> str | None:
        """What to do about a failure, from the output of the failed command."""
        ...


def no_program(package: str, wanted: str | None, programs: Mapping[str, str]) -> ToolFailed:
    """The error for a package that has no such program."""
    has = ", ".join(f"`{name}`" for name in sorted(programs)[:10]) or "none"
    which = f"no program `{wanted}`" if wanted is not None else "no single program to run"
    return ToolFailed(f"the package `{package}` has {which}; its programs: {has}")
