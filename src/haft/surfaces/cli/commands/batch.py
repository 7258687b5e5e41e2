"""`haft tools batch`: several calls at once, from a file to the exit code.

`words.batch_file` reads the file, the service checks the calls and keeps their order; this module asks the person and
prints.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from haft.contracts import Approver, BadUsage, Event, Outcome
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.screen.printing import data, facts, lines, say
from haft.surfaces.cli.screen.waiting import tell_waiting
from haft.surfaces.cli.words.batch_file import read_batch
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import is_terminal, one_line, styled, visible

if TYPE_CHECKING:
    from haft.service import BatchPlan, BatchRun, ToolService
    from haft.surfaces.cli.person.interrupts import Interrupts


@click.command("batch", cls=HaftCommand)
@click.argument("file", metavar="FILE|-", type=click.Path(), help="A file with the calls. -: read them from stdin.")
@click.option("--dry-run", is_flag=True, help="Call nothing. Print in which groups the calls would run, and why.")
@click.option("--stream", is_flag=True, help="Print each event of every call as one line of JSON, as it comes.")
@click.option("--approve", is_flag=True, help="Approve the calls that need approval.")
@click.option(
    "--wait",
    metavar="SECONDS",
    help="How long calls wait for approval, from this terminal or from another process (`haft approve`). "
    "Default: `approval.expires_seconds`; without a terminal, 0.",
)
@click.option(
    "--thread", metavar="T", help="The thread that the calls belong to. Default: the thread of this terminal."
)
@click.option("--no-cache", is_flag=True, help="Run the tools, even if answers of equal calls are kept.")
@click.option(
    "--isolation",
    metavar="snapshot|serial",
    help="How each call is isolated from other callers, as with `haft tools use`. Default: as a rule or the setting "
    "changes.isolation says.",
)
@click.pass_context
def call_batch(
    context: click.Context,
    file: str,
    dry_run: bool,
    stream: bool,
    approve: bool,
    wait: str | None,
    thread: str | None,
    no_cache: bool,
    isolation: str | None,
) -> None:
    """Make several calls at once. FILE has a JSON array of calls, or one call a line: `{"tool": …, "args": {…}}`.

    The effects and outcomes are those that the order of the list gives: a call waits for an earlier call if one of the
    two may change a file that the other one may use. The other calls run at once. A failed call stops no other call,
    unless the other one names it in `after`. A call can also have `id`, `after` (a list of ids) and `timeout`.

    If several calls need approval, haft shows them together at the terminal and asks once.

    If stdout is not a terminal, haft prints the outcomes as JSON, in the order of the list. The exit code is 0 if all
    calls are done, else that of the first call in the list that is not."""
    options = context.find_object(Globals) or Globals()
    from haft.service import ToolService
    from haft.surfaces.cli.person.approver import TerminalApprover, approve_all, terminal_approver
    from haft.surfaces.cli.person.interrupts import Interrupts
    from haft.surfaces.cli.place import (
        agent_of_this_process,
        require_person,
        tell_ignored,
        tell_what_is_logged,
        workspace_of,
    )
    from haft.surfaces.cli.screen.display import Collected
    from haft.surfaces.cli.screen.progress import Progress
    from haft.surfaces.cli.words.threads import terminal_thread, thread_lifetime
    from haft.surfaces.cli.words.use_options import isolation_of, seconds_of

    if stream and dry_run:
        raise BadUsage("`--stream` and `--dry-run` cannot be used together")
    seconds = seconds_of("--wait", wait)
    call_options = {"isolation": isolation_of(isolation), "uses_cache": not no_cache}
    if approve:
        require_person("tools batch --approve")
    calls = read_batch(file)
    terminal = terminal_thread()
    interrupts = Interrupts((lambda _text: None) if options.quiet else say)
    workspace = workspace_of(options)
    approver: Approver | None = approve_all if approve else None
    if approver is None and not dry_run and agent_of_this_process() is None:
        display = Collected(Progress(quiet=options.quiet), None, json=options.json)
        approver = terminal_approver(interrupts, workspace, display, thread_lifetime(thread, terminal))
    asks = approver is not None and approver is not approve_all
    service = ToolService.open(
        workspace,
        approver=approver,
        approves_connections=asks,
        answers_questions=asks,
        thread=thread or terminal,
        settings={} if seconds is None and approver is not None else {"approval.expires_seconds": seconds or 0.0},
    )
    tell_ignored(service.config, options, is_brief=True)
    tell_what_is_logged(options)
    if dry_run:
        _show_plan(asyncio.run(_plan(service, calls)), options)
        return
    turn = approver.turn if isinstance(approver, TerminalApprover) and is_terminal(sys.stdout) else None
    printer = _Printer(options, stream=stream, tells_waiting=not options.quiet and approver is None)
    outcomes = asyncio.run(_perform(service, calls, call_options, printer, interrupts, turn))
    context.exit(_exit_code(outcomes))


async def _plan(service: ToolService, calls: Sequence[Any]) -> BatchPlan:
    async with service:
        return await service.plan_batch(calls)


async def _perform(
    service: ToolService,
    calls: Sequence[Any],
    options: Mapping[str, Any],
    printer: _Printer,
    interrupts: Interrupts,
    turn: asyncio.Lock | None,
) -> Sequence[Outcome]:
    """Make the calls with these options, and print them. `turn` is held while the person at the terminal is asked."""
    async with service:
        with interrupts:
            batch = service.batch(calls, **options)
            interrupts.cancels(batch.cancel)
            printer.begin(batch)
            try:
                async for event in batch:
                    async with turn or contextlib.nullcontext():
                        await asyncio.to_thread(printer.show, event, batch)
                outcomes = await batch
                await asyncio.to_thread(printer.end, batch, outcomes)
            except BrokenPipeError:
                # Nobody reads the output any more, so the calls need not go on.
                batch.cancel(service.principal)
                await batch
                raise
    return outcomes


def _exit_code(outcomes: Sequence[Outcome]) -> int:
    """The exit code of the first call in the list that is not done."""
    return next((outcome.process_exit_code or 1 for outcome in outcomes if not outcome.ok), 0)


class _Printer:
    """Prints a batch: every event for `--stream`, the outcomes in their order for a person, all at the end as JSON."""

    def __init__(self, options: Globals, *, stream: bool, tells_waiting: bool) -> None:
        self._stream = stream
        self._json = options.json or not is_terminal(sys.stdout)
        self._quiet = options.quiet
        self._tells_waiting = tells_waiting
        self._printed = 0

    def begin(self, batch: BatchRun) -> None:
        """Print the batch's id, with which others can cancel it."""
        if not self._quiet:
            say(f"batch {batch.id}")

    def show(self, event: Event, batch: BatchRun) -> None:
        if self._stream:
            data(to_json_text({"batch": batch.id, "id": batch.id_of(event.run), **event.to_json()}) + "\n")
        elif not self._json and event.type == "outcome":
            self._print_ended(batch)
        if self._tells_waiting:
            tell_waiting(event)

    def _print_ended(self, batch: BatchRun) -> None:
        """Print the outcomes that can be printed without changing their order."""
        while self._printed < len(batch.runs) and (outcome := batch.runs[self._printed].outcome) is not None:
            _show_outcome(batch.ids[self._printed], outcome)
            self._printed += 1

    def end(self, batch: BatchRun, outcomes: Sequence[Outcome]) -> None:
        if self._stream:
            return
        if self._json:
            listed = [{"id": name, **each.to_json()} for name, each in zip(batch.ids, outcomes, strict=True)]
            facts({"batch": batch.id, "outcomes": listed})
            return
        self._print_ended(batch)
        if not self._quiet:
            done = sum(outcome.ok for outcome in outcomes)
            changed = any(outcome.changes.state == "committed" for outcome in outcomes)
            undo = f"; `haft undo {batch.id}` undoes its changes" if changed else ""
            say(f"{done} of {len(outcomes)} calls of the batch are done{undo}")


def _show_outcome(name: str, outcome: Outcome) -> None:
    lines([styled(one_line(f"{name}: {outcome.tool} {outcome.status}"), "bold", sys.stdout)])
    if outcome.output:
        data(visible(outcome.output) + ("" if outcome.output.endswith("\n") else "\n"))
    if outcome.error is not None:
        lines([visible(f"{outcome.error.code}: {outcome.error.message}")])
        if outcome.error.hint is not None:
            lines([visible(f"hint: {outcome.error.hint}")])
    lines(visible(f"note: {note}") for note in outcome.notes)


def _show_plan(plan: BatchPlan, options: Globals) -> None:
    if options.json or not is_terminal(sys.stdout):
        facts(plan.to_json())
        return
    for number, group in enumerate(plan.groups, 1):
        lines([styled(f"group {number}", "bold", sys.stdout)])
        for each in plan.calls:
            if each.call.id not in group:
                continue
            lines([one_line(f"  {each.call.id}: {each.call.tool}")])
            lines(one_line(f"    after {name}: {reason}") for name, reason in each.waits_for)
            if each.problem is not None:
                lines([one_line(f"    problem: {each.problem}")])
