"""Keeps the catalogue of an open service up to date while tools are added, removed and changed.

The kernel reports changes of files, so that an idle service costs nothing. If the kernel cannot do that, haft refreshes
the sources now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Final, Never

from haft.contracts import NO_GRANTS, BadUsage, DescribeLauncher, Grants, Listing
from haft.registry import Catalogue
from haft.toolsets.discovery import Discovery

if TYPE_CHECKING:
    from haft.toolsets.watched_places import WatchedPlaces

LOOK_SECONDS: Final = 1.0
"""The shortest time between two refreshes. An outdated tool never runs even so, because each call first checks its own
tool."""
MOST_SECONDS: Final = 30.0
"""The longest time until haft checks for changes that the kernel did not report."""
SETTLE_SECONDS: Final = 0.1
"""How long haft waits after a change for further changes."""
_log = logging.getLogger("haft")


class CatalogueRefresher:
    """Refreshes the catalogue of one service. `launcher` returns the launcher that starts tools to describe them."""

    def __init__(self, discovery: Discovery, catalogue: Catalogue, launcher: Callable[[], DescribeLauncher]) -> None:
        self._discovery = discovery
        self._catalogue = catalogue
        self._launcher = launcher
        self._looking: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._changed: set[str] = set()
        """The sources that need a refresh."""

    async def start(self, *, is_incomplete: bool) -> None:
        """Refresh the catalogue from now on when tools change. If `is_incomplete`, first describe the tools that are
        not described yet."""
        if is_incomplete:
            await self.renew()
        self._looking = asyncio.create_task(self._refresh_forever())

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def renew(self, name: str | None = None) -> None:
        """Refresh all sources. If the catalogue has a tool `name`, refresh only the source of this tool, and only if
        the tool has changed."""
        listing = None if name is None else self._catalogue.listing(name)
        if listing is not None and self._discovery.is_current(listing):
            return
        if listing is None and name is not None:
            await self._discovery.find_unlisted(name)
        only = None if listing is None else (listing.source,)
        await self._discovery.renew(self._catalogue, self._launcher(), retry_name=name, only=only)

    async def load(self, path: str, thread: str, grants: Grants = NO_GRANTS) -> Listing:
        """The tool at a path: the loaded one if it is up to date, else a new one. While haft describes the tool, the
        tool has the network, the variables and the readable files of `grants`."""
        full = os.path.abspath(os.path.expanduser(path))
        there = [one for one in self._catalogue.listings(thread=thread) if one.spec.origin == full]
        if len(there) > 1:
            named = ", ".join(f"`{one.spec.name}`" for one in there)
            raise BadUsage(f"{full} has several tools: {named}", hint="call one of them by its name")
        if there and there[0].source and self._discovery.is_current(there[0]):
            return there[0]
        found = await self._discovery.at(full, self._launcher(), grants)
        assert found.tool is not None
        self._catalogue.forget(full)
        listing = self._catalogue.add(found.tool)
        if listing.state != "ready":
            raise BadUsage(f"{full} cannot be used: {listing.reason}", hint="give one of them another name")
        return listing

    async def _refresh_forever(self) -> None:
        """Refresh sources when they change. Waits `LOOK_SECONDS` first, because most commands end before anything can
        change."""
        await asyncio.sleep(LOOK_SECONDS)
        while True:
            try:
                await self._refresh_what_changes()
            except Exception as error:  # Discovery must go on whatever happens.
                _log.warning("tools could not be watched: %s", error)
                await asyncio.sleep(MOST_SECONDS)

    async def _refresh_what_changes(self) -> Never:
        pause = settle = LOOK_SECONDS
        with self._watching() as watched:
            stale = self._discovery.names()
            while True:
                seen = self._catalogue.version
                while stale:
                    await self._refresh(stale)
                    # A file or directory that is watched only from now on may have changed before.
                    stale = set() if watched is None else watched.follow(await self._discovery.places())
                    await asyncio.sleep(SETTLE_SECONDS if stale else 0)
                is_other = seen != self._catalogue.version
                pause, settle = (LOOK_SECONDS, SETTLE_SECONDS) if is_other else (2 * pause, 2 * settle)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(pause, MOST_SECONDS)):  # `wait_for` can lose a cancellation
                        await self._woken.wait()
                if self._woken.is_set():
                    # Saving a file makes several changes, so wait for all of them. If they had no effect on the
                    # catalogue, the next wait is longer.
                    await asyncio.sleep(min(settle, LOOK_SECONDS))
                    stale, self._changed = self._changed, set()
                    self._woken.clear()
                elif watched is None:
                    stale = self._discovery.names()
                else:
                    settle = SETTLE_SECONDS
                    stale = self._discovery.due() | watched.unwatched | await asyncio.to_thread(watched.missed)

    @contextlib.contextmanager
    def _watching(self) -> Iterator[WatchedPlaces | None]:
        """A context manager that watches the places of tools, and wakes the refreshing task when one of them changes.
        Yields the watched places; None if this machine cannot watch."""
        from haft.toolsets.watched_places import WatchedPlaces

        loop = asyncio.get_running_loop()
        try:
            watched = WatchedPlaces(self._discovery.roots)
        except OSError:
            yield None
            return

        def told() -> None:
            self._changed |= watched.changed()
            if self._changed:
                self._woken.set()

        try:
            loop.add_reader(watched.descriptor, told)
            yield watched
        finally:
            loop.remove_reader(watched.descriptor)
            watched.close()

    async def _refresh(self, stale: Collection[str]) -> None:
        try:
            await self._discovery.renew(self._catalogue, self._launcher(), only=stale)
        except Exception as error:  # Discovery must go on whatever happens.
            _log.warning("tools could not be discovered: %s", error)
