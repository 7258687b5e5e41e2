"""`haft plugins`: which are configured, where they come from, and what git plugins are pinned to.

Listing fetches nothing; `update` alone follows a ref to another commit.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from haft.contracts import NO_GRANTS, AskingLauncher, BadUsage, Listing, near_miss
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.home import state_home
from haft.surfaces.cli.place import tell_ignored, tell_what_is_logged, workspace_of
from haft.surfaces.cli.screen.printing import complain, facts, lines, say, table, warn
from haft.surfaces.cli.screen.progress import Progress
from haft.surfaces.cli.screen.terminal import visible
from haft.surfaces.cli.screen.walls import grant_words

if TYPE_CHECKING:
    from haft.service import Config
    from haft.sources.bash_plugin import PluginReference
    from haft.storage import StateHome
    from haft.toolsets.fetching import Standing, Updated
    from haft.toolsets.plugins import BashPluginSource, ConfiguredPlugins, PythonPluginSource


@dataclass(frozen=True, slots=True)
class _Opened:
    sources: tuple[BashPluginSource, PythonPluginSource]
    config: Config
    workspace: str
    home: StateHome

    @property
    def plugins(self) -> ConfiguredPlugins:
        return self.sources[0].plugins


def _opened(said: Globals) -> _Opened:
    from haft.service import check_workspace, load_config
    from haft.toolsets.formats import Host
    from haft.toolsets.plugins import BashPluginSource, PythonPluginSource

    home = state_home()
    workspace = check_workspace(workspace_of(said), home.path)
    config = load_config(workspace, os.environ, trust_home=home.path)
    tell_ignored(config, said)
    tell_what_is_logged(said)
    host = Host(workspace, home, os.environ, None, None)
    host.configure(config)
    bash = BashPluginSource(host)
    bash.fetches = False
    return _Opened((bash, PythonPluginSource(host)), config, workspace, home)


@dataclass(frozen=True, slots=True)
class _Row:
    """One plugin, as it is shown."""

    reference: PluginReference
    standing: Standing | None
    """Of one that is fetched."""
    state: str
    reason: str | None
    tools: tuple[str, ...]
    now: str | None = None
    """What its ref means in the repository, where that was asked."""

    def where(self) -> str:
        if self.standing is None or self.standing.source is None:
            return self.reference.path or self.reference.dotted or self.reference.name
        pinned = f" @ {self.standing.commit[:12]}" if self.standing.commit else ""
        return self.standing.source.words + pinned

    def to_json(self) -> dict[str, Any]:
        git = None
        if self.standing is not None and self.standing.source is not None:
            source = self.standing.source
            git = {
                "url": source.url,
                "ref": source.ref,
                "commit": self.standing.commit,
                "remoteCommit": self.now,
                "checkout": self.standing.place,
                "lock": source.lock,
            }
        return {
            "name": self.reference.name,
            "family": self.reference.family,
            "source": self.reference.source,
            "path": self.reference.path,
            "git": git,
            "state": self.state,
            "reason": self.reason,
            "tools": list(self.tools),
            "grant": self.reference.grant.to_json() if self.reference.keeps_process else None,
        }


@click.command("list", cls=HaftCommand)
@click.option("--remote", "asks", is_flag=True, help="Ask the repositories whether a tag or branch has moved.")
@click.pass_obj
def list_plugins(said: Globals, asks: bool) -> None:
    """The plugins that are configured, where each comes from, and its tools. Nothing is fetched."""
    opened = _opened(said)
    rows = list(_rows(opened, _listings(opened, said), _now(opened, said) if asks else {}))
    if said.json:
        facts([row.to_json() for row in rows])
        return
    table(
        [(row.reference.name, row.reference.family, row.state, row.where(), ", ".join(row.tools)) for row in rows],
        style_first="bold",
        cut=False,
    )
    if said.quiet:
        return
    for row in rows:
        if row.reason is not None:
            say(f"{row.reference.name}: {row.reason}")
        if row.reference.grant != NO_GRANTS:
            say(f"{row.reference.name}: its process was granted {grant_words(row.reference.grant)}")
    if not rows:
        say("no plugins are configured: `plugins` in haft.toml names them")


@click.command("update", cls=HaftCommand)
@click.argument("names", nargs=-1, metavar="[NAME]…", help="Plugins; without any, all that are fetched.")
@click.pass_context
def update_plugins(context: click.Context, names: tuple[str, ...]) -> None:
    """Fetch what the refs of git plugins mean now, and pin that in haft.lock."""
    said: Globals = context.obj
    opened = _opened(said)
    wanted = _wanted(opened.plugins, names)
    done: list[Updated] = []
    if wanted:
        assert opened.plugins.fetching is not None
        progress = Progress(quiet=said.quiet)
        try:
            done = asyncio.run(
                opened.plugins.fetching.update(
                    wanted, lambda count, every: progress.passing(f"fetching plugins: {count} of {every}")
                )
            )
        finally:
            progress.clear()
    if said.json:
        facts([_fact(one) for one in done])
    else:
        lines(visible(_told(one)) for one in done if one.problem is None)
    for one in done:
        if one.problem is not None:
            complain(f"{one.reference.name}: {one.problem}")
    if not wanted and not said.quiet:
        say("no plugin is fetched from elsewhere")
    if any(one.problem is not None for one in done):
        context.exit(1)


def _wanted(plugins: ConfiguredPlugins, names: Sequence[str]) -> list[PluginReference]:
    """The git plugins of these names, each once."""
    fetched = [reference for reference in plugins.references if reference.git is not None]
    for name in names:
        if any(reference.name == name for reference in fetched):
            continue
        if any(reference.name == name for reference in plugins.references):
            raise BadUsage(f"the plugin `{name[:80]}` lies on this machine: there is nothing to fetch")
        near = near_miss(name, [reference.name for reference in fetched])
        hint = f"did you mean `{near}`?" if near else "`haft plugins list` shows the plugins there are"
        raise BadUsage(f"there is no plugin called `{name[:80]}`", hint=hint)
    return list(dict.fromkeys(reference for reference in fetched if not names or reference.name in names))


def _listings(opened: _Opened, said: Globals) -> list[Listing]:
    """The tools of the plugins. Files that are new are asked what they are."""
    from haft.registry import Catalogue
    from haft.service import looking_launcher

    enablement = opened.config.enablement
    catalogue = Catalogue(lambda spec: enablement.why_not(spec.name, spec.kind))
    for source in opened.sources:
        catalogue.take(source.name, source.find())
    if any(source.is_incomplete for source in opened.sources):
        progress = Progress(quiet=said.quiet)

        async def ask(launcher: AskingLauncher) -> None:
            for source in opened.sources:
                found = await source.refresh(
                    launcher, lambda count, every: progress.passing(f"asking plugins what they are: {count} of {every}")
                )
                if found is not None:
                    catalogue.take(source.name, found)

        with looking_launcher(opened.workspace, opened.home, opened.config) as launcher:
            asyncio.run(ask(launcher))
        progress.clear()
    return catalogue.listings(all=True)


def _now(opened: _Opened, said: Globals) -> dict[PluginReference, str]:
    """What the refs mean in their repositories. One that does not answer is told, and left out."""
    from haft.toolsets.checkouts import NotFetched

    found: dict[PluginReference, str] = {}
    fetching = opened.plugins.fetching
    pinned = [
        reference
        for reference in opened.plugins.references
        if fetching is not None and reference.git is not None and fetching.standing(reference).commit is not None
    ]

    async def one(reference: PluginReference) -> None:
        assert fetching is not None
        try:
            found[reference] = await fetching.remote(reference)
        except NotFetched as error:
            if not said.quiet:
                warn(f"{reference.name}: {error}")

    async def every() -> None:
        await asyncio.gather(*map(one, pinned))

    if pinned:
        asyncio.run(every())
    return found


def _rows(opened: _Opened, listings: Sequence[Listing], now: dict[PluginReference, str]) -> Iterator[_Row]:
    for reference in opened.plugins.references:
        fetching = opened.plugins.fetching if reference.git is not None else None
        standing = None if fetching is None else fetching.standing(reference)
        own = [one for one in listings if one.spec.meta.get("plugin", {}).get("reference") == reference.written]
        state, reason = _state(own)
        if standing is not None and standing.place is None and state == "broken" and not standing.is_final:
            state = "not fetched"
        remote = now.get(reference)
        if standing is not None and remote is not None and remote != standing.commit:
            state = "moved"
            reason = f"it is {remote[:12]} by now: `haft plugins update {reference.name}` takes that"
        tools = tuple(one.spec.name for one in own if one.state != "broken")
        is_there = standing is None or standing.place is not None
        yield _Row(reference, standing, state, reason, tools if is_there else (), remote)


def _state(listings: Sequence[Listing]) -> tuple[str, str | None]:
    """Of a plugin, from those of its tools: the one that most needs to be seen to."""
    for state in ("broken", "duplicate", "disabled"):
        for one in listings:
            if one.state == state:
                return state, one.reason
    return ("ready", None) if listings else ("broken", "nothing of it was found")


def _told(one: Updated) -> str:
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
