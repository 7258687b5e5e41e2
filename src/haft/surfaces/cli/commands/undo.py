"""`haft undo` and `haft redo`: undo or redo the changes of runs, from any process.

Packages of lower layers decide and move files; this module prints, path by path, what happened or what is in conflict.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import click

from haft.contracts import EXIT_CODES, BadUsage, HaftError, Outcome, UnknownRun
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.person.change_run import MOST, tell_conflicts, wait_for_changes
from haft.surfaces.cli.person.line_input import confirm
from haft.surfaces.cli.place import (
    change_sets,
    find_changed,
    history,
    tell_what_is_logged,
    workspace_of,
    workspace_quietly,
)
from haft.surfaces.cli.screen.printing import complain, facts, lines, say
from haft.surfaces.cli.words.run_completion import complete_changes
from haft.surfaces.cli.words.times import since
from haft.surfaces.cli.words.usage_errors import RUNS_HINT
from haft.surfaces.text.terminal import is_terminal, one_line

CONFLICT: Final = EXIT_CODES["conflict"]


@dataclass(frozen=True, slots=True)
class UndoOptions:
    """The runs to undo or redo, as the command line gives them."""

    direction: Literal["undo", "redo"]
    runs: tuple[str, ...]
    thread: str | None = None
    since: float | None = None
    dry_run: bool = False
    force: bool = False

    @property
    def past(self) -> str:
        return "undone" if self.direction == "undo" else "redone"


_DRY_RUN = click.option("--dry-run", is_flag=True, help="Only print the plan and the conflicts.")
_FORCE = click.option(
    "--force", is_flag=True, help="Also overwrite files with later changes. haft keeps the overwritten content."
)


@click.command("undo", cls=HaftCommand)
@click.argument(
    "runs",
    nargs=-1,
    metavar="[RUN|BATCH]...",
    shell_complete=complete_changes("committed"),
    help="A run: its id, or the beginning of the id; or the id of a batch. Default: your last run that changed "
    "something.",
)
@click.option("--thread", metavar="T", help="Undo all changes of this thread in this workspace.")
@click.option(
    "--since",
    "after",
    metavar="T",
    help="Undo only changes since this time: `10m` (ten minutes ago), `2h`, a date or an ISO time. "
    "Without --thread: the changes of everybody in this workspace.",
)
@_DRY_RUN
@_FORCE
@click.pass_context
def undo_runs(
    context: click.Context, runs: tuple[str, ...], thread: str | None, after: str | None, dry_run: bool, force: bool
) -> None:
    """Undo the file changes of one or more runs. haft undoes all these changes, or none.

    Without RUN, haft undoes your last run in this workspace that changed something and is not undone yet. If you repeat
    the command, haft undoes the next older run. With `--since`, haft first shows what it would undo; on a terminal, it
    asks before it does so.

    Later changes to other files stay. If someone changed the same files after the run, haft changes nothing, prints the
    conflicts, and exits with 5. `haft redo` brings the changes back."""
    if runs and (thread is not None or after is not None):
        raise BadUsage("`haft undo` takes runs, or `--thread` and `--since`, not both")
    earliest = None if after is None else since(after)
    _reverse(context, UndoOptions("undo", runs, thread, earliest, dry_run, force))


@click.command("redo", cls=HaftCommand)
@click.argument(
    "runs",
    nargs=-1,
    metavar="RUN...",
    shell_complete=complete_changes("undone"),
    help="A run that was undone.",
)
@_DRY_RUN
@_FORCE
@click.pass_context
def redo_runs(context: click.Context, runs: tuple[str, ...], dry_run: bool, force: bool) -> None:
    """Bring back file changes that were undone. RUN is the run that was undone, not the run of `haft undo`."""
    if not runs:
        raise _needs_run(context.find_object(Globals) or Globals())
    _reverse(context, UndoOptions("redo", runs, dry_run=dry_run, force=force))


def _needs_run(options: Globals) -> BadUsage:
    """The error for `haft redo` without a run. haft never guesses the run; the hint names the most likely one."""
    from haft.service import user_name

    with history(), change_sets() as changes:
        here = os.path.realpath(workspace_of(options))
        last = None if changes is None else changes.ledger.last_undone(here, user_name())
    hint = RUNS_HINT if last is None else f"`haft redo {last.run}` redoes the last run that was undone here"
    return BadUsage("`haft redo` needs the run that was undone", hint=hint)


def _reverse(context: click.Context, undo_options: UndoOptions) -> None:
    options = context.find_object(Globals) or Globals()
    tell_what_is_logged(options)
    workspace, undo_options = _find_runs(undo_options, options)
    shape, outcome, is_wanted = asyncio.run(_perform(workspace, undo_options, options))
    failure = None if outcome is None else outcome.error
    if failure is not None and failure.code != "conflict":
        complain(failure.message, failure.hint)
        if options.json:
            facts({"error": failure.to_json()})
        context.exit(EXIT_CODES.get(failure.code, 1))
    has_conflicts = bool(shape["conflicts"])
    if options.json:
        facts(shape)
    elif not is_wanted:
        say("nothing was undone")
    elif not has_conflicts:
        lines(_result_lines(shape, undo_options))
        if undo_options.force and shape["undo"] is not None and shape["plan"] and not options.quiet:
            say(f"`haft undo {shape['undo']}` brings back the content that `--force` replaced")
    if has_conflicts:
        _tell_conflict(shape, undo_options, options)
    context.exit(CONFLICT if has_conflicts else 0)


def _find_runs(undo_options: UndoOptions, options: Globals) -> tuple[str, UndoOptions]:
    """The workspace that the runs changed, and the options with full run names. If the person named runs, these may
    belong to any workspace."""
    from haft.service import changed_since, nothing_to, rows_for, user_name, with_batches

    here = "" if undo_options.runs else os.path.realpath(workspace_of(options))
    with history() as kept, change_sets() as changes:
        if kept is None or changes is None:
            if undo_options.runs:
                raise UnknownRun(undo_options.runs[0])
            raise BadUsage(f"there is nothing to undo in {here}")
        given = with_batches(undo_options.runs, changes.ledger, kept, undo_options.direction)
        names = [find_changed(kept, changes, name)[0] for name in given]
        for name in names:
            known = changes.ledger.get(name) is not None or changes.ledger.of_parent(name) or kept.made_by(name)
            if not known:
                raise nothing_to(undo_options.direction, kept.find(name))
        if undo_options.since is not None:
            rows = changed_since(changes.ledger, here, undo_options.thread, undo_options.since)
            return here, replace(undo_options, runs=tuple(row.run for row in rows), thread=None)
        rows = rows_for(
            changes.ledger, here, user_name(), names, undo_options.thread, undo_options.direction, kept.made_by
        )
    if undo_options.runs:
        _tell_elsewhere(rows[0].workspace, options)
    return rows[0].workspace, replace(undo_options, runs=tuple(names))


def _tell_elsewhere(workspace: str, options: Globals) -> None:
    """Print a message if the runs belong to another workspace, because a short name may match a run that the person did
    not mean."""
    with contextlib.suppress(HaftError):
        if options.quiet or os.path.realpath(workspace_quietly(options)) == os.path.realpath(workspace):
            return
    say(f"the run is of another workspace: {workspace}")


async def _perform(
    workspace: str, undo_options: UndoOptions, options: Globals
) -> tuple[dict[str, Any], Outcome | None, bool]:
    """Undo or redo. Returns what was or would be done, as JSON; the outcome of the run that did it, or None if no run
    did it; and whether the person wants it."""
    from haft.service import ToolService

    async with ToolService.open(workspace, for_changes=True) as service:
        if undo_options.dry_run or undo_options.since is not None:
            found = await asyncio.to_thread(
                lambda: service.look_ahead(
                    undo_options.direction, *undo_options.runs, thread=undo_options.thread, force=undo_options.force
                )
            )
            shape = found.to_json(None)
            if undo_options.dry_run or found.conflicts:
                return shape, None, True
            if not await _is_wanted(shape, undo_options, options):
                return shape, None, False
        if undo_options.direction == "undo":
            run = service.undo(*undo_options.runs, thread=undo_options.thread, force=undo_options.force)
        else:
            run = service.redo(*undo_options.runs, force=undo_options.force)
        outcome = await wait_for_changes(run, options)
        return outcome.result or {}, outcome, True


async def _is_wanted(shape: dict[str, Any], undo_options: UndoOptions, options: Globals) -> bool:
    """Show the plan, and ask for a yes if a person sits at the terminal."""
    asks = is_terminal(sys.stdin) and is_terminal(sys.stderr)
    if asks or not options.quiet:
        for line in _result_lines(shape, undo_options):
            say(line)
    return not asks or await confirm("Undo? [y/N] ")


def _result_lines(shape: dict[str, Any], undo_options: UndoOptions) -> Iterator[str]:
    names = _run_names(shape["runs"])
    if shape["undo"] is None:
        yield f"would {undo_options.direction} {names}"
    else:
        yield f"{names} {undo_options.past} by {shape['undo']}"
    yield from _plan_lines(shape["plan"], undo_options)


def _run_names(runs: Sequence[str]) -> str:
    return ", ".join(runs) if len(runs) <= 5 else f"{', '.join(runs[:4])} and {len(runs) - 4} more"


def _plan_lines(plan: Sequence[dict[str, str]], undo_options: UndoOptions) -> Iterator[str]:
    # A redo writes the newer content, so "restore" would be the wrong word.
    words = {"restore": "rewrite"} if undo_options.direction == "redo" else {}
    if not plan:
        yield "  nothing to do: every path has that content already"
    moved = [step for step in plan if step["action"] != "keep"]
    stays = [step for step in plan if step["action"] == "keep"]
    for steps, after in ((moved, ""), (stays, ": it holds files of others")):
        yield from (
            f"  {words.get(step['action'], step['action']):<7} {one_line(step['path'])}{after}" for step in steps[:MOST]
        )
        if len(steps) > MOST:
            yield f"  and {len(steps) - MOST:_} more"


def _tell_conflict(shape: dict[str, Any], undo_options: UndoOptions, options: Globals) -> None:
    """Print the conflicts, and the plan that was not carried out."""
    conflicts = shape["conflicts"]
    if not options.quiet:
        tell_conflicts(conflicts)
        say(f"to {undo_options.direction} {_run_names(shape['runs'])} means:")
        for line in _plan_lines(shape["plan"], undo_options):
            say(line)
    count = "a path was" if len(conflicts) == 1 else f"{len(conflicts):_} paths were"
    later = list(dict.fromkeys(each["by"] for each in conflicts if each["by"] != "outside"))
    first = f"`haft undo {' '.join(later[:5])}` first, or " if later else ""
    complain(
        f"{_run_names(shape['runs'])} cannot be {undo_options.past}: {count} changed again since; nothing was touched",
        f"{first}use `--force`: haft keeps the content that it replaces",
    )
