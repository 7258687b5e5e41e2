"""`haft hook AGENT`: the program that agents call before and after each of their own tools. It does the same as the
line that `haft connect AGENT --hooks` writes, only more slowly."""

from __future__ import annotations

import click

from haft.surfaces.cli.globals import Globals, HaftCommand


@click.command("hook", cls=HaftCommand)
@click.argument("agent", required=False)
@click.option("--resident", is_flag=True, hidden=True, help="Be the process that answers the hooks.")
@click.pass_obj
def run_hook(options: Globals, agent: str | None, resident: bool) -> None:
    """Answer an agent that is about to use one of its own tools, or has used it.

    AGENT is claude-code, codex, gemini, opencode, cursor, vscode or antigravity. The agent writes the call to stdin,
    and reads the answer from stdout. If anything fails, the call is denied.
    """
    raise click.exceptions.Exit(options.servers["hook"](agent=agent, resident=resident))
