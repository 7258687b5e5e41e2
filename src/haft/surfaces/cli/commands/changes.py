"""`haft changes list|apply|drop`: the held changes of runs, applied or discarded from any process."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from haft.contracts import EXIT_CODES, BadUsage, Outcome, Rejected, UnknownRun, iso_time, path_to_json
from haft.surfaces.cli.commands.diff import print_patch
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.person.change_run import tell_conflicts, wait_for_changes
from haft.surfaces.cli.place import (
    change_sets,
    find_changed,
    history,
    require_person,
    tell_what_is_logged,
)
from haft.surfaces.cli.screen.printing import complain, facts, lines, say, table
from haft.surfaces.cli.words.change_states import WORDS
from haft.surfaces.cli.words.run_completion import complete_changes
from haft.surfaces.cli.words.times import clock
from haft.surfaces.cli.words.workspace_paths import in_workspace
from haft.surfaces.text.terminal import is_terminal, one_line

if TYPE_CHECKING:
    from haft.service import HeldMerge, History, Row

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
@click.option(
    "--merge",
    "merges",
    is_flag=True,
    help="Merge the text files that somebody else has changed too. Show the result, and ask.",
)
@click.option("--yes", "is_confirmed", is_flag=True, help="With --merge: apply the result without a question.")
@click.pass_context
def apply_changes(
    context: click.Context, run: str, paths: tuple[str, ...], *, merges: bool, is_confirmed: bool
) -> None:
    """Apply the held changes of a run to the workspace. `haft diff RUN` shows these changes. With PATH, apply only a
    part of them: the rest stays held.

    If someone has changed the same files in the workspace since the run, haft applies nothing and exits with 5. `haft
    diff RUN` then shows the difference from the present files. To overwrite the present files, run `haft changes apply
    RUN` again. To keep the changes of both sides, use `--merge`: haft merges each text file from three versions (as
    the run found it, as the run left it, and as it is now), shows what would be applied, and asks. If a file is still
    in conflict, haft shows it with conflict markers, applies nothing, and exits with 5."""
    if is_confirmed and not merges:
        raise BadUsage("`--yes` needs `--merge`: without it, haft asks nothing")
    if not merges:
        _settle(context, "apply", run, paths)
    elif paths:
        raise BadUsage("`--merge` merges all changes of a run: call it without PATH")
    else:
        _merge(context, run, is_confirmed=is_confirmed)


@click.command("drop", cls=HaftCommand)
@click.argument("run", shell_complete=complete_changes("held"), help="A run with held changes.")
@click.pass_context
def drop_changes(context: click.Context, run: str) -> None:
    """Discard the held changes of a run. The workspace stays as it is."""
    _settle(context, "drop", run)


def _merge(context: click.Context, run: str, *, is_confirmed: bool) -> None:
    require_person("changes apply")
    options = context.find_object(Globals) or Globals()
    tell_what_is_logged(options)
    from haft.service import still_in_conflict

    row = _held("apply", run)
    merge, outcome = asyncio.run(_perform_merge(row, options, is_confirmed=is_confirmed))
    failure = None if outcome is None else outcome.error
    unmerged = [{**path_to_json(path), "reason": reason} for path, reason in merge.unmerged.items()]
    is_applied = outcome is not None and failure is None
    if options.json:
        facts(
            {
                "run": row.run,
                "state": "committed" if is_applied else "held",
                "files": len(merge.plan.entries),
                "left": 0 if is_applied else row.files,
                "conflicts": [] if outcome is None else [each.to_json() for each in outcome.changes.conflicts],
                "settledBy": None if outcome is None else outcome.run_id,
                "merged": [path_to_json(each.path) for each in merge.merged if each.is_clean],
                "unmerged": unmerged,
                "diff": None if is_applied else "".join(each.text for each in merge.differences if each.text),
            }
        )
    elif is_applied:
        lines([f"{row.run}: {_count(len(merge.plan.entries))} applied, {_count(len(merge.merged))} merged"])
        if not options.quiet:
            say(f"`haft undo {row.run}` takes them back")
    if failure is not None:
        complain(failure.message, failure.hint)
        context.exit(EXIT_CODES.get(failure.code, 1))
    if unmerged:
        error = still_in_conflict(merge)
        complain(error.message, error.hint)
        context.exit(EXIT_CODES["conflict"])


async def _perform_merge(row: Row, options: Globals, *, is_confirmed: bool) -> tuple[HeldMerge, Outcome | None]:
    """Show what a merge would change, and apply it if the person wants it. Returns the merge, and the outcome of the
    run that applied it; None if none did."""
    from haft.service import ToolService
    from haft.surfaces.cli.person.line_input import confirm

    async with ToolService.open(row.workspace, for_changes=True) as service:
        merge = await service.changes.merge(row.run)
        if not options.json:
            print_patch(merge.differences, options)
            for path, reason in merge.unmerged.items():
                say(f"in conflict: {one_line(path)}: {reason}")
        if merge.unmerged:
            return merge, None
        if not is_confirmed:
            if options.json:
                return merge, None
            if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
                raise Rejected(
                    "nothing was applied: there is no terminal to ask at",
                    hint=f"look at the result above, then `haft changes apply {row.run} --merge --yes`",
                )
            if not await confirm("Apply these changes? [y/N] "):
                raise Rejected("nothing was applied: you answered no")
        return merge, await wait_for_changes(service.changes.apply_merge(merge), options)


def _settle(context: click.Context, verb: Verb, run: str, paths: tuple[str, ...] = ()) -> None:
    if verb == "apply":
        require_person("changes apply")
    options = context.find_object(Globals) or Globals()
    tell_what_is_logged(options)
    row = _held(verb, run)
    outcome = asyncio.run(_perform(verb, row, options, [in_workspace(path, row.workspace) for path in paths]))
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


async def _perform(verb: Verb, row: Row, options: Globals, paths: list[str]) -> Outcome:
    from haft.service import ToolService

    async with ToolService.open(row.workspace, for_changes=True) as service:
        run = service.changes.apply(row.run, paths=paths) if verb == "apply" else service.drop(row.run)
        return await wait_for_changes(run, options)
