"""`haft plugins`: the configured plugins, where they come from, and the commits that git plugins are pinned to.

`list` fetches nothing; only `update` follows a ref to another commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from haft.contracts import NO_GRANTS
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import tell_ignored, tell_what_is_logged, workspace_of
from haft.surfaces.cli.screen.printing import complain, facts, lines, say, table, warn
from haft.surfaces.cli.screen.progress import Progress
from haft.surfaces.text.home import state_home
from haft.surfaces.text.sandbox import grant_words
from haft.surfaces.text.terminal import visible

if TYPE_CHECKING:
    from haft.service import PluginsFacade, Updated


def _opened(options: Globals) -> PluginsFacade:
    from haft.service import PluginsFacade, check_workspace, load_config

    home = state_home()
    workspace = check_workspace(workspace_of(options), home.path)
    config = load_config(workspace, os.environ, trust_home=home.path)
    tell_ignored(config, options)
    tell_what_is_logged(options)
    return PluginsFacade(workspace, home, config)


@click.command("list", cls=HaftCommand)
@click.option("--remote", is_flag=True, help="Ask the git repositories whether a tag or branch has moved.")
@click.pass_obj
def list_plugins(options: Globals, remote: bool) -> None:
    """List the configured plugins, each with its origin and its tools. haft downloads no plugin."""
    plugins = _opened(options)
    now = asyncio.run(plugins.remote(lambda text: None if options.quiet else warn(text))) if remote else {}
    with _progress(options, "describing plugins") as show_count:
        rows = asyncio.run(plugins.listed(show_count, now))
    if options.json:
        facts([row.to_json() for row in rows])
        return
    table(
        [(row.reference.name, row.reference.family, row.state, row.where(), ", ".join(row.tools)) for row in rows],
        style_first="bold",
        cut=False,
    )
    if options.quiet:
        return
    for row in rows:
        if row.reason is not None:
            say(f"{row.reference.name}: {row.reason}")
        if row.reference.grant != NO_GRANTS:
            say(f"{row.reference.name}: grants of its process: {grant_words(row.reference.grant)}")
    if not rows:
        say("no plugins are configured: list them under `plugins` in haft.toml")


@click.command("update", cls=HaftCommand)
@click.argument("names", nargs=-1, metavar="[NAME]…", help="The git plugins to update. Default: all git plugins.")
@click.pass_context
def update_plugins(context: click.Context, names: tuple[str, ...]) -> None:
    """For each git plugin, fetch the commit that its branch or tag points to now. haft writes the commit's hash to
    haft.lock, and uses this commit until the next update."""
    options: Globals = context.obj
    with _progress(options, "fetching plugins") as show_count:
        done = asyncio.run(_opened(options).update(names, show_count))
    if options.json:
        facts([_fact(one) for one in done])
    else:
        lines(visible(_update_line(one)) for one in done if one.problem is None)
    for one in done:
        if one.problem is not None:
            complain(f"{one.reference.name}: {one.problem}")
    if not done and not options.quiet:
        say("no git plugins are configured")
    if any(one.problem is not None for one in done):
        context.exit(1)


@contextlib.contextmanager
def _progress(options: Globals, doing: str) -> Iterator[Callable[[int, int], None]]:
    """A context manager that yields a function, which shows a count on the terminal. At the end, the line with the
    count is cleared."""
    progress = Progress(quiet=options.quiet)
    try:
        yield lambda count, every: progress.passing(f"{doing}: {count} of {every}")
    finally:
        progress.clear()


def _update_line(one: Updated) -> str:
    assert one.commit is not None
    where = one.source.words if one.source is not None else one.reference.written
    if one.before is None:
        return f"{one.reference.name}: fetched {where} @ {one.commit[:12]}"
    if one.before == one.commit:
        return f"{one.reference.name}: {where} is still {one.commit[:12]}"
    return f"{one.reference.name}: {where} was {one.before[:12]}, is now {one.commit[:12]}"


def _fact(one: Updated) -> dict[str, Any]:
    return {
        "name": one.reference.name,
        "url": one.source.url if one.source is not None else None,
        "ref": one.reference.ref,
        "before": one.before,
        "commit": one.commit,
        "changed": one.before != one.commit,
        "problem": one.problem,
    }
