"""`haft templates`: checks, packs, installs, lists, builds and removes Agent Studio templates.

These commands run and import nothing of a template, and open no service.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from haft.contracts import BadUsage, HaftError, Rejected
from haft.surfaces.cli.commands.check import RESERVED, lines_of, sum_up
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import require_person
from haft.surfaces.cli.screen.printing import facts, lines, say, table, warn
from haft.surfaces.cli.words.template_places import (
    DEFAULT,
    Places,
    environments_of,
    is_own,
    places_of,
    state_of_template,
)
from haft.surfaces.text.terminal import is_terminal, one_line

if TYPE_CHECKING:
    from haft.authoring.check import Report
    from haft.authoring.studio import TemplateFolder
    from haft.service import TemplateState


def complete_templates(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: the templates, by folder."""
    from click.shell_completion import CompletionItem

    from haft.authoring.studio import templates_in

    found: list[TemplateFolder] = []
    with contextlib.suppress(HaftError):
        found = [one for place in places_of(Globals(quiet=True)).directories for one in templates_in(place)]
    named = [(os.path.basename(one.folder), one.name) for one in found]
    offered = [CompletionItem(folder, help=name) for folder, name in named if folder.startswith(incomplete)]
    return [*offered, CompletionItem(incomplete, type="dir")]


@click.command("check", cls=HaftCommand)
@click.argument(
    "folders", metavar="[DIR]...", nargs=-1, type=click.Path(), help="A template, or a directory of templates."
)
@click.option("--packing", is_flag=True, help="Apply the stricter rules of `haft templates pack`.")
@click.pass_context
def check_templates(context: click.Context, folders: tuple[str, ...], packing: bool) -> None:
    """Find problems in the templates in DIR. Without DIR, check all configured templates. The exit code is 1 if there
    are errors."""
    from haft.authoring.check import check_template

    options = context.find_object(Globals) or Globals()
    wanted = [path for folder in folders or places_of(options).directories for path in _templates_at(folder, folders)]
    reports = [check_template(path, RESERVED, packing=packing) for path in dict.fromkeys(wanted)]
    if options.json:
        facts([report.to_json() for report in reports])
    else:
        lines(line for report in reports for line in lines_of(report))
        if not options.quiet:
            sum_up(reports)
    context.exit(0 if all(report.ok for report in reports) else 1)


def _templates_at(folder: str, named: Sequence[str]) -> list[str]:
    """The templates in a directory. If there are none and the person named the directory, it is checked as a template
    itself."""
    from haft.authoring.studio import templates_in

    if named and not os.path.isdir(folder):
        raise BadUsage(f"{folder} is not a directory", hint="a template is a folder with tool.py and requirements.txt")
    found = [one.folder for one in templates_in(folder)]
    return found or ([folder] if named else [])


@click.command("pack", cls=HaftCommand)
@click.argument(
    "folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(), help="The folder of a template."
)
@click.option("--to", "target", metavar="ZIP", required=True, type=click.Path(), help="The file to write.")
@click.option(
    "--name", metavar="N", help="The name of the template, if there is only one DIR. Default: the folder's name."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.pass_obj
def pack_templates(options: Globals, folders: tuple[str, ...], target: str, name: str | None, force: bool) -> None:
    """Check templates, and write them into one ZIP file without their environments and caches."""
    from haft.authoring.studio import check_for_packing, pack

    if name is not None and len(folders) != 1:
        raise BadUsage(f"`--name` is for one template, but {len(folders)} are given", hint="pack one at a time")
    _require_sound([check_for_packing(folder, name) for folder in folders], options)
    done = pack(folders, os.path.expanduser(target), name=name, force=force)
    if options.json:
        facts(done.to_json())
        return
    lines([one_line(done.file)])
    if not options.quiet:
        for entry in done.templates:
            say(f"packed {entry.name} as {entry.folder}")
        for path in done.hidden:
            warn(f"{path} is packed too: check that it holds no secrets")


def _require_sound(reports: Sequence[Report], options: Globals) -> None:
    """Print the findings. Raises `BadUsage` if there are errors."""
    for report in reports:
        if not (options.quiet and report.ok):
            sys.stderr.writelines(f"{line}\n" for line in lines_of(report, sys.stderr))
    broken = [report.target for report in reports if not report.ok]
    if broken:
        raise BadUsage(
            f"{', '.join(broken)}: nothing was packed, because there are errors",
            hint="`haft tools check --explain CODE` explains a code",
        )


@click.command("install", cls=HaftCommand)
@click.argument(
    "archive", metavar="ZIP", type=click.Path(), help="A ZIP file that `haft templates pack` or Agent Studio wrote."
)
@click.option("--to", "target", metavar="DIR", type=click.Path(), help="Install into this directory of templates.")
@click.option(
    "--workflow", metavar="W", help="Install only for this workflow of Agent Studio. Default: for all workflows."
)
@click.option(
    "--name", metavar="N", help="The name of the template, if the ZIP has only one. Default: its name in the ZIP."
)
@click.pass_obj
def install_templates(
    options: Globals, archive: str, target: str | None, workflow: str | None, name: str | None
) -> None:
    """Install all templates in a ZIP file. If one of them cannot be installed, haft installs none. haft runs no code of
    the templates."""
    from haft.authoring.studio import install

    places = places_of(options)
    place = places.target(target)
    done = install(archive, place, workflow=workflow, name=name)
    if options.json:
        facts([one.to_json() for one in done.templates])
    else:
        lines(one_line(f"installed {one.name} in {one.folder}") for one in done.templates)
    for what in done.left_out:
        warn(f"not installed: {what}")
    if not places.is_configured(place) and not options.quiet:
        say(_how_to_configure(places, place))


def _how_to_configure(places: Places, place: str) -> str:
    is_default = os.path.realpath(place) == os.path.realpath(os.path.join(places.workspace, DEFAULT))
    shown = f"./{DEFAULT}" if is_default else place
    return f'hint: to load the templates in {place}, add `paths = ["{shown}"]` under `[templates]` in haft.toml'


@click.command("list", cls=HaftCommand)
@click.option("--in", "inside", metavar="DIR", type=click.Path(), help="List the templates in this directory instead.")
@click.pass_obj
def list_templates(options: Globals, inside: str | None) -> None:
    """List the templates in the configured directories: name, workflow, environment, folder and problems."""
    from haft.authoring.studio import problems_of, problems_of_name, templates_in

    if inside is not None and not os.path.isdir(inside):
        raise BadUsage(f"{inside} is not a directory")
    places = places_of(options)
    directories = places.directories if inside is None else [os.path.abspath(inside)]
    environments = environments_of(options)
    found: list[tuple[TemplateFolder, list[str], TemplateState]] = []
    usable: list[TemplateFolder] = []
    rows = [_HEADER]
    for one in (one for place in directories for one in templates_in(place)):
        problems, template_state = problems_of(one, usable), state_of_template(one.folder, options, environments)
        found.append((one, problems, template_state))
        rows.append(_row(one, problems, template_state, taken=len(problems_of_name(one, usable))))
        usable += [] if problems else [one]  # Of templates with the same name, the first usable one counts.
    if options.json:
        facts([_facts(*one) for one in found])
        return
    if found:
        table(rows, style_first="bold", cut=False)
    if options.quiet:
        return
    for one, problems, template_state in found:
        for problem in problems:
            say(one_line(f"{one.name} ({one.folder}): {problem}"))
        if template_state.cold is not None:
            say(one_line(f"{one.name} ({one.folder}): a new process for each call: {template_state.cold}"))
    if not places.configured and inside is None:
        say("no directory of templates is configured: list them in `paths` under `[templates]` in haft.toml")
    elif not found:
        say(f"there is no template in {', '.join(directories) or 'the configured directories'}")


_HEADER: Final = ("NAME", "TOOL", "WORKFLOW", "ENVIRONMENT", "FOLDER")


def _row(
    one: TemplateFolder, problems: Sequence[str], template_state: TemplateState, *, taken: int
) -> tuple[str, str, str, str, str]:
    if problems:
        state = "broken" if len(problems) > taken else "duplicate"
    else:
        state = "not built" if template_state.environment is None else "built"
    return (one.name, one.slug, one.workflow or "-", state, one.folder)


def _facts(one: TemplateFolder, problems: Sequence[str], template_state: TemplateState) -> dict[str, Any]:
    return {**one.to_json(problems), "environment": template_state.environment is not None, "cold": template_state.cold}


@click.command("build", cls=HaftCommand)
@click.argument(
    "word", metavar="NAME|DIR", shell_complete=complete_templates, help="The name of a template, or its folder."
)
@click.option(
    "--workflow", metavar="W", help="If several workflows have a template of this name: the template of this workflow."
)
@click.option(
    "--allow-builds",
    is_flag=True,
    help="Also build packages that have no wheel. Such a build runs code of the package's authors.",
)
@click.pass_obj
def build_environment(options: Globals, word: str, workflow: str | None, allow_builds: bool) -> None:
    """Build the environment of a template, if the environment is not up to date. haft runs no code of the template.
    `--allow-builds` remains valid until the template's requirements change."""
    import asyncio

    from haft.authoring.studio import find_template

    if allow_builds:
        require_person("templates build --allow-builds")
    one = find_template(word, places_of(options).directories, workflow=workflow)
    environments = environments_of(options)
    if allow_builds:
        environments.allow_build(one.folder, environments.requirements(one.folder))
    report = (lambda _line: None) if options.quiet else say
    made = asyncio.run(environments.prepare(one.folder, report, may_build=is_own(one.folder, options)))
    if options.json:
        facts({"name": one.name, "folder": one.folder, "environment": made.root})
    else:
        lines([one_line(made.root)])


@click.command("remove", cls=HaftCommand)
@click.argument(
    "word", metavar="NAME|DIR", shell_complete=complete_templates, help="The name of a template, or its folder."
)
@click.option(
    "--workflow", metavar="W", help="If several workflows have a template of this name: the template of this workflow."
)
@click.option("--yes", "is_confirmed", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove_template(options: Globals, word: str, workflow: str | None, is_confirmed: bool) -> None:
    """Remove a template: its folder with everything in it, and its environment."""
    from haft.authoring.studio import find_template, remove

    places = places_of(options)
    one = find_template(word, places.directories, workflow=workflow)
    for name in places.instances_of(one.folder):
        warn(f"`{name}` in `templates.instances` uses this template, and will be broken")
    if not is_confirmed:
        _ask(one)
    remove(one, keeping=[places.workspace])
    if options.json:
        facts({"name": one.name, "workflow": one.workflow, "folder": one.folder})
    else:
        lines([one_line(f"removed {one.name} from {one.folder}")])


def _ask(one: TemplateFolder) -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise Rejected(
            f"{one.folder} is not removed: there is no terminal to ask at",
            hint=f"`haft templates remove {shlex.quote(one.folder)} --yes`",
        )
    import asyncio

    from haft.surfaces.cli.person.line_input import confirm

    say(f"this removes {one.name}: {one.folder} with everything in it")
    if not asyncio.run(confirm("Remove it? [y/N] ")):
        raise Rejected(f"{one.folder} is not removed: you answered no")
