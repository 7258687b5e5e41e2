"""A program that a person starts with `haft run`, and where its executable is found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence

from haft.contracts import NO_GRANTS, BadUsage, Grants, Mount, Stream, Terminal
from haft.values import dataclass, field

MODULES = "/node_modules/"


@dataclass(frozen=True, slots=True)
class AgentFiles:
    """The files of an agent that haft knows. Each run of the agent works on a private copy of them."""

    title: str
    """The agent's name, for people."""
    places: tuple[tuple[str, str], ...]
    """Its files and directories with configuration, logins and history: the absolute path of each, and its usual path
    below the home directory, such as `.claude`, which `carried` and `deciding_keys` use."""
    carried: tuple[str, ...] = ()
    """Glob patterns of files that decide nothing later, such as logins and history. Changes of them are carried back
    when the agent has ended. Changes of all other files are held."""
    not_carried: tuple[str, ...] = ()
    """Glob patterns of files among `carried` that decide something later. Changes of them are held."""
    dropped: tuple[str, ...] = ()
    """Glob patterns of files that the agent makes again when it needs them. Changes of them are neither carried back
    nor held."""
    deciding_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """JSON files that hold both: for each, the top-level keys that decide what runs later."""


@dataclass(frozen=True, slots=True)
class CarriedBack:
    """What became of the changes to an agent's own files."""

    carried: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    held_by: str | None = None
    """The id of the change set with the held changes."""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program, and how it runs."""

    argv: tuple[str, ...]
    cwd: str = "."
    """A directory in the workspace, relative to it."""
    grants: Grants = NO_GRANTS
    timeout: float | None = None
    """The deadline in seconds; None if the program may run as long as it wants."""
    holds: bool = True
    """Whether its changes are held until a person applies or drops them. If not, they are committed at the end."""
    terminal: Terminal | None = None
    stdin: bytes = b""
    """What the program reads first, if it has no terminal."""
    input: int | None = None
    """A descriptor that the program reads as its stdin, if it has no terminal."""
    on_output: Callable[[Stream, bytes], None] | None = field(default=None, compare=False)
    """Called with each piece of output, if the program has no terminal."""
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    agent: AgentFiles | None = None
    on_carried: Callable[[CarriedBack], None] | None = field(default=None, compare=False)
    """Called when the changes to the agent's own files were carried back or held."""


def find_executable(name: str, directory: str, env: Mapping[str, str]) -> str:
    """The path of a program, as a shell in `directory` would find it. Raises `BadUsage` if there is none."""
    if os.sep in name:
        found = os.path.normpath(os.path.join(directory, name))
        if not os.path.exists(found):
            raise BadUsage(f"`{name}` cannot be run: there is no such file")
        if not os.access(found, os.X_OK) or os.path.isdir(found):
            raise BadUsage(f"`{name}` cannot be run: it is not executable", hint=f"run `chmod +x {name}`")
        return found
    path = shutil.which(name, path=env.get("PATH", os.defpath))
    if path is None:
        raise BadUsage(
            f"`{name}` was not found", hint=f"install `{name}`, add its directory to PATH, or give its full path"
        )
    return os.path.join(directory, path)


def files_of(executable: str) -> Sequence[str]:
    """The paths that must be readable to run an executable: its own file, the file that it links to, and for a program
    of npm the directory with all its packages."""
    real = os.path.realpath(executable)
    found = [executable, real]
    if MODULES in real:
        found.append(real[: real.index(MODULES) + len(MODULES) - 1])
    return tuple(dict.fromkeys(found))
