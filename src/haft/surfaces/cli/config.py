"""`haft config show`: every setting, its value, and who set it."""

from __future__ import annotations

import os

import click

from haft.contracts import BadConfig
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import workspace_of
from haft.surfaces.cli.printing import facts, lines, say, table, to_json_text
from haft.surfaces.cli.terminal import visible


@click.command("show", cls=HaftCommand)
@click.pass_obj
def show_config(said: Globals) -> None:
    """The settings in force, where each comes from, what was ignored, and the files that were read."""
    from haft.service import SETTINGS, load_config

    workspace = _workspace(said)
    config = load_config(workspace, os.environ)
    if said.json:
        facts(
            {
                "workspace": workspace,
                "files": list(config.files),
                "settings": [
                    {
                        "name": setting.name,
                        "value": config.values[setting.name],
                        "default": setting.default,
                        "source": config.sources[setting.name],
                        "what": setting.what,
                    }
                    for setting in SETTINGS
                ],
                "ignored": [
                    {"name": one.name, "value": one.value, "source": one.source, "why": one.why}
                    for one in config.ignored
                ],
            }
        )
        return
    table([(one.name, to_json_text(config.values[one.name]), config.sources[one.name]) for one in SETTINGS], cut=False)
    lines(f"ignored: {visible(one.sentence())}" for one in config.ignored)
    if not said.quiet:
        say(f"workspace: {workspace or 'none here'}")
        say(f"files read: {', '.join(config.files) or 'none'}")


def _workspace(said: Globals) -> str | None:
    try:
        return workspace_of(said)
    except BadConfig as error:
        if not said.quiet:
            say(f"no workspace: {error.message}")
        return None
