"""`haft cancel RUN | --all`: asks the host of a run to end it, from any process, and waits for the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from haft.contracts import BadUsage, RunId, is_batch_id
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import history, history_with, recover
from haft.surfaces.cli.screen.printing import facts, lines, say
from haft.surfaces.cli.words.run_completion import complete_run
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import visible

if TYPE_CHECKING:
    from haft.service import History, RunRecord

WAIT_SECONDS: Final = 10.0
_WORD_AFTER: Final = 1.0
_PAUSE: Final = 0.1
_MOST: Final = 10_000


@click.command("cancel", cls=HaftCommand)
@click.argument(
    "run",
    required=False,
    shell_complete=complete_run,
    help="A run: its id, or the beginning of the id; or the id of a batch.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Stop all runs that have not ended. With -w: only the runs of that workspace.",
)
@click.pass_context
def cancel_runs(context: click.Context, run: str | None, everything: bool) -> None:
    """Stop a run, or all runs of a batch, even if another process started it. haft waits up to ten seconds for the
    end."""
    options = context.find_object(Globals) or Globals()
    if (run is None) == (not everything):
        raise BadUsage("`haft cancel` needs a run or `--all`", hint="`haft log --status in-progress` shows what runs")
    with history() if run is None else history_with(run) as kept:
        wanted: Sequence[RunRecord] = []
        if kept is not None:
            wanted = _open_runs(kept, options.workspace) if run is None else _named(kept, run)
        answers = [] if kept is None else _cancel(kept, wanted, options)
    if options.json:
        facts(answers)
    else:
        lines(_result_line(answer) for answer in answers)
        if not answers and not options.quiet:
            say("no run is in progress")
    context.exit(0 if all(answer["ended"] for answer in answers) else 1)


def _named(kept: History, name: str) -> list[RunRecord]:
    """The run with this name, or all runs of the batch with this name, the last call first: no call starts because an
    earlier one has ended."""
    return kept.of_batch(name)[::-1] if is_batch_id(name) else [kept.find(name)]


def _open_runs(kept: History, workspace: str | None) -> list[RunRecord]:
    from haft.service import Filter

    # One query for all statuses: between two queries a run may change its status.
    return kept.runs(Filter(is_open=True, workspace=workspace, limit=_MOST))


def _cancel(kept: History, runs: Sequence[RunRecord], options: Globals) -> list[dict[str, Any]]:
    from haft.service import request_cancel, this_user

    request_cancel(state_home(), kept, runs, this_user())
    ended = _wait(kept, [run.id for run in runs if run.is_open], options)
    return [
        {
            "run": run.id,
            "tool": run.tool,
            "status": ended.get(run.id, run).status,
            "ended": not ended.get(run.id, run).is_open,
            "alreadyEnded": not run.is_open,
        }
        for run in runs
    ]


def _wait(kept: History, runs: Sequence[RunId], options: Globals) -> dict[RunId, RunRecord]:
    """Wait until all runs have ended, for at most `WAIT_SECONDS`, and return them as they are then."""
    began = time.monotonic()
    is_told = options.quiet
    found = {run: kept.find(run) for run in runs}
    while any(run.is_open for run in found.values()) and (passed := time.monotonic() - began) < WAIT_SECONDS:
        if passed > _WORD_AFTER and not is_told:
            say("waiting for the end of the run")
            is_told = True
            recover(state_home())
        time.sleep(_PAUSE)
        found = {name: kept.find(name) if run.is_open else run for name, run in found.items()}
    return found


def _result_line(answer: dict[str, Any]) -> str:
    if answer["alreadyEnded"]:
        return visible(f"{answer['run']} {answer['tool']} had already ended: {answer['status']}")
    if not answer["ended"]:
        return visible(f"{answer['run']} {answer['tool']} has not ended yet: {answer['status']}")
    return visible(f"{answer['run']} {answer['tool']} {answer['status']}")
