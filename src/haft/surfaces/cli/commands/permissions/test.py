"""`haft permissions test`: what would be decided about a call, by which rule, and why. Nothing is called.

Every input has an answer: what cannot be read as a call is rejected by the layer `input`, and so is what would go wrong
on the way.
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
from haft.surfaces.cli.screen.printing import data, facts, lines, to_json_text, warn
from haft.surfaces.cli.screen.terminal import is_terminal, one_line, styled, visible
from haft.surfaces.cli.words.parameters import Line, tokens_of

if TYPE_CHECKING:
    from haft.contracts import Decision
    from haft.service import Explanation, ToolService

EXITS: Final = {"allow": 0, "ask": 10, "try": 10, "delegate": 10, "reject": 11}
_PLACED: Final = re.compile(r"(.+?)(?::|, rule )[0-9]{1,9}")
STYLES: Final = {"allow": "good", "reject": "bad"}


class TestCommand(HaftCommand):
    """Remembers the words as they stood: click does not tell which options came after the tool's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["haft.words"] = list(args)
        if not ctx.resilient_parsing:
            self._refuse_hidden_workspace(ctx, args)
        return super().parse_args(ctx, args)

    def _refuse_hidden_workspace(self, ctx: click.Context, words: list[str]) -> None:
        """`--workspace` after the name of a tool that declares it too: refused before it is taken for a directory."""
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
@click.argument("tool", required=False, shell_complete=complete_names, help="A tool; its parameters may follow.")
@click.option("--args", metavar="JSON|@FILE|-", help="The arguments as one JSON object; named parameters win over it.")
@click.option("--cwd", metavar="DIR", default=".", help="Where the call would run, in the workspace.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Every rule and part that was looked at, and why it did not decide."
)
@click.option("--batch", metavar="FILE|-", help='Many calls: one {"tool", "args"} a line; one answer a line, in order.')
@click.option("--run-delegate", "asks", is_flag=True, help="Ask the program that a rule leaves it to; else none runs.")
@click.pass_context
def test_rules(
    context: click.Context, tool: str | None, args: str | None, cwd: str, verbose: bool, batch: str | None, asks: bool
) -> None:
    """What would be decided about a call, by which rule, where that is written, and why. Exit 0: allow, 10: ask or try,
    11: reject. Nothing is called. Arguments that the tool would refuse are judged as they are."""
    options = context.find_object(Globals) or Globals()
    from haft.service import ToolService
    from haft.surfaces.cli.place import tell_ignored, tell_what_is_logged, workspace_of
    from haft.surfaces.cli.words.threads import terminal_thread

    if (tool is None) == (batch is None):
        raise BadUsage("`haft permissions test` needs the name of a tool, or `--batch` and neither name nor arguments")
    service = ToolService.open(workspace_of(options), thread=terminal_thread())
    tell_ignored(service.config, options)
    tell_what_is_logged(options)
    trial = _Trial(service, verbose=verbose, asks=asks, quiet=options.quiet)
    if batch is not None:
        if args is not None or context.args:
            raise BadUsage("with `--batch` each line has its own arguments")
        asyncio.run(_batch(trial, batch))
        return
    assert tool is not None
    explained = asyncio.run(_one(trial, _line(context, tool, args), cwd))
    if options.json:
        facts(_shape(explained, service.workspace, verbose=verbose))
    else:
        lines(_described(explained, service.workspace, verbose=verbose))
    context.exit(EXITS[explained.decision.action])


class _Trial:
    """Decides as the service would."""

    def __init__(self, service: ToolService, *, verbose: bool, asks: bool, quiet: bool) -> None:
        self.service = service
        self._quiet = quiet
        self.verbose = verbose
        self._asks = asks

    def tell_missing(self) -> None:
        """Which rules speak of what is not there: they look as if they held."""
        from haft.service import missing_from

        if not self._quiet:
            for sentence in missing_from(self.service):
                warn(sentence)

    async def explain(self, tool: str, arguments: Mapping[str, Any], cwd: str) -> Explanation:
        explained = await self.service.permissions_test(tool, arguments, cwd=cwd)
        if self._asks and explained.decision.action == "delegate":
            from haft.service import with_delegates

            return await with_delegates(self.service, explained, tool, arguments)
        return explained


def _line(context: click.Context, tool: str, args: str | None) -> Line:
    """The words after the tool's name, as `tools use` would have them."""
    shown = Line(
        tool, {} if args is None else {"--args": [args]}, tokens_of(context.args), command=context.command_path
    )
    shown.after_name.update(_after_name(context, context.meta["haft.words"], tool))
    return shown


def _after_name(context: click.Context, words: list[str], tool: str) -> dict[str, str]:
    """Haft's options after the tool's name, each as it was written."""
    found: dict[str, str] = {}
    after = words[words.index(tool) + 1 :]
    names = {name: max(each.opts, key=len) for each in context.command.get_params(context) for name in each.opts}
    for word in after[: after.index("--")] if "--" in after else after:
        written = word.partition("=")[0]
        if written.startswith("-") and written in names:
            found.setdefault(names[written], written)
    return found


async def _one(trial: _Trial, line: Line, cwd: str) -> Explanation:
    """Once the service is open, which knows the tools that are new."""
    from haft.surfaces.cli.words.binding import arguments

    assert line.name is not None
    async with trial.service as service:
        trial.tell_missing()
        given = arguments(line, line.name, service.catalogue.get(line.name).spec.input_schema)
        return await trial.explain(line.name, given, cwd)


async def _batch(trial: _Trial, place: str) -> None:
    """One answer a line, each as soon as it is there."""
    async with trial.service:
        trial.tell_missing()
        async for line in lines_of(place):
            text = to_json_text(await _answer(trial, line))
            data((visible(text) if is_terminal(sys.stdout) else text) + "\n")


async def _answer(trial: _Trial, line: bytes) -> dict[str, Any]:
    """To one line, whatever it holds."""
    try:
        tool, arguments, cwd = question_in(line)
        return _shape(await trial.explain(tool, arguments, cwd), trial.service.workspace, verbose=trial.verbose)
    except Exception as error:  # one line must not take the answers to all others with it
        return rejected_input(error)


def _shape(explained: Explanation, workspace: str, *, verbose: bool) -> dict[str, Any]:
    """Without `by`: that is said of calls that were made."""
    shape = explained.decision.to_json()
    del shape["by"]
    file = _file_of(explained.decision.source, workspace)
    if file is not None:
        shape["file"] = file
    return {**shape, "steps": [step.to_json() for step in explained.steps]} if verbose else shape


def _file_of(source: str, workspace: str) -> str | None:
    """The file that a rule stands in; None where it stands in none."""
    placed = _PLACED.fullmatch(source)
    if placed is None:
        return None
    path = os.path.join(workspace, os.path.expanduser(placed[1]))
    return path if os.path.isfile(path) else None


def _described(explained: Explanation, workspace: str, *, verbose: bool) -> Iterator[str]:
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
    if verbose:
        yield "steps:"
        for step in explained.steps:
            where = "" if step.source is None else f" ({one_line(step.source)})"
            yield f"  {one_line(step.layer)}: {one_line(step.what)}{where}: {one_line(step.outcome)}"


def _particulars(decision: Decision) -> Iterator[str]:
    for each in decision.delegates:
        yield f"  asks: {one_line(each.to)} ({one_line(each.source)})"
    opened = {name: value for name, value in decision.grants.to_json().items() if value}
    if opened and decision.action != "reject":
        yield f"  grants: {one_line(to_json_text(opened))}"
    if decision.definition_diff is not None:
        from haft.surfaces.cli.person.questions import changed_part

        yield f"  its {changed_part(decision.definition_diff)} is not the one that was approved"


def _styled(action: str) -> str:
    return styled(action, STYLES.get(action, "warn"), sys.stdout)
