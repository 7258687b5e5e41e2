"""`haft permissions replay`: decides past calls again with other rules, and prints the differences."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.screen.printing import facts, say, table
from haft.surfaces.text.json_text import to_json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from haft.service import Replayed, Rule, ToolService

MOST_SHOWN: Final = 60
"""How many characters of the arguments a line shows."""


@click.command("replay", cls=HaftCommand)
@click.option("--with", "path", metavar="FILE", help="A haft.toml. Its rules replace the rules in your own haft.toml.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=1000,
    help="Decide about N calls at most. Default: 1000.",
)
@click.pass_obj
def replay_rules(options: Globals, path: str | None, limit: int) -> None:
    """Decide about the past calls of this workspace again, newest first, and list the calls for which the decision
    differs. haft calls no tool and asks no person.

    Without `--with`, haft compares the original decisions with the decisions by today's rules. With `--with FILE`, haft
    compares the decisions by today's rules with the decisions by the rules in FILE.

    The audit log contains no secrets. So a rule with a secret in its pattern does not match here."""
    from haft.service import ToolService
    from haft.surfaces.cli.place import tell_ignored, tell_what_is_logged, workspace_of

    service = ToolService.open(workspace_of(options))
    rules = None if path is None else _rules(path, service)
    tell_ignored(service.config, options)
    tell_what_is_logged(options)
    done = asyncio.run(_replayed(service, rules, limit))
    if options.json:
        facts(done.to_json())
        return
    table(
        [
            (flip.run, flip.tool, f"{flip.was} → {flip.now.action}", f"{flip.now.rule} ({flip.now.source})", shown)
            for flip in done.flips
            if (shown := _short(to_json_text(dict(flip.arguments))))
        ]
    )
    if not options.quiet:
        gone = f"; {done.passed_over:_} more were of tools that do not exist here" if done.passed_over else ""
        say(f"{len(done.flips):_} of {done.looked_at:_} calls would be decided differently{gone}")


async def _replayed(service: ToolService, rules: Sequence[Rule] | None, limit: int) -> Replayed:
    from haft.service import replayed

    async with service:
        return await replayed(service, rules, limit)


def _rules(path: str, service: ToolService) -> Sequence[Rule]:
    from haft.service import rules_at

    return rules_at(path, service.workspace)


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
