"""`haft tools use`: one call of one tool, from the command line to the exit code.

`words.parameters` parses the line, `person.approver` asks the person, `screen.display` shows the run; this module
connects them with the service.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from haft.contracts import NO_GRANTS, Approver, BadUsage, Grants, HaftError, Outcome, ToolSpec
from haft.surfaces.cli.commands.tools import complete_names, find_listing, is_path
from haft.surfaces.cli.globals import Globals, HaftCommand, checked_directory
from haft.surfaces.cli.screen.printing import facts, lines, say
from haft.surfaces.cli.screen.waiting import tell_waiting
from haft.surfaces.cli.words.binding import arguments, hidden_parameter
from haft.surfaces.cli.words.definitions import after_dashes, parameter_lines
from haft.surfaces.cli.words.network_option import network_option
from haft.surfaces.cli.words.parameters import Line, split_words
from haft.surfaces.cli.words.use_options import UseOptions
from haft.surfaces.text.terminal import is_terminal, one_line, visible
from haft.values import replace

if TYPE_CHECKING:
    from haft.service import ToolService
    from haft.surfaces.cli.person.interrupts import Interrupts
    from haft.surfaces.cli.screen.display import Display


class UseCommand(HaftCommand):
    """A command whose words are parsed by `words.parameters`, not by click. click uses the command's options only for
    help and completion."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = []
        if ctx.resilient_parsing:
            name = _name_among(args)
            ctx.params["name"] = name
            if name is not None:
                ctx.set_parameter_source("name", click.core.ParameterSource.COMMANDLINE)
            ctx.meta["haft.words"] = list(args)
            return []
        line = split_words(args)
        options = ctx.find_object(Globals) or Globals()
        options.json = options.json or line.flag("--json")
        options.quiet = options.quiet or line.flag("--quiet")
        if line.flag("--help"):
            refuse_hidden(line, options, only="--help")
            click.echo(self.get_help(ctx))
            _tell_parameters(line.name)
            ctx.exit()
        with _hidden_first(line, options):
            if (workspace := line.value("--workspace")) is not None:
                options.workspace = checked_directory(workspace)
        if line.flag("--version"):
            _refuse_version(line.name)
        if line.name is None:
            raise BadUsage("`haft tools use` needs the name of a tool", hint="`haft tools list` shows the tools")
        ctx.params = {"line": line}
        return []

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line. NAME comes first, because options before it are haft's, and words after it may be the
        tool's."""
        return ["NAME", *([self.options_metavar] if self.options_metavar else [])]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from haft.surfaces.cli.commands.completion import complete_parameters, own_options

        words: list[str] = ctx.meta["haft.words"]
        own = [] if "--" in words else super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            own = own_options(ctx.params.get("name"), own)
        return [*complete_parameters(ctx.params.get("name"), words, incomplete), *own]


def _name_among(words: list[str]) -> str | None:
    """The tool's name in a command line that is still being typed; None if there is no name yet."""
    try:
        return split_words(words).name
    except BadUsage:
        return next((word for word in words if not word.startswith("-")), None)


def refuse_hidden(line: Line, options: Globals, only: str | None = None) -> None:
    """Raise `BadUsage` if a word after the tool's name is both an option of haft and a parameter of the tool. The tool
    is looked up as if this word were not on the line. With `only`, just this option is checked."""
    if line.name is None or not line.after_name or (only is not None and only not in line.after_name):
        return
    named = line.options.get("--workspace", [])
    before = named[0] if named and ("--workspace" not in line.after_name or len(named) > 1) else options.workspace
    schema: Mapping[str, Any] = {}
    with contextlib.suppress(HaftError):
        schema = find_listing(line.name, Globals(workspace=before, quiet=True)).spec.input_schema
    hidden = hidden_parameter(line, line.name, schema)
    if hidden is not None:
        raise hidden


@contextlib.contextmanager
def _hidden_first(line: Line, options: Globals) -> Iterator[None]:
    """A context manager around the parsing of haft's options. If an option has an invalid value, but may be meant as a
    parameter of the tool, this raises the error of `refuse_hidden` instead of the error about the value."""
    workspace = options.workspace
    try:
        yield
    except BadUsage:
        refuse_hidden(line, Globals(workspace=workspace))
        raise


def _tell_parameters(name: str | None) -> None:
    if name is not None:
        spec = find_listing(name).spec
        lines(["", f"Parameters of {name}:", *(f"  {visible(line)}" for line in parameter_lines(spec.input_schema))])
        lines(f"  {visible(line)}" for line in after_dashes(spec))


def _refuse_version(name: str | None) -> None:
    """Refuse `--version` after the tool's name: if it was meant for the tool, haft would print its version instead of
    calling the tool."""
    raise BadUsage(
        f"haft's `--version` goes before `tools use`{f', not after {name}' if name else ''}",
        hint="put the tool's own parameter of that name after `--`",
    )


@click.command("use", cls=UseCommand, options_metavar="[--PARAMETER VALUE]... [OPTIONS] [-- --PARAMETER VALUE...]")
@click.argument("name", shell_complete=complete_names, help="The name of a tool, or the path of a tool file.")
@click.option(
    "--args",
    metavar="JSON|@FILE|-",
    help="The arguments as one JSON object. @FILE: read the object from a file. -: read it from stdin. If you also "
    "give an argument by name, haft uses the value given by name.",
)
@click.option(
    "--only", metavar="FIELD", help="Print only this field of the outcome. haft prints a text without quotes."
)
@click.option(
    "--stream", is_flag=True, help="Print each event of the run as one line of JSON, and the outcome as the last line."
)
@click.option("--approve", is_flag=True, help="Approve the call if it needs approval.")
@click.option(
    "--wait",
    metavar="SECONDS",
    help="How long the call waits for approval, from this terminal or from another process (`haft approve`). "
    "Default: `approval.expires_seconds`; without a terminal, 0.",
)
@click.option(
    "--try",
    "trial",
    is_flag=True,
    help="Make a trial run without network: show the changes, then ask whether to apply them.",
)
@click.option("--no-cache", is_flag=True, help="Run the tool, even if the answer of an equal call is kept.")
@click.option("--timeout", metavar="SECONDS", help="End the call after this time.")
@click.option(
    "--preview", is_flag=True, help="Do not call the tool. Print the tool's preview, which says what the call would do."
)
@click.option(
    "--thread", metavar="T", help="The thread that the call belongs to. Default: the thread of this terminal."
)
@click.option(
    "--isolation",
    metavar="snapshot|serial",
    help="How the call is isolated from other callers. Default: as a rule or the setting changes.isolation says.",
)
@click.option(
    "--config",
    metavar="K=V",
    multiple=True,
    help="Give the tool the value V for its setting K. If V is not JSON, haft reads V as text.",
)
@network_option("Let this call use the whole network. The call then has an empty /tmp.")
@click.option("--scratch", is_flag=True, help="With --network: let this call use the /tmp of its thread.")
@click.option(
    "--read", metavar="PATH", multiple=True, type=click.Path(), help="Let this call also read PATH (repeatable)."
)
@click.option(
    "--write",
    metavar="PATH",
    multiple=True,
    type=click.Path(),
    help="Let this call also write to PATH (repeatable).",
)
@click.option(
    "--env", metavar="NAME", multiple=True, help="Pass this environment variable on to the call (repeatable)."
)
@click.pass_context
def use_tool(context: click.Context, line: Line) -> None:
    """Call a tool. Write the tool's parameters after its name: `--path a.txt`, `--path=a.txt`, `--flag`, `--no-flag`.
    If you repeat a parameter, its values become an array. All words after a bare `--` are parameters of the tool.

    If the call needs approval, haft asks at the terminal. Without a terminal, haft rejects the call, unless you use
    `--approve` or `--wait SECONDS`.

    `--network`, `--scratch`, `--read`, `--write` and `--env` open the sandbox for this call only.

    With `--try`, the call is a trial run: haft shows the changes and asks whether to apply them. Without a terminal,
    haft holds the changes until you run `haft changes apply` or `haft changes drop`.

    If stdout is not a terminal, haft prints the outcome as JSON."""
    options = context.find_object(Globals) or Globals()
    with _hidden_first(line, options):
        use_options = UseOptions.from_line(line)
    from haft.service import ToolService
    from haft.surfaces.cli.person.approver import approve_all, terminal_approver
    from haft.surfaces.cli.person.interrupts import Interrupts
    from haft.surfaces.cli.place import (
        agent_of_this_process,
        require_person,
        tell_ignored,
        tell_what_is_logged,
        workspace_of,
    )
    from haft.surfaces.cli.words.threads import terminal_thread, thread_lifetime

    if use_options.approve or use_options.grants != NO_GRANTS:
        require_person(f"tools use {'--approve' if use_options.approve else 'with grants'}")
    terminal = terminal_thread()
    interrupts = Interrupts((lambda _text: None) if options.quiet else say)
    workspace = workspace_of(options)
    display = _display(use_options, options)
    is_asked_here = (agent := agent_of_this_process()) is None
    if not is_asked_here and is_terminal(sys.stdin) and not options.quiet:
        say(f"haft does not ask at this terminal, because this process may belong to {agent}")
    approver: Approver | None = approve_all if use_options.approve else None
    if approver is None and is_asked_here:
        approver = terminal_approver(interrupts, workspace, display, thread_lifetime(use_options.thread, terminal))
    service = ToolService.open(
        workspace,
        approver=approver,
        approves_connections=approver is not approve_all,
        answers_questions=approver is not approve_all,
        thread=use_options.thread or terminal,
        settings=_inbox_settings(use_options, has_approver=approver is not None),
    )
    tell_ignored(service.config, options, is_brief=True)
    tell_what_is_logged(options)
    tells_waiting = not options.quiet and approver is None
    has_own_thread = use_options.thread is None and terminal is None
    outcome = asyncio.run(
        _perform(
            service, use_options, line, display, interrupts, tells_waiting=tells_waiting, has_own_thread=has_own_thread
        )
    )
    if not isinstance(outcome, Outcome):
        _show_preview(outcome, options)
        return
    _tell(outcome, display, options, interrupts)
    context.exit(outcome.process_exit_code)


def _inbox_settings(use_options: UseOptions, *, has_approver: bool) -> dict[str, Any]:
    """The setting for how long a request waits in the inbox: as long as `--wait` says. Without `--wait`, the configured
    time if there is an approver, and not at all if there is none."""
    if use_options.wait is None and has_approver:
        return {}
    return {"approval.expires_seconds": use_options.wait or 0.0}


async def _perform(
    service: ToolService,
    use_options: UseOptions,
    line: Line,
    display: Display,
    interrupts: Interrupts,
    *,
    tells_waiting: bool,
    has_own_thread: bool,
) -> Outcome | str | None:
    """Make the call, and return its outcome. With `--preview`, make no call, and return the tool's preview instead, or
    None if the tool has no preview. `has_own_thread` says that no other call is in the call's thread."""
    from haft.surfaces.cli.words.threads import with_scratch_note

    async with service:
        name, spec = await _found(service, use_options.tool, use_options.grants)
        if spec is None and "--workspace" in line.after_name:
            await asyncio.to_thread(refuse_hidden, line, Globals())
        given = arguments(line, name, {} if spec is None else spec.input_schema)
        config = use_options.config_for(spec)
        if use_options.preview:
            return await service.preview(name, given, config=config)
        with interrupts:
            run = service.call(
                name,
                given,
                timeout=use_options.timeout,
                config=config,
                grants=use_options.grants,
                trial=use_options.trial,
                isolation=use_options.isolation,
                uses_cache=use_options.uses_cache,
            )
            interrupts.cancels(run.cancel)
            try:
                makes_calls = False
                async for event in run:
                    makes_calls = makes_calls or event.type == "child"
                    await display.show(event)
                    if tells_waiting:
                        tell_waiting(event)
                outcome = await run
                if has_own_thread:
                    outcome = with_scratch_note(outcome)
                if makes_calls and display.for_a_person and outcome.changes.state == "none":
                    outcome = await _with_note_of_calls(service, outcome)
                await display.end(outcome)
            except BrokenPipeError:
                # Nobody reads the output any more, so the call need not go on.
                run.cancel(run.call.principal)
                await run
                raise
    return outcome


async def _with_note_of_calls(service: ToolService, outcome: Outcome) -> Outcome:
    """The outcome of a call that changed nothing itself. If its nested calls changed something, the returned outcome
    has a note about that."""
    run = outcome.run_id
    try:
        paths = len((await service.changes.plan("undo", run)).plan)
    except HaftError:  # The nested calls changed nothing that could be undone.
        return outcome
    count = "1 path" if paths == 1 else f"{paths:_} paths"
    note = f"the calls that it made changed {count} (haft show {run}, haft undo {run})"
    return replace(outcome, notes=(*outcome.notes, note))


async def _found(service: ToolService, name: str, grants: Grants) -> tuple[str, ToolSpec | None]:
    """The tool's name and its spec. The spec is None if there is no such tool; the pipeline then rejects the call and
    records that."""
    listed = service.tools(all=True)
    if is_path(name) and all(listing.spec.name != name for listing in listed):
        listing = await service.load(name, grants=grants)
        return listing.spec.name, listing.spec
    callable_ = (one for one in listed if one.spec.name == name and (one.enabled or one.state == "needs-config"))
    found = next(callable_, None)
    if found is None:
        found = await service.look_again(name)
    if found is None and grants != NO_GRANTS and (path := _broken_at(service, name)) is not None:
        # Describe the broken tool again, by its path and with these grants: perhaps it could not be described without
        # them.
        found = await service.load(path, grants=grants)
        return found.spec.name, found.spec
    return name, None if found is None else found.spec


def _broken_at(service: ToolService, name: str) -> str | None:
    """The path of the toolbox tool `name` if haft could not describe it; else None."""
    broken = (one for one in service.tools(all=True) if one.spec.name == name and one.state == "broken")
    return next((one.spec.origin for one in broken if one.spec.kind == "amp-toolbox"), None)


def _tell(outcome: Outcome, display: Display, options: Globals, interrupts: Interrupts) -> None:
    """Print the error, the notes and the changes of a call on stderr."""
    from haft.surfaces.cli.screen.display import tell_changes, tell_failure, tell_notes

    if options.quiet:
        return
    ended_by_us = interrupts.heard and outcome.status == "cancelled"
    if outcome.error is not None and not ended_by_us:
        tell_failure(outcome, for_a_person=display.for_a_person)
    tell_notes(outcome)
    tell_changes(outcome, for_a_person=display.for_a_person)


def _show_preview(line: str | None, options: Globals) -> None:
    if options.json:
        facts({"preview": line})
    elif line is not None:
        lines([one_line(line)])
    elif not options.quiet:
        say("the tool has no preview of this call")


def _display(use_options: UseOptions, options: Globals) -> Display:
    from haft.surfaces.cli.screen.display import Collected, Live, Streamed
    from haft.surfaces.cli.screen.progress import Progress

    if use_options.stream:
        return Streamed()
    progress = Progress(quiet=options.quiet)
    if use_options.only is None and not options.json and is_terminal(sys.stdout):
        return Live(progress)
    return Collected(progress, use_options.only, json=options.json)
