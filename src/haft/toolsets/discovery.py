"""The tools that there are for a workspace: found, asked what they are, put into the catalogue, and looked at again.

What is known from earlier is there at once. What is new or was changed is asked, in the sandbox, and kept. Formats are
known here by their `ToolSource` alone; `formats.py` has the table.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from haft.config import load_config
from haft.contracts import (
    NO_GRANTS,
    NO_SECRETS,
    BadUsage,
    DescribeLauncher,
    DiscoveredTool,
    Grants,
    HaftError,
    Kind,
    Listing,
    Secrets,
    SessionLauncher,
    ToolSpec,
    clean_tool_name,
)
from haft.registry import Catalogue
from haft.storage import StateHome
from haft.toolsets import formats
from haft.toolsets.formats import Host

if TYPE_CHECKING:
    import asyncio

    from haft.config import Config, MissingVariable
    from haft.sources import ProgressCallback, ToolSource

UNSET: Final = "unset"


class Discovery:
    """The sources of one workspace and its user. Use it from one loop."""

    def __init__(
        self,
        workspace: str | None,
        home: StateHome,
        env: Mapping[str, str],
        sessions: SessionLauncher | None = None,
        *,
        follows_exports: bool = True,
        but: Collection[str] = (),
    ) -> None:
        """Without a workspace, what there is everywhere. `sessions` starts what outlives a call; without it such tools
        are listed, and cannot be called. With `follows_exports`, executables that stand for a tool are taken for it.
        `but` names formats that are left out."""
        opened = functools.partial(_elsewhere, home, env, sessions)
        self._host = Host(workspace or os.curdir, home, env, sessions, opened if follows_exports else None)
        self._formats = {
            one.name: one
            for one in formats.FORMATS
            if one.name not in but and (workspace is not None or not one.needs_workspace)
        }
        self._sources: dict[str, ToolSource] = {}
        self._placeless: set[str] = set()
        """The sources that could not say where they look."""
        self.activations = self._host.activations
        self._turn: asyncio.Lock | None = None

    def configure(self, config: Config) -> None:
        """Take in what is configured, before anything is looked for."""
        self._host.configure(config)

    def source(self, name: str) -> ToolSource:
        """The source of that name, opened when it is first wanted."""
        if name not in self._sources:
            self._sources[name] = self._formats[name].open(self._host)
        return self._sources[name]

    def sources(self) -> Iterator[ToolSource]:
        """The sources that may find something here."""
        for one in self._formats.values():
            if not one.settings or any(self._host.settings.get(setting) for setting in one.settings):
                yield self.source(one.name)

    def every_source(self) -> list[ToolSource]:
        """One for each format; the one that takes any file comes last."""
        ordered = sorted(self._formats.values(), key=lambda one: one.takes_any_file)
        return [self.source(one.name) for one in ordered]

    @property
    def secrets(self) -> Secrets:
        """What is secret of any tool, whoever calls it."""
        found = NO_SECRETS
        for source in self._sources.values():
            if (own := source.secrets).values:
                found |= own
        return found

    def closed_to_calls(self) -> list[str]:
        """What calls may not write in the workspace, since it would be run without being looked at."""
        return [path for source in self._sources.values() for path in source.closed_to_calls()]

    def why_inactive(self, spec: ToolSpec, thread: str | None) -> str | None:
        """Why a tool of a skill has not joined a thread; None where it has."""
        folder = spec.meta.get("skillFolder")
        if folder is None or folder in self.activations.of(thread):
            return None
        return f"its skill `{spec.meta['skill']}` is not active: `haft skills activate {spec.meta['skill']}`"

    def fill_builtin(self, catalogue: Catalogue, changed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Put in the built-in tools that depend on what there is. `changed` is awaited when a source has others."""
        self._host.catalogue = catalogue
        self._host.renew = changed or self._host.renew
        self._fill(catalogue, is_builtin=True)

    def fill(self, catalogue: Catalogue) -> bool:
        """Put in what is known; whether there is anything to ask."""
        self._host.catalogue = catalogue
        self._fill(catalogue, is_builtin=False)
        if self._host.is_configured:
            catalogue.replace_source(UNSET, filter(None, map(self._needing, self._host.config.unset)))
        return any(source.is_incomplete for source in self.sources())

    def _fill(self, catalogue: Catalogue, *, is_builtin: bool) -> None:
        for source in self.sources():
            if self._formats[source.name].is_builtin == is_builtin:
                with _tolerating(source, "find its tools"):
                    catalogue.replace_source(source.name, source.find())

    async def renew(
        self,
        catalogue: Catalogue,
        launcher: DescribeLauncher,
        told: ProgressCallback = lambda _done, _all: None,
        *,
        retry_name: str | None = None,
        only: Collection[str] | None = None,
    ) -> None:
        """Look again, ask what is not known, and put in what there is: of all sources, or `only` of some. Tools that
        could not be understood and are listed by the name `retry_name` are asked again. A source that fails does not
        keep the others from it; its error is raised at the end."""
        import asyncio

        self._turn = self._turn or asyncio.Lock()
        failed: HaftError | OSError | None = None
        async with self._turn:
            self._host.catalogue = catalogue
            for source in self.sources():
                if only is not None and source.name not in only:
                    continue
                with _tolerating(source, "refresh its tools"):
                    try:
                        found = await source.refresh(launcher, told, retry_name=retry_name)
                    except (HaftError, OSError) as error:
                        failed = failed or error
                        continue
                    if found is not None:
                        catalogue.replace_source(source.name, found)
        if failed is not None:
            raise failed

    @property
    def roots(self) -> set[str]:
        """Directories that stay: the workspace, and the user's home."""
        home = os.path.abspath(self._host.env.get("HOME") or os.path.expanduser("~"))
        return {self._host.workspace, home, os.path.realpath(home), os.path.abspath(self._host.state_home)}

    def names(self) -> set[str]:
        """Of the sources that may find something here."""
        return {source.name for source in self.sources()}

    async def places(self) -> dict[str, set[str]]:
        """What a change of calls for a refresh, and of which sources."""
        import asyncio

        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            return await asyncio.to_thread(self._places)

    def _places(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        self._placeless = set()
        for source in self.sources():
            self._placeless.add(source.name)
            with _tolerating(source, "say where it looks", OSError, HaftError):
                for place in source.places():
                    found.setdefault(os.path.abspath(place), set()).add(source.name)
                self._placeless.remove(source.name)
        return found

    def due(self) -> set[str]:
        """The sources that are to be refreshed now and then though no place changes; so is one that cannot say where
        its places are."""
        found = set(self._placeless)
        for source in self.sources():
            with _tolerating(source, "say whether it is due", OSError, HaftError):
                if source.due():
                    found.add(source.name)
        return found

    def is_current(self, listing: Listing) -> bool:
        """Whether a tool is still what it was when its source last looked. One whose source cannot say is not."""
        source = self._sources.get(listing.source)
        current = [source is None]
        if source is not None:
            with _tolerating(source, f"look at `{listing.spec.name}`", OSError, HaftError):
                current.append(source.is_current(listing.spec))
        return current[-1]

    def cure(self, listing: Listing) -> str:
        """What to do about a tool that cannot be called."""
        if listing.source in self._sources:
            return self._sources[listing.source].cure(listing.spec)
        return f"it comes from {listing.spec.origin}"

    def is_checked_at_origin(self, listing: Listing) -> bool:
        """Whether a tool is checked where it lies; else its definition alone is."""
        return listing.source in self._formats and self.source(listing.source).is_checked_at_origin(listing.spec)

    def searches(self, directory: str, name: str) -> bool:
        """Whether a source looks into a directory."""
        wanted = os.path.realpath(directory)
        return any(os.path.realpath(place) == wanted for place in self.source(name).places())

    async def at(self, path: str, launcher: DescribeLauncher, grants: Grants = NO_GRANTS) -> DiscoveredTool:
        """The tool at a path, wherever it lies, asked anew, with what a rule or whoever names it grants."""
        path = os.path.abspath(os.path.expanduser(path))
        if not os.path.lexists(path):
            raise BadUsage(f"there is no file {path}")
        for source in self.every_source():
            if source.recognizes(path):
                found = await source.load(path, launcher, grants)
                if found is not None:
                    return found
        raise BadUsage(f"{path} is a directory, and no template", hint="name an executable file, or a template")

    async def close(self) -> None:
        """End what outlived its calls."""
        for source in self._sources.values():
            with _tolerating(source, "be closed", OSError, HaftError):
                await source.close()
        self._host.close()

    def _needing(self, unset: MissingVariable) -> DiscoveredTool | None:
        """A tool that there would be if a variable were set."""
        one = next((one for one in self._formats.values() if one.each == unset.setting), None)
        if one is None:
            return None
        name = clean_tool_name(os.path.splitext(os.path.basename(unset.entry))[0])
        schema = {"type": "object", "properties": {}}
        spec = ToolSpec(name, cast(Kind, one.name), "", schema, origin=unset.source, provenance="user")
        return DiscoveredTool(spec, None, "needs-config", unset.sentence())


@contextlib.contextmanager
def _tolerating(source: ToolSource, doing: str, *told: type[Exception]) -> Iterator[None]:
    """Lets no source that is wrong stop the others. What haft itself says, and what the system refuses, passes where it
    is not `told` here."""
    try:
        yield
    except Exception as error:
        if isinstance(error, HaftError | OSError) and not isinstance(error, told):
            raise
        import logging

        logging.getLogger("haft").warning(
            "the source `%s` could not %s: %s: %s", source.name, doing, type(error).__name__, error
        )


def _elsewhere(
    home: StateHome, env: Mapping[str, str], sessions: SessionLauncher | None, workspace: str
) -> tuple[Discovery, Catalogue]:
    """Another workspace, as it is configured there, and a catalogue for what it has."""
    config = load_config(workspace, env, trust_home=home.path)
    enablement = config.enablement
    everywhere = [one.name for one in formats.FORMATS if one.is_builtin or not one.needs_workspace]
    discovery = Discovery(workspace, home, env, sessions, follows_exports=False, but=everywhere)
    discovery.configure(config)
    return discovery, Catalogue(lambda spec: enablement.why_not(spec.name, spec.kind))
