"""Discovers the tools of a workspace, describes them, adds them to the catalogue, and refreshes them.

Tools that were described before are available at once. haft describes new and changed tools in the sandbox, and stores
the result. This module knows formats only by their `ToolSource`; `formats.py` has the table.
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
    """The sources of one workspace and its user. Use one object in one event loop only."""

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
        """If `workspace` is None, haft finds only tools that need no workspace. `sessions` starts the processes of
        tools whose processes outlive their calls; without it, these tools are listed, but cannot be called. With
        `follows_exports`, an exported executable becomes the tool that it stands for. `but` contains the names of
        formats to leave out."""
        opened = functools.partial(_elsewhere, home, env, sessions)
        self._host = Host(workspace or os.curdir, home, env, sessions, opened if follows_exports else None)
        self._formats = {
            one.name: one
            for one in formats.FORMATS
            if one.name not in but and (workspace is not None or not one.needs_workspace)
        }
        self._sources: dict[str, ToolSource] = {}
        self._placeless: set[str] = set()
        """The sources that could not name the files and directories that they search."""
        self.activations = self._host.activations
        self._turn: asyncio.Lock | None = None

    def configure(self, config: Config) -> None:
        """Set the configuration, before anything is discovered."""
        self._host.configure(config)

    @property
    def sessions(self) -> SessionLauncher | None:
        """The launcher of processes that outlive their calls."""
        return self._host.sessions

    def source(self, name: str) -> ToolSource:
        """The source of that name, opened at its first use."""
        if name not in self._sources:
            self._sources[name] = self._formats[name].open(self._host)
        return self._sources[name]

    def sources(self) -> Iterator[ToolSource]:
        """The sources that may find tools in this workspace."""
        for one in self._formats.values():
            if not one.settings or any(self._host.settings.get(setting) for setting in one.settings):
                yield self.source(one.name)

    def every_source(self) -> list[ToolSource]:
        """The sources of all formats. The source that accepts any file comes last."""
        ordered = sorted(self._formats.values(), key=lambda one: one.takes_any_file)
        return [self.source(one.name) for one in ordered]

    @property
    def secrets(self) -> Secrets:
        """The secrets of all tools."""
        found = NO_SECRETS
        for source in self._sources.values():
            if (own := source.secrets).values:
                found |= own
        return found

    def closed_to_calls(self) -> list[str]:
        """Paths in the workspace that calls may not write, because haft runs the files there without checking them."""
        return [path for source in self._sources.values() for path in source.closed_to_calls()]

    def why_inactive(self, spec: ToolSpec, thread: str | None) -> str | None:
        """Why a tool of a skill is not active in a thread; None if it is active."""
        folder = spec.meta.get("skillFolder")
        if folder is None or folder in self.activations.of(thread):
            return None
        return f"its skill `{spec.meta['skill']}` is not active: `haft skills activate {spec.meta['skill']}`"

    def fill_builtin(self, catalogue: Catalogue, changed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Add the built-in tools that depend on what is installed. `changed` is called and awaited when a source has
        new tools."""
        self._host.catalogue = catalogue
        self._host.renew = changed or self._host.renew
        self._fill(catalogue, is_builtin=True)

    def fill(self, catalogue: Catalogue) -> bool:
        """Add to the catalogue all tools that haft has already described. Returns True if there are also tools that
        haft has not described yet."""
        self._host.catalogue = catalogue
        self._fill(catalogue, is_builtin=False)
        if self._host.is_configured:
            catalogue.replace_source(UNSET, filter(None, map(self._needs_variable, self._host.config.unset)))
        return any(source.is_incomplete for source in self.sources())

    def _fill(self, catalogue: Catalogue, *, is_builtin: bool) -> None:
        for source in self.sources():
            if self._formats[source.name].is_builtin == is_builtin:
                with _logging_errors(source, "find its tools"):
                    catalogue.replace_source(source.name, source.find())

    async def find_unlisted(self, name: str) -> None:
        """Let the sources get ready to list a tool of this name, which a call names and which is not listed."""
        for source in self.sources():
            with _logging_errors(source, f"look for `{name}`", OSError, HaftError):
                await source.find_unlisted(name)

    async def renew(
        self,
        catalogue: Catalogue,
        launcher: DescribeLauncher,
        told: ProgressCallback = lambda _done, _all: None,
        *,
        retry_name: str | None = None,
        only: Collection[str] | None = None,
    ) -> None:
        """Refresh all sources, or only those named in `only`: describe the tools that are not described yet, and update
        the catalogue. A broken tool with the name `retry_name` is described again. If a source fails, the others are
        still refreshed, and the error is raised at the end."""
        import asyncio

        self._turn = self._turn or asyncio.Lock()
        failed: HaftError | OSError | None = None
        async with self._turn:
            self._host.catalogue = catalogue
            for source in self.sources():
                if only is not None and source.name not in only:
                    continue
                with _logging_errors(source, "refresh its tools"):
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
        """Directories that are never moved or replaced while a service is open: the workspace, the user's home and the
        state home."""
        home = os.path.abspath(self._host.env.get("HOME") or os.path.expanduser("~"))
        return {self._host.workspace, home, os.path.realpath(home), os.path.abspath(self._host.state_home)}

    def names(self) -> set[str]:
        """The names of the sources that may find tools in this workspace."""
        return {source.name for source in self.sources()}

    async def places(self) -> dict[str, set[str]]:
        """The files and directories to watch, each with the names of the sources to refresh when it changes."""
        import asyncio

        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            return await asyncio.to_thread(self._places)

    def _places(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        self._placeless = set()
        for source in self.sources():
            self._placeless.add(source.name)
            with _logging_errors(source, "say where it looks", OSError, HaftError):
                for place in source.places():
                    found.setdefault(os.path.abspath(place), set()).add(source.name)
                self._placeless.remove(source.name)
        return found

    def due(self) -> set[str]:
        """The names of the sources that need a refresh now and then even if no watched file or directory changes, for
        example because a source cannot name the places that it searches."""
        found = set(self._placeless)
        for source in self.sources():
            with _logging_errors(source, "say whether it is due", OSError, HaftError):
                if source.due():
                    found.add(source.name)
        return found

    def is_current(self, listing: Listing) -> bool:
        """Whether a tool has not changed since its source was last refreshed. False if the source fails to answer, True
        if the tool comes from no source."""
        source = self._sources.get(listing.source)
        current = [source is None]
        if source is not None:
            with _logging_errors(source, f"look at `{listing.spec.name}`", OSError, HaftError):
                current.append(source.is_current(listing.spec))
        return current[-1]

    def cure(self, listing: Listing) -> str:
        """A text that says what to do about a tool that cannot be called."""
        if listing.source in self._sources:
            return self._sources[listing.source].cure(listing.spec)
        return f"it comes from {listing.spec.origin}"

    def is_checked_at_origin(self, listing: Listing) -> bool:
        """Whether `haft tools check` checks the file that the tool comes from. If not, it checks only the tool's
        definition."""
        return listing.source in self._formats and self.source(listing.source).is_checked_at_origin(listing.spec)

    def searches(self, directory: str, name: str) -> bool:
        """Whether the source `name` searches a directory for tools."""
        wanted = os.path.realpath(directory)
        return any(os.path.realpath(place) == wanted for place in self.source(name).places())

    async def at(self, path: str, launcher: DescribeLauncher, grants: Grants = NO_GRANTS) -> DiscoveredTool:
        """Describe the tool at any path. While haft describes the tool, the tool has `grants` and the grants that rules
        give to it."""
        path = os.path.abspath(os.path.expanduser(path))
        if not os.path.lexists(path):
            raise BadUsage(f"there is no file {path}")
        for source in self.every_source():
            if source.recognizes(path):
                found = await source.load(path, launcher, grants)
                if found is not None:
                    return found
        raise BadUsage(f"{path} is a directory, but not a template", hint="name an executable file, or a template")

    async def close(self) -> None:
        """Close the sources, and end their processes that outlive calls."""
        for source in self._sources.values():
            with _logging_errors(source, "be closed", OSError, HaftError):
                await source.close()
        self._host.close()

    def _needs_variable(self, unset: MissingVariable) -> DiscoveredTool | None:
        """The entry in the catalogue for a tool whose setting uses an environment variable that is not set. None if the
        setting is not about a single tool."""
        one = next((one for one in self._formats.values() if one.each == unset.setting), None)
        if one is None:
            return None
        name = clean_tool_name(os.path.splitext(os.path.basename(unset.entry))[0])
        schema = {"type": "object", "properties": {}}
        spec = ToolSpec(name, cast(Kind, one.name), "", schema, origin=unset.source, provenance="user")
        return DiscoveredTool(spec, None, "needs-config", unset.sentence())


@contextlib.contextmanager
def _logging_errors(source: ToolSource, doing: str, *told: type[Exception]) -> Iterator[None]:
    """A context manager that logs errors of a source, so that a faulty source does not stop the others. A `HaftError`
    or `OSError` is logged if its type is in `told`; otherwise it is raised."""
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
    """The discovery of another workspace with its own configuration, and an empty catalogue for its tools."""
    config = load_config(workspace, env, trust_home=home.path)
    enablement = config.enablement
    everywhere = [one.name for one in formats.FORMATS if one.is_builtin or not one.needs_workspace]
    discovery = Discovery(workspace, home, env, sessions, follows_exports=False, but=everywhere)
    discovery.configure(config)
    return discovery, Catalogue(lambda spec: enablement.why_not(spec.name, spec.kind))
