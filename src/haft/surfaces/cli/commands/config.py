"""`haft config show`: every setting, its value, and where it was set."""

from __future__ import annotations

import os
from typing import Any, Final

import click

from haft.contracts import BadConfig
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import tell_trust_hint, workspace_of
from haft.surfaces.cli.screen.printing import facts, lines, say, table
from haft.surfaces.text.home import state_home
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import visible

MOST_SHOWN: Final = 60
"""How many characters of a value the table shows."""


@click.command("show", cls=HaftCommand)
@click.pass_obj
def show_config(options: Globals) -> None:
    """Show each setting, its value and its origin. Also show the settings that haft ignored, and the files that haft
    read."""
    from haft.service import SETTINGS, load_config

    workspace = _workspace(options)
    config = load_config(workspace, os.environ, trust_home=state_home().path)
    rules = config.rules
    _ = config.enablement  # Raises if `tools.enable` or `tools.disable` is invalid.
    if options.json:
        facts(
            {
                "workspace": workspace,
                "files": list(config.files),
                "trusted": config.trusted,
                "settings": [
                    {
                        "name": setting.name,
                        "value": config.shown(setting.name),
                        "default": setting.default,
                        "source": config.sources[setting.name],
                        "what": setting.what,
                    }
                    for setting in SETTINGS
                ],
                "rules": [{"rule": rule.words, "origin": rule.origin, "source": rule.source} for rule in rules],
                "ignored": [one.to_json() for one in config.ignored],
                "unset": [one.to_json() for one in config.unset],
            }
        )
        return
    # Rules and some other values are long. The table cuts them; the rules are printed in full below it, one per line.
    table([(one.name, _short(config.shown(one.name)), config.sources[one.name]) for one in SETTINGS], cut=False)
    lines(f"rule: {visible(rule.words)} ({visible(rule.source)})" for rule in rules)
    lines(f"ignored: {visible(one.sentence())}" for one in config.ignored)
    lines(f"unset: {visible(one.sentence())}" for one in config.unset)
    if not options.quiet:
        tell_trust_hint(config)
        if config.trusted:
            say("the workspace's file is trusted")
        say(f"workspace: {workspace or 'none here'}")
        say(f"files read: {', '.join(config.files) or 'none'}")


def _short(value: Any) -> str:
    text = to_json_text(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _workspace(options: Globals) -> str | None:
    try:
        return workspace_of(options)
    except BadConfig as error:
        if not options.quiet:
            say(f"no workspace: {error.message}")
            say(f"hint: {error.hint}")
        return None
