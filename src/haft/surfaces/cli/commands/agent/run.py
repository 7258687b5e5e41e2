"""`haft agent run` and `haft agent resume`: a sub-agent that a person starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from haft.contracts import BadUsage, Event, Outcome
from haft.surfaces.cli.commands.agent.types import complete_agents
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import (
    agent_of_this_process,
    require_person,
    tell_ignored,
    tell_what_is_logged,
    workspace_of,
)
from haft.surfaces.cli.screen.printing import facts, say
from haft.surfaces.cli.screen.task_lines import task_lines
from haft.surfaces.cli.words.run_completion import complete_run

if TYPE_CHECKING:
    from haft.service import Run, ToolService
    from haft.surfaces.cli.person.interrupts import Interrupts
    from haft.surfaces.cli.screen.display import Display

MOST_TIMES = 20


@click.command("run", cls=HaftCommand)
@click.argument("prompt", help="The task, and what the sub-agent is to report.")
@click.option("--agent", metavar="TYPE", shell_complete=complete_agents, help="The type of sub-agent. Default: `work`.")
@click.option("--model", metavar="M", default="", help="The model. Default: that of the type, or `subagents.model`.")
@click.option("--context", "given", metavar="TEXT", help="Facts that the sub-agent needs. It takes them as data.")
@click.option("--approve", is_flag=True, help="Approve the calls of the sub-agent that need approval.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long a call waits for approval, from this terminal or from another process (`haft approve`). Default: "
    "`approval.expires_seconds`; without a terminal, 0.",
)
@click.option(
    "--try",
    "trial",
    is_flag=True,
    help="Let the sub-agent work in a layer of its own; then show its changes, and ask whether to apply them.",
)
@click.option(
    "--times",
    type=click.IntRange(1, MOST_TIMES),
    default=1,
    metavar="N",
    help="With --try: start N sub-agents side by side, each in a layer of its own; then choose.",
)
@click.pass_context
def run_agent(
    context: click.Context,
    prompt: str,
    agent: str | None,
    model: str,
    given: str | None,
    approve: bool,
    wait: float | None,
    trial: bool,
    times: int,
) -> None:
    """Start a sub-agent. haft shows its calls on stderr as they come, and prints its report on stdout.

    Each call of the sub-agent is a call like any other: haft decides about it, and records it. `haft undo TASK` takes
    back all that the sub-agent changed, and only that."""
    if times > 1 and not trial:
        raise BadUsage("`--times` needs `--try`", hint="then each sub-agent works in a layer of its own")
    if times > 1 and approve:
        raise BadUsage("`--times` and `--approve` cannot be used together", hint="choose one of the runs at the end")

    def start(service: ToolService) -> Run:
        return service.tasks.start(prompt, context=given, agent=agent, model=model, trial=trial)

    _perform(context, start, approve=approve, wait=wait, times=times)


@click.command("resume", cls=HaftCommand)
@click.argument("task", shell_complete=complete_run, help="The run of the task: its id, or the beginning of the id.")
@click.argument("prompt", required=False, help="What the sub-agent is told. Default: to go on.")
@click.option("--model", metavar="M", default="", help="The model. Default: that of the type, or `subagents.model`.")
@click.option("--approve", is_flag=True, help="Approve the calls of the sub-agent that need approval.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long a call waits for approval, from this terminal or from another process (`haft approve`). Default: "
    "`approval.expires_seconds`; without a terminal, 0.",
)
@click.pass_context
def resume_agent(
    context: click.Context, task: str, prompt: str | None, model: str, approve: bool, wait: float | None
) -> None:
    """Go on with a task that has ended: because its host was killed, its budget was spent, its model failed, or you
    have another question. The sub-agent knows the whole conversation, and gets a new budget. No call that has ended is
    repeated."""

    def start(service: ToolService) -> Run:
        return service.tasks.resume(task, prompt, model=model)

    _perform(context, start, approve=approve, wait=wait)


def _perform(
    context: click.Context,
    start: Callable[[ToolService], Run],
    *,
    approve: bool,
    wait: float | None,
    times: int = 1,
) -> None:
    """Start the task, show it until it ends, and exit with its exit code."""
    from haft.service import ToolService
    from haft.surfaces.cli.person.approver import approve_all, terminal_approver
    from haft.surfaces.cli.person.interrupts import Interrupts
    from haft.surfaces.cli.screen.display import Collected, Live, tell_changes, tell_failure, tell_notes
    from haft.surfaces.cli.screen.progress import Progress
    from haft.surfaces.cli.words.threads import terminal_thread, thread_lifetime

    options = context.find_object(Globals) or Globals()
    if approve:
        require_person("agent run --approve")
    interrupts = Interrupts((lambda _text: None) if options.quiet else say)
    workspace, thread = workspace_of(options), terminal_thread()
    # The lines of the task say more than its progress messages.
    progress = Progress(quiet=True)
    display: Display = Collected(progress, None, json=True) if options.json else Live(progress)
    approver: Any = approve_all if approve else None
    if approver is None and times == 1 and agent_of_this_process() is None:
        approver = terminal_approver(interrupts, workspace, display, thread_lifetime(None, thread))
    service = ToolService.open(
        workspace,
        approver=approver,
        approves_connections=approver is not approve_all,
        answers_questions=approver is not approve_all,
        thread=thread,
        settings={} if wait is None and approver is not None else {"approval.expires_seconds": wait or 0.0},
    )
    tell_ignored(service.config, options, is_brief=True)
    if not service.config.values["subagents.enabled"]:
        raise BadUsage(
            "sub-agents are not enabled",
            hint="set `enabled = true` and `model` in the section `[subagents]` of haft.toml",
        )
    tell_what_is_logged(options)
    if times > 1:
        outcomes = asyncio.run(_side_by_side(service, start, times, options, interrupts))
        if options.json:
            facts({"runs": [each.to_json() for each in outcomes]})
        context.exit(max(each.process_exit_code for each in outcomes))
    outcome = asyncio.run(_one(service, start, options, interrupts, display))
    if not options.quiet:
        if outcome.error is not None and not (interrupts.heard and outcome.status == "cancelled"):
            tell_failure(outcome, for_a_person=display.for_a_person)
        tell_notes(outcome)
        tell_changes(outcome, for_a_person=display.for_a_person)
    context.exit(outcome.process_exit_code)


async def _one(
    service: ToolService,
    start: Callable[[ToolService], Run],
    options: Globals,
    interrupts: Interrupts,
    display: Display,
) -> Outcome:
    async with service:
        with interrupts:
            run = start(service)
            interrupts.cancels(run.cancel)
            if not options.quiet:
                say(f"task {run.id}")
            shown = _Shown()
            async for event in run:
                if not options.quiet:
                    shown.take(event)
                await display.show(event)
            outcome = await run
            await display.end(outcome)
    if shown.rejected and service.config.approval_seconds == 0:
        calls = (
            "1 call was rejected or needs" if shown.rejected == 1 else f"{shown.rejected} calls were rejected or need"
        )
        say(f"{calls} approval: to approve calls, use a terminal, `--approve`, `--wait` or `--try`")
    if shown.has_conversation and outcome.changes.state == "none":
        undo = f"; `haft undo {run.id}` takes back what it changed" if shown.may_have_changes(outcome) else ""
        say(f"`haft show {run.id}` shows the conversation{undo}")
    return outcome


async def _side_by_side(
    service: ToolService,
    start: Callable[[ToolService], Run],
    times: int,
    options: Globals,
    interrupts: Interrupts,
) -> list[Outcome]:
    """Start the same task several times at once, and let the person choose."""
    from haft.surfaces.cli.commands.run.times import let_choose

    async with service:
        with interrupts:
            runs = [start(service) for _ in range(times)]

            def cancel() -> bool:
                cancelled = [run.cancel() for run in runs]
                return any(cancelled)

            interrupts.cancels(cancel)

            async def followed(number: int, run: Run) -> Outcome:
                async for event in run:
                    if not options.quiet:
                        _tell(event, f"[{number}] ")
                return await run

            outcomes = await asyncio.gather(*(followed(number, run) for number, run in enumerate(runs, 1)))
        await let_choose(service, outcomes, options)
    return outcomes


class _Shown:
    """Shows a task on stderr, but not its report and its error, which are printed at the end."""

    def __init__(self) -> None:
        self.has_conversation = False
        self.rejected = 0
        self._done = 0
        self._changed: int | None = None
        self._texts: list[Event] = []

    def take(self, event: Event) -> None:
        task = event.facts.get("task") if event.type == "progress" else None
        if task is None:
            return
        if task["type"] == "text":
            self._texts.append(event)  # It may be the report.
            return
        texts, self._texts = self._texts, []
        written = "".join(each.facts["task"]["text"] for each in texts)
        if task["type"] != "complete" or written.strip() not in task["summary"]:
            for each in texts:
                _tell(each)
        self.has_conversation |= task["type"] == "status" and task["state"] == "thinking"
        self.rejected += task.get("status") == "rejected-by-user"
        self._done += task.get("status") == "done"
        if task["type"] == "complete":
            self._changed = len(task["modifiedFiles"])
        if task["type"] != "error":
            _tell(event)

    def may_have_changes(self, outcome: Outcome) -> bool:
        """Whether there may be something to undo. haft has undone the changes of a cancelled task."""
        return outcome.status != "cancelled" and bool(self._done if self._changed is None else self._changed)


def _tell(event: Event, before: str = "") -> None:
    for line in task_lines(event):
        say(f"{before}{line}")
