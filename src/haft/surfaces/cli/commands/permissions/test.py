"""`haft permissions test`: says how a call would be decided, by which rule, and why. No tool is called.

Every line of a batch gets an answer. If a line is not a valid call, or the call cannot be decided, the answer is a
rejection whose field `layer` is `input`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from haft.contracts import BadUsage
from haft.surfaces.cli.commands.permissions.batch_input import lines_of, question_in, rejected_input
from haft.surfaces.cli.commands.tools import complete_names
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.screen.printing import data, facts, lines, warn
from haft.surfaces.cli.words.parameters import Line, tokens_of
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import is_terminal, one_line, styled, visible

if TYPE_CHECKING:
    from haft.contracts import Decision
    from haft.service import Explanation, Reach, ToolService

EXITS: Final = {"allow": 0, "ask": 10, "try": 10, "delegate": 10, "reject": 11}
_PLACED: Final = re.compile(r"(.+?)(?::|, rule )[0-9]{1,9}")
REACH_EXITS: Final = {"allowed": 0, "asked": 10, "refused": 11}
STYLES: Final = {"allow": "good", "reject": "bad", "allowed": "good", "refused": "bad"}


class TestCommand(HaftCommand):
    """A command that stores the words of its command line, because click does not tell which options came after the
    tool's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["haft.words"] = list(args)
        if not ctx.resilient_parsing:
            self._refuse_hidden_workspace(ctx, args)
        return super().parse_args(ctx, args)

    def _refuse_hidden_workspace(self, ctx: click.Context, words: list[str]) -> None:
        """Raise `BadUsage` if `--workspace` comes after the name of a tool that has a parameter `workspace`. This check
        comes before haft reads the value of `--workspace` as its own option."""
        tool = named = None
        with contextlib.suppress(click.UsageError):
            tool = self.make_parser(ctx).parse_args(list(words))[0].get("tool")
        after = _after_name(ctx, words, tool) if isinstance(tool, str) else {}
        if not isinstance(tool, str) or "--workspace" not in after:
            return
        from haft.surfaces.cli.commands.use import refuse_hidden

        with contextlib.suppress(click.UsageError):
            named = self.make_parser(ctx).parse_args(words[: words.index(tool)])[0].get("workspace")
        above = ctx.find_object(Globals) or Globals()
        options = Globals(workspace=named if isinstance(named, str) else above.workspace)
        refuse_hidden(Line(tool, after_name=after, command=ctx.command_path), options)


@click.command(
    "test",
    cls=TestCommand,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    options_metavar="[--PARAMETER VALUE]... [OPTIONS]",
)
@click.argument(
    "tool", required=False, shell_complete=complete_names, help="The name of a tool. Its parameters may follow."
)
@click.option(
    "--args",
    metavar="JSON|@FILE|-",
    help="The arguments as one JSON object. @FILE: read the object from a file. -: read it from stdin. If you also "
    "give an argument by name, haft uses the value given by name.",
)
@click.option(
    "--cwd", metavar="DIR", default=".", help="The directory in which the call would run, relative to the workspace."
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also print every rule that haft compared with a part of the call, and the result of each comparison.",
)
@click.option(
    "--batch",
    metavar="FILE|-",
    help='Decide about many calls. Each line of FILE is {"tool": …, "args": …}; haft prints one line for each call, '
    "in the same order.",
)
@click.option(
    "--run-delegate",
    is_flag=True,
    help="Run the program that a `delegate` rule names. Without this option, no program runs.",
)
@click.option(
    "--subagent",
    is_flag=True,
    help="Decide as about a call of a sub-agent, by the rules for sub-agents. What its type may do is not considered.",
)
@click.option(
    "--network",
    "host",
    metavar="HOST[:PORT]",
    help="Also say whether the call could reach this host, and which grant allows it or would. Default port: 443.",
)
@click.pass_context
def test_rules(
    context: click.Context,
    tool: str | None,
    args: str | None,
    cwd: str,
    verbose: bool,
    batch: str | None,
    run_delegate: bool,
    subagent: bool,
    host: str | None,
) -> None:
    """Say how haft would decide about a call, and why. haft names the rule and its file. haft does not call the tool,
    so the arguments need not be valid for the tool. The exit code is 0 for allow, 10 for ask or try, and 11 for
    reject. With `--network`, it is also 10 if a person would be asked about the host, and 11 if the call could not
    reach the host."""
    options = context.find_object(Globals) or Globals()
    from haft.service import ToolService
    from haft.surfaces.cli.place import tell_ignored, tell_what_is_logged, workspace_of
    from haft.surfaces.cli.words.threads import terminal_thread

    if (tool is None) == (batch is None):
        raise BadUsage("`haft permissions test` needs the name of a tool, or `--batch` and neither name nor arguments")
    service = ToolService.open(workspace_of(options), thread=terminal_thread())
    tell_ignored(service.config, options)
    tell_what_is_logged(options)
    if host is not None:
        from haft.service import one_host

        one_host(host)  # Raises `BadUsage` before anything is decided.
    decider = _Decider(
        service, host, verbose=verbose, run_delegate=run_delegate, subagent=subagent, quiet=options.quiet
    )
    if batch is not None:
        if args is not None or context.args:
            raise BadUsage("with `--batch` each line has its own arguments")
        asyncio.run(_batch(decider, batch))
        return
    assert tool is not None
    explained, reach = asyncio.run(_one(decider, _line(context, tool, args), cwd))
    if options.json:
        facts(_shape(explained, reach, service.workspace, verbose=verbose))
    else:
        lines(_decision_lines(explained, reach, service.workspace, verbose=verbose))
    context.exit(max(EXITS[explained.decision.action], 0 if reach is None else REACH_EXITS[reach.verdict]))


class _Decider:
    """Decides about calls as the service would."""

    def __init__(
        self,
        service: ToolService,
        host: str | None,
        *,
        verbose: bool,
        run_delegate: bool,
        subagent: bool,
        quiet: bool,
    ) -> None:
        self.service = service
        self._host = host
        self._quiet = quiet
        self.verbose = verbose
        self._run_delegate = run_delegate
        self._subagent = subagent

    def tell_missing(self) -> None:
        """Warn about rules for tools that do not exist, because a person may think that such rules have an effect."""
        from haft.service import missing_from

        if not self._quiet:
            for sentence in missing_from(self.service):
                warn(sentence)

    async def explain(self, tool: str, arguments: Mapping[str, Any], cwd: str) -> tuple[Explanation, Reach | None]:
        """The decision about a call, and whether the call could reach the host of `--network`."""
        explained = await self.service.permissions_test(tool, arguments, cwd=cwd, subagent=self._subagent)
        if self._run_delegate and explained.decision.action == "delegate":
            from haft.service import with_delegates

            explained = await with_delegates(self.service, explained, tool, arguments)
        if self._host is None:
            return explained, None
        from haft.service import network_reach

        return explained, await network_reach(self.service, explained.decision, tool, self._host)


def _line(context: click.Context, tool: str, args: str | None) -> Line:
    """The words of the command line, parsed in the same way as the words of `haft tools use`."""
    shown = Line(
        tool, {} if args is None else {"--args": [args]}, tokens_of(context.args), command=context.command_path
    )
    shown.after_name.update(_after_name(context, context.meta["haft.words"], tool))
    return shown


def _after_name(context: click.Context, words: list[str], tool: str) -> dict[str, str]:
    """Haft's options that come after the tool's name, each with its spelling on the line, such as `-w`."""
    found: dict[str, str] = {}
    after = words[words.index(tool) + 1 :]
    names = {name: max(each.opts, key=len) for each in context.command.get_params(context) for name in each.opts}
    for word in after[: after.index("--")] if "--" in after else after:
        written = word.partition("=")[0]
        if written.startswith("-") and written in names:
            found.setdefault(names[written], written)
    return found


async def _one(decider: _Decider, line: Line, cwd: str) -> tuple[Explanation, Reach | None]:
    """The decision that an open service makes about one call. The service also describes new tools."""
    from haft.surfaces.cli.words.binding import arguments

    assert line.name is not None
    async with decider.service as service:
        decider.tell_missing()
        given = arguments(line, line.name, service.catalogue.get(line.name).spec.input_schema)
        return await decider.explain(line.name, given, cwd)


async def _batch(decider: _Decider, place: str) -> None:
    """Print one answer for each line of the input `place`, as soon as the answer is known."""
    async with decider.service:
        decider.tell_missing()
        async for line in lines_of(place):
            text = to_json_text(await _answer(decider, line))
            data((visible(text) if is_terminal(sys.stdout) else text) + "\n")


async def _answer(decider: _Decider, line: bytes) -> dict[str, Any]:
    """The answer to one line, whether it is valid or not."""
    try:
        tool, arguments, cwd = question_in(line)
        explained, reach = await decider.explain(tool, arguments, cwd)
        return _shape(explained, reach, decider.service.workspace, verbose=decider.verbose)
    except Exception as error:  # One line must not stop the answers to the others.
        return rejected_input(error)


def _shape(explained: Explanation, reach: Reach | None, workspace: str, *, verbose: bool) -> dict[str, Any]:
    """The decision as JSON, without the field `by`, because this field has a meaning only if the call was really
    made."""
    shape = explained.decision.to_json()
    del shape["by"]
    file = _file_of(explained.decision.source, workspace)
    if file is not None:
        shape["file"] = file
    if reach is not None:
        shape["network"] = reach.to_json()
    return {**shape, "steps": [step.to_json() for step in explained.steps]} if verbose else shape


def _file_of(source: str, workspace: str) -> str | None:
    """The path of the file that a rule is written in; None if the rule is not in a file."""
    placed = _PLACED.fullmatch(source)
    if placed is None:
        return None
    path = os.path.join(workspace, os.path.expanduser(placed[1]))
    return path if os.path.isfile(path) else None


def _decision_lines(explained: Explanation, reach: Reach | None, workspace: str, *, verbose: bool) -> Iterator[str]:
    decision = explained.decision
    yield f"{_styled(decision.action)}: {one_line(decision.reason)}"
    yield f"  layer: {one_line(decision.layer)}"
    yield f"  rule: {one_line(decision.rule)}"
    yield f"  source: {one_line(decision.source)}"
    file = _file_of(decision.source, workspace)
    if file is not None:
        yield f"  file: {one_line(file)}"
    yield from _particulars(decision)
    for part in decision.parts:
        where = "" if part.source is None else f" ({one_line(part.source)})"
        yield f"  {_styled(part.action)}: {one_line(part.command)}"
        yield f"    {one_line(part.reason)}{where}"
    if reach is not None:
        yield from _reach_lines(reach)
    if verbose:
        yield "steps:"
        for step in explained.steps:
            where = "" if step.source is None else f" ({one_line(step.source)})"
            yield f"  {one_line(step.layer)}: {one_line(step.what)}{where}: {one_line(step.outcome)}"


def _particulars(decision: Decision) -> Iterator[str]:
    for each in decision.delegates:
        yield f"  delegates to: {one_line(each.to)} ({one_line(each.source)})"
    opened = {name: value for name, value in decision.grants.to_json().items() if value}
    if opened and decision.action != "reject":
        yield f"  grants: {one_line(to_json_text(opened))}"
    if decision.definition_diff is not None:
        from haft.surfaces.text.requests import changed_part

        yield f"  its {changed_part(decision.definition_diff)} is not the one that was approved"


def _reach_lines(reach: Reach) -> Iterator[str]:
    yield f"  network: {_styled(reach.verdict)}: {one_line(reach.reason)}"
    if reach.grant is not None:
        yield f"    grant: {one_line(reach.grant)}, in {one_line(reach.by or '')}"
    if reach.to_allow is not None:
        option = one_line(f"--network={reach.to_allow}")
        yield f"    to allow it: `{option}` with the call, or in a rule: `haft permissions add … {option}`"


def _styled(action: str) -> str:
    return styled(action, STYLES.get(action, "warn"), sys.stdout)
