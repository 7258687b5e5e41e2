"""`haft changes list|apply|drop`: the held changes of runs, applied or discarded from any process."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Literal

import click

from haft.contracts import EXIT_CODES, BadUsage, Outcome, UnknownRun, iso_time
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.person.change_run import tell_conflicts, wait_for_changes
from haft.surfaces.cli.place import (
    change_sets,
    current_directory,
    find_changed,
    history,
    require_person,
    tell_what_is_logged,
)
from haft.surfaces.cli.screen.printing import complain, facts, lines, say, table
from haft.surfaces.cli.words.change_states import WORDS
from haft.surfaces.cli.words.run_completion import complete_changes
from haft.surfaces.cli.words.times import clock

if TYPE_CHECKING:
    from haft.service import History, Row

Verb = Literal["apply", "drop"]


@click.command("list", cls=HaftCommand)
@click.pass_obj
def list_held(options: Globals) -> None:
    """List the runs with held changes, newest first, each with the reason. With `-w`, list only the runs of that
    workspace."""
    tell_what_is_logged(options)
    workspace = None if options.workspace is None else os.path.realpath(options.workspace)
    held: list[tuple[Row, str | None]] = []
    with history() as kept, change_sets() as changes:
        if kept is not None and changes is not None:
            held = [(row, _tool(kept, row.run)) for row in reversed(changes.ledger.all(workspace, "held"))]
    if options.json:
        facts([_shape(row, tool) for row, tool in held])
    elif held:
        table([(row.run, clock(row.at), _count(row.files), tool or "–", row.reason or "") for row, tool in held])
    elif not options.quiet:
        say("no run has held changes")


def _tool(kept: History, run: str) -> str | None:
    try:
        return kept.find(run).tool
    except UnknownRun:
        return None


def _shape(row: Row, tool: str | None) -> dict[str, Any]:
    return {
        "run": row.run,
        "tool": tool,
        "workspace": row.workspace,
        "who": row.who,
        "thread": row.thread,
        "parent": row.parent,
        "engine": row.engine,
        "files": row.files,
        "reason": row.reason,
        "heldAt": iso_time(row.at),
    }


def _count(files: int) -> str:
    return "1 path" if files == 1 else f"{files:_} paths"


@click.command("apply", cls=HaftCommand)
@click.argument("run", shell_complete=complete_changes("held"), help="A run with held changes.")
@click.argument(
    "paths",
    nargs=-1,
    type=click.Path(),
    metavar="[PATH]...",
    help="Apply only the changes of these paths, and of everything below them.",
)
@click.pass_context
def apply_changes(context: click.Context, run: str, paths: tuple[str, ...]) -> None:
    """Apply the held changes of a run to the workspace. `haft diff RUN` shows these changes. With PATH, apply only a
    part of them: the rest stays held.

    If someone has changed the same files in the workspace since the run, haft applies nothing and exits with 5. `haft
    diff RUN` then shows the difference from the present files. To overwrite the present files, run `haft changes apply
    RUN` again."""
    _settle(context, "apply", run, paths)


@click.command("drop", cls=HaftCommand)
@click.argument("run", shell_complete=complete_changes("held"), help="A run with held changes.")
@click.pass_context
def drop_changes(context: click.Context, run: str) -> None:
    """Discard the held changes of a run. The workspace stays as it is."""
    _settle(context, "drop", run)


def _settle(context: click.Context, verb: Verb, run: str, paths: tuple[str, ...] = ()) -> None:
    if verb == "apply":
        require_person("changes apply")
    options = context.find_object(Globals) or Globals()
    tell_what_is_logged(options)
    row = _held(verb, run)
    outcome = asyncio.run(_perform(verb, row, options, [_in_workspace(path, row.workspace) for path in paths]))
    left: int = 0 if outcome.result is None else outcome.result.get("left", 0)
    applied = len(outcome.changes.files) if left else row.files
    failure = outcome.error
    if failure is not None and failure.code != "conflict":
        complain(failure.message, failure.hint)
        if options.json:
            facts({"error": failure.to_json()})
        context.exit(EXIT_CODES.get(failure.code, 1))
    conflicts = [conflict.to_json() for conflict in outcome.changes.conflicts]
    if options.json:
        state = outcome.result["state"]
        facts(
            {
                "run": row.run,
                "state": state,
                "files": applied,
                "left": left,
                "conflicts": conflicts,
                "settledBy": outcome.run_id,
            }
        )
    elif failure is None:
        rest = f", {_count(left)} still held" if left else ""
        lines([f"{row.run}: {_count(applied)} {'applied' if verb == 'apply' else 'dropped'}{rest}"])
        if verb == "apply" and not options.quiet:
            say(f"`haft undo {outcome.run_id if left else row.run}` takes them back")
    if failure is not None:
        if not options.quiet:
            tell_conflicts(conflicts)
        complain(failure.message, failure.hint)
        context.exit(EXIT_CODES["conflict"])


def _held(verb: Verb, name: str) -> Row:
    """The change set of a run. Raises `BadUsage` if the run has no held changes. This is checked before `apply` or
    `drop` starts a run of its own, so that no run is recorded only for this error."""
    from haft.service import nothing_to

    with history() as kept, change_sets() as changes:
        if kept is None or changes is None:
            raise UnknownRun(name)
        found, record = find_changed(kept, changes, name)
        row = changes.ledger.get(found)
    if row is None:
        raise UnknownRun(name) if record is None else nothing_to(verb, record)
    if row.state != "held":
        hint = f"`haft undo {row.run}` takes them back" if row.state == "committed" else None
        raise BadUsage(f"{row.run} has no held changes: its changes are {WORDS.get(row.state, row.state)}", hint=hint)
    return row


def _in_workspace(path: str, workspace: str) -> str:
    """A path that the person named, relative to the workspace. If the current directory is not in the workspace, the
    path is taken as relative to the workspace already."""
    here = os.path.realpath(current_directory())
    inside = workspace.rstrip("/") + "/"
    if not os.path.isabs(path) and not f"{here}/".startswith(inside):
        return os.path.normpath(path)
    found = os.path.normpath(os.path.join(here, path))
    if not f"{found}/".startswith(inside):
        raise BadUsage(f"`{path}` is not in the workspace {workspace}")
    return os.path.relpath(found, workspace)


async def _perform(verb: Verb, row: Row, options: Globals, paths: list[str]) -> Outcome:
    from haft.service import ToolService

    async with ToolService.open(row.workspace, for_changes=True) as service:
        run = service.changes.apply(row.run, paths=paths) if verb == "apply" else service.drop(row.run)
        return await wait_for_changes(run, options)
