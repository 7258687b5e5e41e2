"""`haft permissions suggest`: suggests rules that would have saved past approvals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.screen.printing import facts, lines, say
from haft.surfaces.cli.words.times import since
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import one_line

if TYPE_CHECKING:
    from haft.service import Suggested, Suggestion, ToolService

MOST_NAMED = 5
"""How many calls are listed one by one."""


@click.command("suggest", cls=HaftCommand)
@click.option(
    "--since",
    "after",
    metavar="T",
    help="Only calls since this time: `2h` (two hours ago), `30m`, `1d`, a date or an ISO time.",
)
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=1000, help="Look at N calls at most. Default: 1000."
)
@click.pass_obj
def suggest_rules(options: Globals, after: str | None, limit: int) -> None:
    """Suggest rules for the calls that a person approved in this workspace. For each rule, haft prints how many prompts
    the rule would have saved, and which other calls the rule would have allowed. haft also prints the command that adds
    the rule, but adds no rule itself.

    haft suggests no rule for dangerous commands, and no rule for interpreters. It also suggests no rule that would have
    allowed a call that a person rejected."""
    from haft.service import ToolService
    from haft.surfaces.cli.place import tell_ignored, tell_what_is_logged, workspace_of

    moment = None if after is None else since(after)
    service = ToolService.open(workspace_of(options))
    tell_ignored(service.config, options)
    tell_what_is_logged(options)
    found = asyncio.run(_suggested(service, moment, limit))
    if options.json:
        facts(found.to_json())
        return
    for number, one in enumerate(found.suggestions, 1):
        lines(_suggestion_lines(number, one))
    if not options.quiet:
        say(_summary(found))


async def _suggested(service: ToolService, moment: float | None, limit: int) -> Suggested:
    from haft.service import suggested

    async with service:
        return await suggested(service, since=moment, limit=limit)


def _suggestion_lines(number: int, one: Suggestion) -> Iterator[str]:
    from haft.service import add_line

    yield f"{number}. {one_line(', and '.join(each.rule.words for each in one.rules))}"
    yield f"   would have saved {one.prompts} prompts{'' if one.is_alone else ', together with the rules above'}"
    yield from (f"   narrow enough: {each.why}" for each in one.rules if each.why is not None)
    passed = [(run, call) for call in one.also for run in call.runs]
    if not passed:
        yield "   would have allowed no other call"
    else:
        yield f"   would have allowed {len(passed)} more calls that no person approved:"
        for run, call in passed[:MOST_NAMED]:
            arguments = to_json_text(dict(call.query.arguments))
            yield f"     {run}  {one_line(call.query.spec.name)}  {one_line(arguments)[:80]}"
        if len(passed) > MOST_NAMED:
            yield f"     and {len(passed) - MOST_NAMED} more"
    yield from (f"   {one_line(add_line(each))}" for each in one.rules)


def _summary(found: Suggested) -> str:
    if not found.approved:
        return f"nothing to suggest: of {found.looked_at:_} past calls, no approved one would need approval again"
    if not found.saved:
        these = "this approval" if found.approved == 1 else f"these {found.approved} approvals"
        return f"nothing to suggest: no narrow rule would have saved {these}"
    rest = found.approved - found.saved
    left = f"; no narrow rule would have saved the other {rest}" if rest else ""
    return f"{found.saved} of {found.approved} approvals would not have been needed{left}"
