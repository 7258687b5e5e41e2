"""`haft permissions edit`: opens the user's own haft.toml in an editor. An invalid text never replaces the file."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import click

from haft.contracts import BadConfig, BadUsage
from haft.surfaces.cli.commands.permissions.change import workspace_or_none
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.person.line_input import confirm
from haft.surfaces.cli.place import require_person
from haft.surfaces.cli.screen.printing import complain, lines, say
from haft.surfaces.text.terminal import is_terminal, one_line

START: Final = """\
# Your own settings for haft. The first matching rule decides; `haft permissions test` says which rule that is.
#
# [[permissions]]
# tool = "shell"
# matches = {command = "npm test*"}
# action = "allow"
"""


@click.command("edit", cls=HaftCommand)
@click.pass_obj
def edit_rules(options: Globals) -> None:
    """Open your own haft.toml in $VISUAL or $EDITOR. haft checks the new text before it replaces the file. If the text
    is invalid, you can edit it again or keep the old file."""
    from haft.service import OwnFile

    require_person("permissions edit")
    file = OwnFile.read()
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout) and is_terminal(sys.stderr)):
        raise BadUsage(
            "`haft permissions edit` needs a terminal for the editor",
            hint=f"`haft permissions add` and `remove` work without a terminal; the file is {file.path}",
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
                raise BadUsage(f"{file.shown} was not changed") from error
            text = edited
    file.write(edited)
    lines([one_line(f"written: {file.shown}")])


def _edited(text: str) -> str | None:
    try:
        return click.edit(text, extension=".toml")
    except click.ClickException as error:
        raise BadUsage(error.format_message(), hint="set VISUAL or EDITOR") from error
