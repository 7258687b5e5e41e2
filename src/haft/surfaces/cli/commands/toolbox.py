"""`haft toolbox`: writes toolbox executables for the commands of any program, and for any tool of haft."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from haft.contracts import BadUsage
from haft.surfaces.cli.commands.tools import complete_names, find_listing, listings
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import tell_what_is_logged, workspace_of
from haft.surfaces.cli.screen.printing import facts, lines, say, warn
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import one_line

if TYPE_CHECKING:
    from haft.authoring.toolbox import Command, Form, WrittenExecutable


@click.command("wrap", cls=HaftCommand)
@click.option(
    "--click", "as_click", metavar="M:OBJ", help="OBJ in the module M: a click command or group, or a typer app."
)
@click.option(
    "--argparse",
    "as_argparse",
    metavar="M:FUNC",
    help="FUNC in the module M: an argparse parser, or a function that returns a parser.",
)
@click.option("--spec", metavar="FILE", type=click.Path(), help="A TOML file that describes any program.")
@click.option(
    "--to",
    "directory",
    metavar="DIR",
    required=True,
    type=click.Path(),
    help="The directory to write the executables to.",
)
@click.option("--prefix", metavar="P", help="The prefix of the tools' names. Default: the program's name and `-`.")
@click.option("--program", metavar="NAME", help="The program to run. Default: the installed script of the module.")
@click.option(
    "--python",
    metavar="PATH",
    help="The Python interpreter that can import the module. Default: the interpreter that runs haft.",
)
@click.option(
    "--pin",
    is_flag=True,
    help="Store the full path of the program now. Without this option, each call looks for the program on PATH.",
)
@click.option("--force", is_flag=True, help="Replace existing files of the same names.")
@click.pass_obj
def wrap_program(
    options: Globals,
    as_click: str | None,
    as_argparse: str | None,
    spec: str | None,
    directory: str,
    prefix: str | None,
    program: str | None,
    python: str | None,
    pin: bool,
    force: bool,
) -> None:
    """Write a toolbox executable for each command of a program. haft reads the commands from a click or typer object,
    an argparse parser, or a TOML file. The executables need only Python, and find the program on PATH."""
    from haft.authoring.toolbox import pinned, wrap

    given = [option for option, value in (("click", as_click), ("argparse", as_argparse), ("spec", spec)) if value]
    if len(given) != 1:
        raise BadUsage("`haft toolbox wrap` needs one of `--click`, `--argparse` and `--spec`")
    if spec is not None:
        commands = _from_file(spec, program, prefix)
    else:
        reference = as_click or as_argparse or ""
        form: Form = "click" if as_click else "argparse"
        commands = _from_python(options, form, reference, program, prefix, python, pin=pin)
    first, *rest = commands[0]["program"]
    if rest[:1] == ["-m"] and not options.quiet:
        warn(
            f"the executables run `python -m {rest[1]}`, which works only if Python finds the module: install it, "
            "or give `--program`"
        )
        if os.path.isabs(first) and not pin and python is None:
            warn(
                f"`python3` on PATH does not have `{rest[1]}`, so the executables run {first}, which may not exist on "
                "other machines: `--python NAME` chooses a Python on PATH that has the module, `--pin` keeps this one"
            )
    if pin:
        commands = pinned(commands, _where(first, python))
    _tell(wrap(commands, os.path.abspath(os.path.expanduser(directory)), force=force), options)


def _from_file(spec: str, program: str | None, prefix: str | None) -> list[Command]:
    from haft.authoring.toolbox import read_spec_file

    commands = read_spec_file(spec, prefix=prefix)
    return [{**command, "program": [program]} for command in commands] if program else commands


def _from_python(
    options: Globals,
    form: Form,
    reference: str,
    program: str | None,
    prefix: str | None,
    python: str | None,
    *,
    pin: bool,
) -> list[Command]:
    from haft.authoring.toolbox import introspect_commands
    from haft.service import probe_launcher

    tell_what_is_logged(options)
    with probe_launcher(workspace_of(options), state_home()) as launcher:
        ask = functools.partial(
            introspect_commands,
            form,
            reference,
            launcher,
            program=[program] if program else None,
            prefix=prefix,
            here=True,
        )
        commands = asyncio.run(ask(python=python)).commands
        if python is None and not pin and commands[0]["program"][1:2] == ["-m"]:
            # The path of haft's own Python differs between machines. So prefer the Python on PATH if it has the module.
            with contextlib.suppress(BadUsage):
                asyncio.run(ask(python=shutil.which("python3") or "python3"))
                commands = [{**one, "program": ["python3", *one["program"][1:]]} for one in commands]
    return commands


def _where(program: str, python: str | None) -> str:
    """The full path of a program: from PATH, else from the directory of the interpreter `python`."""
    beside = os.path.join(os.path.dirname(python or sys.executable), program)
    found = shutil.which(program) or shutil.which(beside)
    if found is None:
        raise BadUsage(f"`{program}` cannot be pinned: it is not on PATH", hint="`--program PATH` gives its path")
    return found


@click.command("export", cls=HaftCommand)
@click.argument(
    "names",
    metavar="[NAME]...",
    nargs=-1,
    shell_complete=complete_names,
    help="The name of a tool. Default: all tools.",
)
@click.option(
    "--to",
    "directory",
    metavar="DIR",
    required=True,
    type=click.Path(),
    help="The directory to write the executables to.",
)
@click.option("--force", is_flag=True, help="Replace existing files of the same names.")
@click.pass_obj
def export_tools(options: Globals, names: tuple[str, ...], directory: str, force: bool) -> None:
    """Write a toolbox executable for each tool that haft lists. The executable calls haft. So approval, limits, undo
    and the audit log apply to each of its calls. If haft loads such an executable as a tool, haft calls the original
    tool directly."""
    from haft.authoring.toolbox import export

    if names:
        wanted = [find_listing(name, options) for name in dict.fromkeys(names)]
    else:
        every = [one for one in listings(options) if one.enabled]
        wanted = [one for one in every if one.spec.provenance != "embedded" and "export" not in one.spec.meta]
    for one in wanted:
        if not one.enabled:
            raise BadUsage(f"`{one.spec.name}` cannot be called: {one.why_not}")
    workspace = os.path.realpath(workspace_of(options))
    if f"{os.path.realpath(os.path.expanduser(directory))}/".startswith(workspace.rstrip("/") + "/"):
        warn(f"{directory} is in the workspace: exports do not work there, since haft refuses calls from inside a call")
    _tell(export(wanted, os.path.abspath(os.path.expanduser(directory)), workspace, force=force), options)


def _tell(placed: list[WrittenExecutable], options: Globals) -> None:
    if options.json:
        facts([one.to_json() for one in placed])
        return
    lines(one_line(one.path) for one in placed)
    if not options.quiet and placed:
        directory = os.path.dirname(placed[0].path)
        count = "1 executable" if len(placed) == 1 else f"{len(placed)} executables"
        names = _found_here(directory, placed, options)
        if names:
            say(f"{count}; haft finds them here as {', '.join(names)}")
        else:
            say(f"{count}; to load them: AMP_TOOLBOX={directory}, or `toolbox.paths` in haft.toml")


def _found_here(directory: str, placed: list[WrittenExecutable], options: Globals) -> list[str]:
    """The tool names that the executables have in this workspace; empty if their directory is not a toolbox of this
    workspace."""
    from haft.service import ListedTools

    return ListedTools(workspace_of(options), state_home()).names_in(directory, [one.name for one in placed])
