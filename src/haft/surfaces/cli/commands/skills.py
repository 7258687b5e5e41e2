"""`haft skills`: lists, shows, activates, makes and installs skills.

These commands open no service. They run files of a skill only to describe its tools, and only if the skill is active.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from haft.contracts import BadUsage, HaftError
from haft.surfaces.cli.commands.tools import listings
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import tell_what_is_logged, workspace_of
from haft.surfaces.cli.screen.printing import data, facts, lines, say, table, warn
from haft.surfaces.cli.screen.skill_words import (
    activation_lines,
    change_of,
    fact_of,
    file_lines,
    hides,
    listed_summary,
    state_of,
    summary,
    tools_by_readiness,
    why_not,
)
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import is_terminal, one_line, visible

if TYPE_CHECKING:
    from haft.service import Activations, Skill, Skills


def _opened(options: Globals) -> tuple[Skills, Activations]:
    from haft.service import Activations, Skills, check_workspace

    home = state_home().path
    workspace = check_workspace(workspace_of(options), home)
    tell_what_is_logged(options)
    return Skills(workspace), Activations(home, workspace)


def complete_skills(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: the skills that can be used."""
    from click.shell_completion import CompletionItem

    found: list[Skill] = []
    with contextlib.suppress(HaftError):
        found = _opened(Globals(quiet=True))[0].found()
    return [
        CompletionItem(skill.name, help=summary(skill))
        for skill in found
        if skill.is_usable and skill.name.startswith(incomplete)
    ]


@click.command("list", cls=HaftCommand)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also list broken skills, and skills that another skill of the same name hides, each with the reason.",
)
@click.pass_obj
def list_skills(options: Globals, everything: bool) -> None:
    """List the skills, each with its origin, and say which of them are active."""
    skills, activations = _opened(options)
    found = skills.found()
    shown = [skill for skill in found if everything or skill.is_usable]
    if options.json:
        facts([fact_of(skill, activations) for skill in shown])
        return
    table(
        [
            (skill.name, skill.provenance, state_of(skill, activations), why_not(skill) or listed_summary(skill, found))
            for skill in shown
        ],
        style_first="bold",
        cut=not everything,  # Reasons are never cut.
    )
    if len(shown) < len(found) and not options.quiet:
        say(f"{len(found) - len(shown)} more cannot be used: `haft skills list --all` says why")


@click.command("show", cls=HaftCommand)
@click.argument("name", shell_complete=complete_skills, help="A skill.")
@click.argument(
    "reference",
    required=False,
    metavar="[REFERENCE]",
    help="The path of another text in the skill's folder, or the name of a file in references/.",
)
@click.pass_obj
def show_skill(options: Globals, name: str, reference: str | None) -> None:
    """Show the SKILL.md of a skill, or another text of the skill."""
    skills, activations = _opened(options)
    skill = skills.get(name)
    text = skills.text(skill, reference)
    if not options.json:
        data(visible(text) if is_terminal(sys.stdout) else text)
        _tell_hidden(skill, skills, options)
        return
    servers = _servers(skill)
    facts(
        {
            **fact_of(skill, activations),
            "references": skill.references(),
            "tools": skill.tool_files(),
            "mcpServers": servers,
            "reference": reference,
            "text": text,
        }
    )


@click.command("activate", cls=HaftCommand)
@click.argument("name", shell_complete=complete_skills, help="A skill.")
@click.option("--thread", metavar="T", help="Only in this thread. Default: in the whole workspace.")
@click.pass_obj
def activate_skill(options: Globals, name: str, thread: str | None) -> None:
    """Make the tools of a skill available, in the workspace or in one thread. This approves no calls: haft decides
    about each call as usual."""
    skills, activations = _opened(options)
    skill = skills.get(name)
    _require_thread(thread)
    changed = activations.activate(skill.folder, thread)
    # haft must describe the skill's tools to know which of them are ready.
    servers = _servers(skill)
    has_tools = bool(skill.tool_files() or servers)
    ready, others = tools_by_readiness(skill, listings(options, thread=thread)) if has_tools else ([], {})
    if options.json:
        facts(change_of(name, thread, ready, others, servers, active=True, changed=changed))
        return
    where = _where(thread)
    lines([one_line(f"{name} is {'now' if changed else 'already'} active in {where}")])
    lines(activation_lines(ready, others, "is now available" if changed else "is available"))
    _tell_hidden(skill, skills, options)


@click.command("deactivate", cls=HaftCommand)
@click.argument("name", shell_complete=complete_skills, help="A skill.")
@click.option("--thread", metavar="T", help="Only in this thread. Default: in the whole workspace.")
@click.pass_obj
def deactivate_skill(options: Globals, name: str, thread: str | None) -> None:
    """Make the tools of a skill unavailable again."""
    skills, activations = _opened(options)
    _require_thread(thread)
    # All folders of this name that were activated, also those that are deleted, broken or hidden by another skill now.
    active = {folder for folder in activations.anywhere() if os.path.basename(folder) == name}
    skill = None if active and not _is_there(skills, name) else skills.get(name)
    if skill is not None:
        active.add(skill.folder)
    gone = [folder for folder in sorted(active) if activations.deactivate(folder, thread)]
    changed = bool(gone)
    files = [file for one in skills.last_found() if one.folder in gone for file in one.tool_files()]
    if options.json:
        is_active = bool(active & activations.of(thread))
        facts(change_of(name, thread, files, active=is_active, changed=changed))
        return
    where = _where(thread)
    lines([one_line(f"{name} is no longer active in {where}" if changed else f"{name} was not active in {where}")])
    if changed:
        lines(file_lines(files, "is no longer available"))
    left = [each for folder in active for each in activations.threads(folder)]
    if thread is not None and active & activations.of(None):
        say(f"it is active in the workspace, so in every thread: `haft skills deactivate {name}`")
    elif thread is None and left:
        count = f"{len(left)} thread{'s' * (len(left) > 1)}"
        say(f"it is still active in {count}: `--thread {one_line(shlex.quote(left[-1]))}`")


@click.command("make", cls=HaftCommand)
@click.argument("name", help="The name: at most 64 characters of a-z, 0-9 and `-`.")
@click.option("--global", "is_global", is_flag=True, help="Write to ~/.config/agents/skills instead of .agents/skills.")
@click.option("--description", metavar="D", help="What the skill teaches, and when to use it.")
@click.option("--force", is_flag=True, help="Overwrite an existing SKILL.md.")
@click.pass_obj
def make_skill(options: Globals, name: str, is_global: bool, description: str | None, force: bool) -> None:
    """Make a new skill. Its SKILL.md explains the format."""
    from haft.authoring.skills import check_name, write_skill

    check_name(name)
    with _place(options, is_global=is_global) as place:
        folder = write_skill(place, name, description, force=force)
    if options.json:
        facts({"name": name, "folder": folder})
        return
    lines(
        [
            one_line(f"made {folder}"),
            one_line(f"write: {os.path.join(folder, 'SKILL.md')}"),
            f"show:  haft skills show {name}",
            f"tools: haft tools make NAME --skill {name}, then haft skills activate {name}",
        ]
    )


@click.command("install", cls=HaftCommand)
@click.argument(
    "source",
    type=click.Path(),
    help="A folder with a SKILL.md, a folder that contains such folders, or an archive of either folder (.zip, .tar "
    "or .tar.gz).",
)
@click.option("--global", "is_global", is_flag=True, help="Write to ~/.config/agents/skills instead of .agents/skills.")
@click.option("--force", is_flag=True, help="Replace skills of the same name.")
@click.pass_obj
def install_skill(options: Globals, source: str, is_global: bool, force: bool) -> None:
    """Install all skills in SOURCE. If one of them cannot be installed, haft installs none. haft runs no code of the
    skills."""
    from haft.authoring.skills import install

    if not source:
        raise BadUsage("the source has an empty name", hint="a folder with a SKILL.md, a .zip or a .tar.gz")
    tell_what_is_logged(options)
    with _place(options, is_global=is_global) as place:
        done = install(source, place, force=force)
    if options.json:
        facts([one.to_json() for one in done])
        return
    for one in done:
        lines([one_line(f"{'replaced' if one.replaced else 'installed'} {one.name} in {one.folder}")])
        lines(one_line(f"  with the executable {path}") for path in one.executables)
    if any(one.executables for one in done) and not options.quiet:
        say("`haft skills activate NAME` makes its tools available; their calls need approval")


def _servers(skill: Skill) -> list[str]:
    from haft.service import server_names

    try:
        return server_names(skill)
    except BadUsage as error:
        warn(error.message)
        return []


def _place(options: Globals, *, is_global: bool) -> contextlib.AbstractContextManager[str]:
    from haft.authoring.skills import make_place
    from haft.service import check_workspace

    home = os.path.expanduser("~")
    workspace = "" if is_global else check_workspace(workspace_of(options), state_home().path)
    return make_place(workspace, home, is_global=is_global)


def _is_there(skills: Skills, name: str) -> bool:
    return any(skill.name == name and skill.is_usable for skill in skills.last_found())


def _require_thread(thread: str | None) -> None:
    if thread is not None and not (0 < len(thread) <= 200):
        raise BadUsage("a thread has a name of 1 to 200 characters")


def _where(thread: str | None) -> str:
    return "the workspace" if thread is None else f"the thread {thread}"


def _tell_hidden(skill: Skill, skills: Skills, options: Globals) -> None:
    hidden = hides(skill, skills.last_found())
    if hidden is not None and not options.quiet:
        say(one_line(f"this is the workspace's `{skill.name}` in {skill.folder}, which {hidden}"))
