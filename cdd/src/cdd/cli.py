"""The commands. Each checks its arguments, calls a module, and prints what was done.

Results go to standard output, remarks to standard error. Exit codes: 0 done, 1 refused, 2 wrong usage.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import click

from cdd import __version__, decisions, names, tracks
from cdd import agents as skills
from cdd import pack as packing
from cdd import view as viewing
from cdd.program import Count, DocumentedArgument, ReportingGroup, is_at_terminal, standard_input
from cdd.recital import recital
from cdd.refusals import Refused, visible
from cdd.workspace import current_workspace

_SETTINGS: Final = {"help_option_names": ["-h", "--help"]}


def _track_name(explanation: str, *, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    metavar = "NAME" if required else "[NAME]"
    return click.argument(
        "track_name", cls=DocumentedArgument, metavar=metavar, required=required, explanation=explanation
    )


def _named_or_only(track_name: str | None) -> tracks.Track:
    return (
        tracks.only_active(current_workspace()) if track_name is None else tracks.find(current_workspace(), track_name)
    )


@click.group(cls=ReportingGroup, context_settings=_SETTINGS)
def main() -> None:
    """Context-driven development: keep the context of a piece of work, a track, as files under .context/.

    \b
    The life of a track:
      cdd init                              once in a workspace
      cdd start add-login                   makes .context/tracks/add-login
      cdd recite add-login                  what to do next
      cdd log add-login "Tokens, because…"  a decision and its reason
      cdd archive add-login                 when no task is open

    Track names have letters, digits, '-', '_', inner spaces and inner dots.
    """


@main.command()
def init() -> None:
    """Make .context/ in this directory, with a first track, setup.

    The folder has tracks, the archive, specs, product.md, tech-stack.md and domain.md. The command makes what is
    missing and changes nothing else, so you can call it at any time. It does not make the track setup again after you
    archived it.

    \b
    Example:
      cdd init && cdd recite setup
    """
    workspace = current_workspace()
    made = [*workspace.make_folders(), *workspace.write_documents()]
    track = tracks.start_setup(workspace)
    if track:
        made.append(os.path.relpath(track.path, workspace.root) + "/")
    for path in made:
        click.echo(f"made {path}")
    if track:
        click.echo(f"Next: cdd recite {track.name}")
    if not made:
        click.echo("Everything exists already; nothing was changed.")


@main.command()
@_track_name("The new track's name, as in add-login.")
def start(track_name: str) -> None:
    """Start a track: make its folder and its files.

    They are spec.md, plan.md, decisions.md, current_state.md and metadata.json, in .context/tracks/NAME.

    \b
    Example:
      cdd start add-login
    """
    name = names.checked(track_name)
    workspace = current_workspace()
    is_fresh = not os.path.lexists(workspace.context)
    track = tracks.start(workspace, name)
    if is_fresh:
        click.echo("Made the folder .context, which did not exist; `cdd init` adds its documents.", err=True)
    earlier = tracks.archived_as(workspace, name)
    if earlier:
        click.echo(f"A track of this name is archived: .context/archive/{earlier[-1].name}", err=True)
    next_one = f"cdd recite {names.as_word(name)}"
    click.echo(f"Started '{name}' in {os.path.relpath(track.path)}. Write spec.md and plan.md, then: {next_one}")


@main.command()
@_track_name("The track; without it, the only active one.", required=False)
def recite(track_name: str | None) -> None:
    """Print what is next in a plan, and how to go on.

    It prints the first section of plan.md that still has an open task, a line like `- [ ] what to do`.

    \b
    Example:
      cdd recite add-login
    """
    click.echo(visible(recital(_named_or_only(track_name))))


@main.command()
@_track_name("The track that the decision belongs to; without it, the only active one.", required=False)
@click.argument(
    "message",
    cls=DocumentedArgument,
    metavar="[MESSAGE]",
    required=False,
    explanation="The decision and its reason; without it, standard input is read.",
    or_stdin=True,
)
def log(track_name: str | None, message: str | None) -> None:
    """Add a decision to a track's decisions.md.

    The entry begins with the time (UTC). A message of several lines is one entry: the lines after the first are
    indented. Write a message that begins with a dash after `--`.

    \b
    Examples:
      cdd log add-login "Sessions in the database, because two servers share them"
      git log -1 --format=%B | cdd log add-login
      git log -1 --format=%B | cdd log
    """
    track = _named_or_only(track_name)
    decisions.log(track, standard_input(decisions.LONGEST + 1) if message is None else message)
    click.echo(f"Logged to {visible(os.path.relpath(track.path))}/decisions.md")


@main.command()
@_track_name("The track that is finished.")
def archive(track_name: str) -> None:
    """Move a finished track to .context/archive.

    Refuses while plan.md has open tasks, and lists them. Prints how long the track took.

    \b
    Example:
      cdd archive add-login
    """
    track, took = tracks.archive(current_workspace(), track_name)
    click.echo(f"Archived as {os.path.relpath(track.path)} after {took}.")


@main.command()
@_track_name("The track to show; without it, the tracks are listed.", required=False)
@click.option("--archived", is_flag=True, help="Archived tracks instead of active ones.")
@click.option("--spec", is_flag=True, help="Show spec.md.")
@click.option("--plan", is_flag=True, help="Show plan.md.")
@click.option("--log", is_flag=True, help="Show decisions.md.")
@click.option("--raw", is_flag=True, help="Print the files unchanged, without headings; of lists, only the names.")
@click.option("--inbox", is_flag=True, help="Show .context/inbox.md, the notes that belong to no track. Use it alone.")
def view(track_name: str | None, archived: bool, spec: bool, plan: bool, log: bool, raw: bool, inbox: bool) -> None:
    """List the tracks, or show one.

    For a track, it shows the next tasks of its plan and all files, or only the chosen files. With a chosen file and no
    NAME, it shows the only active track. Name an archived track by its former name, which shows the newest of that
    name, or by its folder.

    \b
    Examples:
      cdd view
      cdd view add-login --spec --plan
      cdd view --archived
      cdd view add-login --plan --raw > plan-copy.md
    """
    chosen = [file for file, is_chosen in (("spec.md", spec), ("plan.md", plan), ("decisions.md", log)) if is_chosen]
    if track_name is not None:
        track_name = names.checked(track_name)
    workspace = current_workspace().required()
    if inbox:
        if track_name is not None or archived or chosen:
            raise click.UsageError("--inbox belongs to no track: use it alone, or with --raw.")
        viewing.show_inbox(workspace, raw=raw)
    elif track_name is not None:
        track = tracks.find_archived(workspace, track_name) if archived else tracks.find(workspace, track_name)
        viewing.show_track(track, chosen, raw=raw)
    elif chosen and not archived:
        viewing.show_track(tracks.only_active(workspace), chosen, raw=raw)
    elif chosen:
        raise Refused("With --archived, a file needs a track.", "name a track that `cdd view --archived` lists.")
    else:
        found = tracks.archived(workspace) if archived else tracks.active(workspace)
        viewing.show_tracks(found, are_archived=archived, raw=raw)


@main.command()
@click.option("--install", is_flag=True, help="Write the skills; without it, they are listed.")
@click.option("--target", type=click.Choice(list(skills.TARGETS)), help="The agent to install for.")
@click.option("--all", is_flag=True, help="All agents.")
def agents(install: bool, target: str | None, all: bool) -> None:  # noqa: A002 - the option's name is the parameter's
    """Install CDD's agent skills, or list them.

    \b
    Targets and their folders:
      agent        .agent/skills
      agents       .agents/skills
      antigravity  .agent/workflows
      claude       .claude/skills
      gemini       .gemini/skills
      cursor       .cursor/rules

    If a file exists and differs, a copy is kept beside the new one, as .bak.

    \b
    Examples:
      cdd agents
      cdd agents --install --target claude
    """
    if target is not None and all:
        raise click.UsageError("--target and --all exclude each other.")
    if install and target is None and not all:
        raise Refused("--install needs an agent.", f"add --target {'|'.join(skills.TARGETS)}, or --all.")
    wanted = skills.skill_files([target] if target else list(skills.TARGETS))
    root = os.getcwd()
    if install:
        for done in skills.install(root, wanted):
            word = "kept" if done.state == "current" else "wrote"
            click.echo(f"{word} {done.place.path}" + (f" (the former one is {done.kept})" if done.kept else ""))
        return
    viewing.show_skills(root, wanted)


YES = "cdd.yes"


def _remember_yes(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Keep `--yes` out of the command's parameters. The command asks only a person at a terminal, so the tool that
    wraps the command needs no such parameter."""
    context.meta[YES] = value


@main.command()
@_track_name("The active track to remove.")
@click.option("--yes", is_flag=True, expose_value=False, callback=_remember_yes, help="Do not ask.")
@click.pass_context
def delete(context: click.Context, track_name: str) -> None:
    """Remove an active track and all its files.

    This cannot be undone; `cdd archive` keeps the files. On a terminal, it asks first.

    \b
    Example:
      cdd delete add-login
    """
    track = tracks.find(current_workspace(), track_name)
    if not context.meta[YES] and is_at_terminal():
        click.confirm(f"Remove track '{track.name}' and all its files?", abort=True)
    tracks.delete(current_workspace(), track.name)
    click.echo(f"Deleted '{track.name}'.")


@main.command()
def version() -> None:
    """Print the version.

    \b
    Example:
      cdd version
    """
    click.echo(__version__)


@main.command()
@click.option("-f", "--focus", required=True, metavar="TEXT", help="What you are about to do, in a few words.")
@click.option("-l", "--limit", type=Count("paragraphs"), metavar="N", help="The most paragraphs shown. Default: all.")
@click.option("-r", "--raw", is_flag=True, help="Plain text, on a terminal too.")
def pack(focus: str, limit: int | None, raw: bool) -> None:
    """Print the paragraphs of the specs that fit a text.

    They come from .context/specs, best first, grouped by file. Rare words count more than common ones. The search
    compares words only: use the words that the specifications use.

    \b
    Examples:
      cdd pack --focus "expiry of session tokens"
      cdd pack --focus "expiry of session tokens" --limit 5
    """
    if not focus.strip():
        raise Refused("The focus is empty.", 'say what you are about to do: --focus "expiry of session tokens".')
    library = packing.read_specs(current_workspace())
    for name, reason in library.skipped:
        click.echo(visible(f"skipped .context/specs/{name}: {reason}"), err=True)
    if not library.paragraphs:
        click.echo("There are no specifications in .context/specs. Put them there, one subject in each file.")
        return
    found = packing.ranked(library.paragraphs, focus)
    if not found:
        click.echo(visible(f"Nothing in .context/specs fits '{focus}'. Try the words that the specifications use."))
    elif limit is not None:
        click.echo(f"showing {min(limit, len(found))} of {len(found)}\n")
    viewing.show_packed(packing.grouped(found[:limit]), raw=raw)


if __name__ == "__main__":
    main(prog_name="cdd")
