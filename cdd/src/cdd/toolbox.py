"""`cdd-toolbox`: writes CDD's toolbox executables, `cdd-init`, `cdd-start` and so on, into a directory.

The executables are files in the package, in `wrappers`. This module writes every file of that folder.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from importlib import resources

import click

from cdd import files
from cdd.program import ReportingCommand
from cdd.refusals import Refused


@dataclass(frozen=True, slots=True)
class Wrapper:
    """One executable of the package."""

    name: str
    content: bytes


def wrappers() -> list[Wrapper]:
    """The executables in this version of the package, sorted by name. Hidden files and folders are left out."""
    folder = resources.files("cdd").joinpath("wrappers")
    if not folder.is_dir():
        return []
    found = [one for one in folder.iterdir() if one.is_file() and not one.name.startswith((".", "__"))]
    return sorted((Wrapper(one.name, one.read_bytes()) for one in found), key=lambda one: one.name)


UNPINNED = b"'program': ['cdd'],"
"""How an executable of the package names its program: without a path, so that it is found in PATH."""


def pinned(one: Wrapper, program: str) -> Wrapper:
    """The executable, changed so that it starts the program at this path and does not search PATH."""
    return Wrapper(one.name, one.content.replace(UNPINNED, f"'program': [{program!r}],".encode(), 1))


def own_program() -> str:
    """The path of the `cdd` that was installed with this program; if there is none, of the `cdd` in PATH."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "cdd")
    found = beside if os.access(beside, os.X_OK) else shutil.which("cdd")
    if found is None:
        raise Refused("The program cdd was not found.", "install cdd, or leave out --pin.")
    return found


def place(directory: str, wanted: list[Wrapper], *, force: bool) -> list[str]:
    """Write all executables, or none if one would overwrite a different file and `force` is not set. Returns the paths
    of the executables."""
    os.makedirs(directory, exist_ok=True)
    paths = [os.path.join(directory, one.name) for one in wanted]
    folders = [path for path in paths if os.path.isdir(path)]
    if folders:
        raise Refused(f"{folders[0]} is a folder.", "move it away, or choose another directory.")
    if not force:
        differing = [path for path, one in zip(paths, wanted, strict=True) if _differs(path, one.content)]
        if differing:
            listed = "".join(f"\n  {path}" for path in differing)
            raise Refused(
                f"These files exist and differ, so nothing was written:{listed}", "to overwrite them: --force."
            )
    for path, one in zip(paths, wanted, strict=True):
        if os.path.islink(path) or _differs(path, one.content) or not os.path.exists(path):
            files.write(path, one.content)
        os.chmod(path, 0o755)  # noqa: S103 - a toolbox is for whoever may enter the directory
    return paths


@click.command(cls=ReportingCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--to", "directory", required=True, metavar="DIR", help="The directory for the executables. It is made if missing."
)
@click.option("--pin", is_flag=True, help="Make them run this installation of cdd, not the one in PATH.")
@click.option("--force", is_flag=True, help="Overwrite files that exist and differ.")
def main(directory: str, pin: bool, force: bool) -> None:
    """Write CDD's toolbox executables into a directory, one for each command of cdd.

    An agent host finds them there through the variable AMP_TOOLBOX.

    \b
    Example:
      cdd-toolbox --to ~/.config/amp/tools
      AMP_TOOLBOX=~/.config/amp/tools my-agent
    """
    wanted = [pinned(one, own_program()) for one in wrappers()] if pin else wrappers()
    if not wanted:
        hint = "generate them where cdd is built, then install cdd again."
        raise Refused("This installation of cdd has no toolbox executables.", hint)
    directory = os.path.expanduser(directory)
    if not directory:
        raise Refused("The directory's name is empty.", "give one: cdd-toolbox --to DIR")
    if os.path.lexists(directory) and not os.path.isdir(directory):
        raise Refused(f"{directory} is not a directory.", "choose another one.")
    for path in place(directory, wanted, force=force):
        click.echo(path)


def _differs(path: str, content: bytes) -> bool:
    """Whether something other than this content is at the path. Links are followed."""
    if not os.path.lexists(path):
        return False
    if not os.path.isfile(path):
        return True
    with open(path, "rb") as file:
        return file.read(len(content) + 1) != content


if __name__ == "__main__":
    main(prog_name="cdd-toolbox")
