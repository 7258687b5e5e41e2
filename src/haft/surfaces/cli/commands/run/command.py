"""`haft run`: the command itself, from its words to the exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import click

from haft.contracts import BadUsage, Event, Grants, Network, Outcome, Stream
from haft.surfaces.cli.commands.run.agents import agent_lines, agent_of, as_agent
from haft.surfaces.cli.commands.run.grant import grant_lines
from haft.surfaces.cli.commands.run.review import can_review, review, tell_decided, tell_held
from haft.surfaces.cli.commands.run.times import run_times
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.place import current_directory, require_person, tell_ignored, tell_what_is_logged, workspace_of
from haft.surfaces.cli.screen.printing import complain, facts, say, warn
from haft.surfaces.cli.screen.waiting import tell_waiting
from haft.surfaces.cli.words.change_states import WORDS
from haft.surfaces.cli.words.network_option import CommandWithNetwork, network_option
from haft.surfaces.cli.words.use_options import granted_places, granted_variables
from haft.surfaces.text.terminal import is_terminal, one_line
from haft.values import replace

if TYPE_CHECKING:
    from haft.service import CarriedBack, Program, ToolService
    from haft.surfaces.cli.person.interrupts import Interrupts


MOST_TIMES: Final = 20


class RunCommand(CommandWithNetwork):
    """A command whose last words are another command line: haft's own options end at the first word that is none of
    them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        valued = {name for each in options if not each.is_flag and not each.count for name in each.opts}
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            at += 2 if args[at] in valued else 1
        if at < len(args) and args[at] != "--":
            args = [*args[:at], "--", *args[at:]]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*([self.options_metavar] if self.options_metavar else []), "--", "PROGRAM..."]


@click.command("run", cls=RunCommand)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="PROGRAM...", help="The program and its arguments.")
@click.option("--commit", is_flag=True, help="Commit the changes when the program has ended, without asking.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="End it after this time."
)
@click.option(
    "--times",
    type=click.IntRange(1, MOST_TIMES),
    default=1,
    metavar="N",
    help="Run the program N times side by side, without a terminal, each in a layer of its own; then choose.",
)
@network_option("Let the program use the whole network.")
@click.option(
    "--read", metavar="PATH", multiple=True, type=click.Path(), help="Let the program also read PATH (repeatable)."
)
@click.option(
    "--write", metavar="PATH", multiple=True, type=click.Path(), help="Let the program also write to PATH (repeatable)."
)
@click.option(
    "--env", metavar="NAME", multiple=True, help="Pass this environment variable on to the program (repeatable)."
)
@click.pass_context
def run_program(
    context: click.Context,
    words: tuple[str, ...],
    commit: bool,
    timeout: float | None,
    times: int,
    network: Network,
    read: tuple[str, ...],
    write: tuple[str, ...],
    env: tuple[str, ...],
) -> None:
    """Run a whole program, such as an agent, in one confined run on this terminal.

    The program works in a layer above the workspace: it sees its own changes, and the workspace stays as it is. When
    the program has ended, haft shows the changes, and you apply them, whole or in part, or drop them. Meanwhile, `haft
    diff RUN` shows them in another terminal.

    The program sees the workspace and the system's programs, and nothing else of your home directory. It has no
    network. An agent that haft knows, such as `claude`, also gets its own settings and the hosts of its model. The
    options below open the sandbox; haft shows the result before the program starts."""
    options = context.find_object(Globals) or Globals()
    if not words:
        raise BadUsage("`haft run` needs a program", hint="such as `haft run -- bash`")
    if times > 1 and commit:
        raise BadUsage("`--times` and `--commit` cannot be used together", hint="choose one of the runs at the end")
    require_person("run")
    from haft.service import Program, ToolService
    from haft.surfaces.cli.person.interrupts import Interrupts
    from haft.surfaces.cli.words.threads import terminal_thread

    workspace = workspace_of(options)
    tell_what_is_logged(options)
    service = ToolService.open(workspace, thread=terminal_thread())
    tell_ignored(service.config, options, is_brief=True)
    program = Program(
        words,
        cwd=_directory(workspace),
        grants=Grants(
            network=network,
            env=granted_variables(env, os.environ),
            read=granted_places("--read", read),
            write=granted_places("--write", write),
        ),
        timeout=timeout,
        holds=not commit,
    )
    agent = agent_of(words)
    if agent is not None:
        program = as_agent(program, agent, os.environ)
    interrupts = Interrupts((lambda _text: None) if options.quiet else say)
    more = () if agent is None else tuple(agent_lines(agent, os.environ))
    if times > 1:
        outcomes = asyncio.run(_perform_times(service, program, options, interrupts, more, times))
        if options.json:
            facts({"runs": [each.to_json() for each in outcomes]})
        context.exit(max(each.process_exit_code for each in outcomes))
    outcome = asyncio.run(_perform(service, program, options, interrupts, more))
    if outcome.error is not None:
        complain(outcome.error.message, outcome.error.hint)
    if options.json:
        facts(outcome.to_json())
    context.exit(outcome.process_exit_code)


def _directory(workspace: str) -> str:
    """The current directory relative to the workspace; the workspace itself if the current directory is elsewhere."""
    root, here = os.path.realpath(workspace), os.path.realpath(current_directory())
    return os.path.relpath(here, root) if here == root or here.startswith(root.rstrip("/") + "/") else "."


async def _perform(
    service: ToolService, program: Program, options: Globals, interrupts: Interrupts, more: Sequence[str]
) -> Outcome:
    """Run the program to its end, and let the person decide about its changes. `more` are lines about an agent."""
    from haft.surfaces.cli.person.outer_terminal import OuterTerminal

    has_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout) and not options.json
    if has_terminal:
        program = replace(program, terminal=OuterTerminal(), env={**terminal_variables(), **program.env})
    else:
        stdin = None if is_terminal(sys.stdin) else 0
        program = replace(program, input=stdin, on_output=writer(to_stderr=options.json))
    carried: list[CarriedBack] = []
    program = replace(program, on_carried=carried.append)
    async with service:
        plan = await service.programs.plan(program)
        if not options.quiet:
            for line in (*grant_lines(plan, service.workspace), *more):
                say(line)
        with interrupts:
            run = service.programs.start(plan)
            interrupts.cancels(run.cancel)
            if not options.quiet:
                say(f"  run: {run.id}; `haft diff {run.id}` shows its changes meanwhile")
            async for event in run:
                if has_terminal:
                    ring_if_waiting(event)
                elif not options.quiet:
                    tell_waiting(event)
            outcome = await run
        for each in carried:
            tell_carried(each, options)
        await _settle(service, outcome, options)
    return outcome


async def _settle(service: ToolService, outcome: Outcome, options: Globals) -> None:
    """Let the person decide about held changes, or say what became of the changes."""
    if outcome.changes.state == "held" and can_review() and not options.json:
        try:
            await review(service, outcome.run_id, options)
        except (asyncio.CancelledError, KeyboardInterrupt):  # Ctrl-C at the question.
            sys.stderr.write("\n")
            if not tell_decided(outcome.run_id):
                tell_held(outcome.run_id)
            raise
    elif outcome.changes.state == "held" and not options.quiet:
        tell_held(outcome.run_id)
    elif not options.quiet:
        say(_what_changed(outcome))


async def _perform_times(
    service: ToolService, program: Program, options: Globals, interrupts: Interrupts, more: Sequence[str], times: int
) -> list[Outcome]:
    """Run the program several times side by side. All get the same input."""
    if not is_terminal(sys.stdin):
        program = replace(program, stdin=sys.stdin.buffer.read())
    carried: list[CarriedBack] = []
    async with service:
        plan = await service.programs.plan(program)
        if not options.quiet:
            for line in (*grant_lines(plan, service.workspace, times=times), *more):
                say(line)
        outcomes = await run_times(service, plan, times, options, interrupts, carried)
        for each in carried:
            tell_carried(each, options)
    return outcomes


def tell_carried(carried: CarriedBack, options: Globals) -> None:
    """Say what became of the changes to the agent's own files."""
    if carried.problem is not None:
        warn(f"not all changes of the agent's own files were carried back: {carried.problem}")
    if carried.held_by is not None and not options.quiet:
        names = ", ".join(f"~/{one_line(path)}" for path in carried.held[:5])
        rest = f" and {len(carried.held) - 5} more" if len(carried.held) > 5 else ""
        say(
            f"held: the agent changed its own settings ({names}{rest}); `haft diff {carried.held_by}`, "
            f"`haft changes apply {carried.held_by}`, `haft changes drop {carried.held_by}`"
        )


def _what_changed(outcome: Outcome) -> str:
    count = len(outcome.changes.files)
    if not count:
        return f"{outcome.run_id} changed nothing"
    paths, them = ("1 path", "it") if count == 1 else (f"{count:_} paths", "them")
    became = WORDS.get(outcome.changes.state, outcome.changes.state)
    return f"{outcome.run_id}: {paths} {became}; `haft undo {outcome.run_id}` takes {them} back"


def ring_if_waiting(event: Event) -> None:
    """Ring the bell if the program waits for a person. A message would destroy the screen of the program."""
    if event.type == "connection" and event.facts.get("state") == "waiting":
        sys.stderr.write("\a")
        sys.stderr.flush()


def terminal_variables() -> dict[str, str]:
    """The variables with which programs find out what this terminal can do."""
    return {name: os.environ[name] for name in ("COLORTERM", "TERM_PROGRAM") if name in os.environ}


def writer(*, to_stderr: bool) -> Callable[[Stream, bytes], None]:
    """A function that writes the output of a program to this process's own streams, unchanged."""

    def write(stream: Stream, data: bytes) -> None:
        target = sys.stderr if to_stderr or stream == "stderr" else sys.stdout
        target.buffer.write(data)
        target.buffer.flush()

    return write
