"""`haft doctor`: the checks of the service, for a person or as JSON."""

from __future__ import annotations

import os
import sys

import click

from haft.contracts import BadConfig
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import state_home, workspace_of
from haft.surfaces.cli.printing import facts, lines
from haft.surfaces.cli.terminal import one_line, styled

_STYLES = {"ok": "good", "warn": "warn", "broken": "bad"}


@click.command("doctor", cls=HaftCommand)
@click.pass_context
def examine(context: click.Context) -> None:
    """What this machine can do, what is broken, and what to do about it. Exits 1 where something is broken."""
    from haft.service import diagnose

    said = context.find_object(Globals) or Globals()
    try:
        workspace: str | None = workspace_of(said)
    except BadConfig:
        workspace = None
    checks = []
    for check in diagnose(state_home(), workspace, os.environ):
        checks.append(check)
        if not said.json:
            mark = styled(f"{check.state:<6}", _STYLES[check.state], sys.stdout)
            lines([f"{mark}  {check.check}: {one_line(check.detail)}"])
            if check.hint and check.state != "ok":
                lines([f"        hint: {one_line(check.hint)}"])
    if said.json:
        facts([check.to_json() for check in checks])
    context.exit(1 if any(check.state == "broken" for check in checks) else 0)
