"""`haft permissions edit`: the user's own haft.toml in their editor. What is broken never takes the file's place."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import click

from haft.contracts import BadConfig, BadUsage
from haft.surfaces.cli.commands.permissions.change import workspace_or_none
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.person.line_input import confirm
from haft.surfaces.cli.screen.printing import complain, lines, say
from haft.surfaces.cli.screen.terminal import is_terminal, one_line

START: Final = """\
# Your own settings of haft. The first rule that fits decides; `haft permissions test` says which one does.
#
# [[permissions]]
# tool = "shell"
# matches = {command = "npm test*"}
# action = "allow"
"""


@click.command("edit", cls=HaftCommand)
@click.pass_obj
def edit_rules(options: Globals) -> None:
    """Open your own haft.toml in $VISUAL or $EDITOR. It is checked before it counts: what is broken can be edited
    again, or is thrown away, and the file stays as it was."""
    from haft.service import OwnFile

    file = OwnFile.read()
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout) and is_terminal(sys.stderr)):
        raise BadUsage(
            "`haft permissions edit` opens an editor, and there is no terminal for it",
            hint=f"`haft permissions add` and `remove` work without one; the file is {file.path}",
        )
    workspace = workspace_or_none(options)
    text = file.text or START
    while True:
        edited = _edited(text)
        if edited is None or edited == file.text:
            say("nothing was changed")
            return
        try:
            file.check(edited, workspace)
            break
        except BadConfig as error:
            complain(error.message, error.hint)
            if not asyncio.run(confirm("Edit it again? [Y/n] ", default=True)):
                raise BadUsage(f"{file.shown} stays as it was") from error
            text = edited
    file.write(edited)
    lines([one_line(f"written: {file.shown}")])


def _edited(text: str) -> str | None:
    try:
        return click.edit(text, extension=".toml")
    except click.ClickException as error:
        raise BadUsage(error.format_message(), hint="set VISUAL or EDITOR") from error
