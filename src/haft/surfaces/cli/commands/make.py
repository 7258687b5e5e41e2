"""`haft tools make NAME`: makes a new tool, and prints how to inspect and run it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from haft.authoring import (
    DEFAULT_KIND,
    KINDS,
    Made,
    ToolKind,
    check_name,
    global_toolbox,
    make,
    obstacles,
    project_folder,
    skill_toolbox,
    toolbox_at,
)
from haft.contracts import BadUsage
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import workspace_of
from haft.surfaces.cli.screen.printing import facts, lines, say, warn
from haft.surfaces.text.terminal import one_line

Function = TypeVar("Function", bound=Callable[..., Any])


def _kind_options(function: Function) -> Function:
    for kind in reversed(KINDS.values()):
        about = f"{kind.about} The default." if kind.word == DEFAULT_KIND else kind.about
        function = click.option(f"--{kind.word}", kind.word.replace("-", "_"), is_flag=True, help=about)(function)
    return function


@click.command("make", cls=HaftCommand)
@click.argument("name", metavar="NAME", help="The name of the tool: letters, digits, `_` and `-`.")
@_kind_options
@click.option("--global", "is_global", is_flag=True, help="Make the tool in your own toolbox, for every workspace.")
@click.option("--skill", metavar="NAME", help="Make the tool in the directory tools/ of this skill.")
@click.option("--to", metavar="DIR", type=click.Path(), help="Make the tool in this directory.")
@click.option("--force", is_flag=True, help="Replace an existing tool.")
@click.pass_obj
def make_tool(
    options: Globals, /, name: str, is_global: bool, skill: str | None, to: str | None, force: bool, **words: bool
) -> None:
    """Make a new tool, with example code that works. Comments in the code explain the format. Replace the example by
    your own code. By default, haft writes a toolbox tool to .agents/tools, a bash plugin to plugins, and a template to
    templates, all in the workspace."""
    kind = _kind(words)
    check_name(name)
    workspace = workspace_of(options)
    directory = _directory(kind, workspace, is_global=is_global, skill=skill, to=to)
    made = make(name, kind, directory, force=force)
    toolbox = toolbox_at(kind, directory, workspace)
    registered = f"tb__{name}" if toolbox is not None or skill is not None else None
    called = made.path if toolbox is None else f"tb__{name}"
    shown = {
        "path": made.path,
        "kind": kind.word,
        "name": name,
        "registered": registered,
        "files": list(made.files),
        "inspect": _command(options, "show", called),
        "run": _first_run(options, called, made.files[-1], workspace),
    }
    if options.json:
        facts(shown)
    else:
        lines([one_line(made.path)])
    for warning in (*made.warnings, *(obstacles(name, toolbox, workspace) if toolbox is not None else ())):
        warn(warning)
    if not options.quiet:
        for note in _notes(made, kind, directory, workspace, skill, is_found=toolbox is not None):
            say(note)
        say(f"inspect it: {shown['inspect']}")
        say(f"run it:     {shown['run']}")


def _first_run(options: Globals, called: str, file: str, workspace: str) -> str:
    """The command line that runs the new tool on its own source file."""
    return f"{_command(options, 'use', called)} --path {shlex.quote(_within(file, workspace))}"


def _kind(words: dict[str, bool]) -> ToolKind:
    chosen = [kind for kind in KINDS.values() if words[kind.word.replace("-", "_")]]
    if len(chosen) > 1:
        raise BadUsage(
            f"{' and '.join(f'`--{kind.word}`' for kind in chosen)} cannot be used together: a tool has one kind"
        )
    return chosen[0] if chosen else KINDS[DEFAULT_KIND]


def _directory(kind: ToolKind, workspace: str, *, is_global: bool, skill: str | None, to: str | None) -> str:
    named = [option for option, given in (("--global", is_global), ("--skill", skill), ("--to", to)) if given]
    if len(named) > 1:
        raise BadUsage(
            f"{' and '.join(f'`{option}`' for option in named)} cannot be used together: a tool is in one place"
        )
    if to is not None:
        if not to:
            raise BadUsage("`--to` is empty", hint="`--to .` is the current directory")
        return os.path.abspath(os.path.expanduser(to))
    if named and kind.format != "amp-toolbox":
        raise BadUsage(
            f"`--{kind.word}` and `{named[0]}` cannot be used together: haft looks only for toolbox tools there",
            hint=f"without `{named[0]}` the tool goes into {kind.home}; `--to DIR` gives another directory",
        )
    if skill is not None:
        return skill_toolbox(skill, workspace, os.environ)
    return global_toolbox(os.environ) if is_global else project_folder(kind, workspace)


def _notes(
    made: Made, kind: ToolKind, directory: str, workspace: str, skill: str | None, *, is_found: bool
) -> Iterator[str]:
    if kind.format == "bash-plugin":
        yield "to load it, in haft.toml:"
        yield f"    plugins = [{_toml('bash:' + _setting(made.path, workspace))}]"
        yield "    plugin_policy.allow_bash_tools = true"
    elif kind.format == "agent-studio":
        yield f"to load it, in haft.toml: templates.paths = [{_toml(_setting(directory, workspace))}]"
    elif skill is not None:
        yield f"to load it: haft skills activate {shlex.quote(skill)}"
    elif not is_found:
        yield f"to load it, in haft.toml: toolbox.paths = [{_toml(_setting(directory, workspace))}]"


def _toml(text: str) -> str:
    """A text as a TOML string: like JSON, but without surrogate pairs, and with DEL as an escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _command(options: Globals, verb: str, called: str) -> str:
    at = [] if options.workspace is None else ["-w", options.workspace]
    return shlex.join(["haft", "tools", verb, *at, called])


def _within(path: str, workspace: str) -> str:
    """The path as a tool's argument: relative to the workspace if it is inside, else unchanged."""
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(workspace))
    return path if relative.startswith("..") else relative


def _setting(path: str, workspace: str) -> str:
    """The path as a value in haft.toml. A path in the workspace becomes relative to the workspace, with a leading `./`;
    any other path is unchanged."""
    relative = _within(path, workspace)
    return relative if os.path.isabs(relative) or relative == "." else f"./{relative}"
