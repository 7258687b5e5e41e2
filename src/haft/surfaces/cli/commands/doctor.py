"""`haft doctor`: prints the checks of the service, for a person or as JSON."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from haft.contracts import BadConfig
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import current_directory
from haft.surfaces.cli.screen.printing import facts, lines
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import one_line, styled

if TYPE_CHECKING:
    from haft.service import Check, ForeignFile

_STYLES = {"ok": "good", "warn": "warn", "broken": "bad"}


@click.command("doctor", cls=HaftCommand)
@click.pass_context
def examine(context: click.Context) -> None:
    """Say what haft can do on this machine, what is broken, and how to fix each problem. The exit code is 1 if
    something is broken."""
    from haft.service import diagnose

    options = context.find_object(Globals) or Globals()
    workspace, found = _workspace(options)
    checks = []
    for check in itertools.chain(found, diagnose(state_home(), workspace, os.environ), _agents(workspace)):
        checks.append(check)
        if not options.json:
            mark = styled(f"{check.state:<6}", _STYLES[check.state], sys.stdout)
            lines([f"{mark}  {check.check}: {one_line(check.detail)}"])
            if check.hint and check.state != "ok":
                lines([f"        hint: {one_line(check.hint)}"])
    if options.json:
        facts([check.to_json() for check in checks])
    context.exit(1 if any(check.state == "broken" for check in checks) else 0)


def _agents(workspace: str | None) -> Iterator[Check]:
    """Whether the connections to agents work and are up to date."""
    from haft.service import Check
    from haft.surfaces.cli.commands.connect import examined_agents

    connected = []
    for found in examined_agents(workspace):
        for problem in found.problems:
            if found.is_connected:
                yield Check("connected agents", "broken" if problem.is_broken else "warn", problem.detail, problem.hint)
        if found.is_connected and not found.problems:
            connected.append(found.agent.title)
    words = f"connected: {', '.join(dict.fromkeys(connected))}" if connected else "none is connected"
    yield Check("connected agents", "ok", words, "`haft connect` lists the agents")


def _workspace(options: Globals) -> tuple[str | None, list[Check]]:
    """The workspace, or None if there is none; and a warning for each directory that cannot be the workspace."""
    from haft.service import Check, find_workspace

    if options.workspace is not None:
        return options.workspace, []
    strangers: list[Check] = []

    def report_skipped(stranger: ForeignFile) -> None:
        strangers.append(Check("workspace", "warn", stranger.sentence(), stranger.hint()))

    try:
        return find_workspace(current_directory(), state_home().path, report_skipped), strangers
    except BadConfig as error:
        return None, [*strangers, Check("workspace", "warn", error.message, error.hint)]
