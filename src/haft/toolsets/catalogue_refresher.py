"""Keeps a catalogue true to what there is, while a service is open: tools come, go and change.

The kernel tells of changes, so that an idle service costs nothing. Where it cannot, sources are refreshed now and then.
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
"""How often it looks at most. A call looks at its own tool before, so that it never meets an old one."""
MOST_SECONDS: Final = 30.0
"""How long it waits at most before it looks whether it was told of everything."""
SETTLE_SECONDS: Final = 0.1
"""How long it waits after a change, for those that come with it."""
_log = logging.getLogger("haft")


class CatalogueRefresher:
    """One for each service. `launcher` makes what asks tools what they are."""

    def __init__(self, discovery: Discovery, catalogue: Catalogue, launcher: Callable[[], DescribeLauncher]) -> None:
        self._discovery = discovery
        self._catalogue = catalogue
        self._launcher = launcher
        self._looking: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._changed: set[str] = set()
        """The sources that are to be refreshed."""

    async def start(self, *, is_incomplete: bool) -> None:
        """Ask what is not known yet, and keep up with changes from now on."""
        if is_incomplete:
            await self.renew()
        self._looking = asyncio.create_task(self._keep_up())

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def renew(self, name: str | None = None) -> None:
        """Look again: at everything, or because a tool is called that is not there or was changed."""
        listing = None if name is None else self._catalogue.listing(name)
        if listing is not None and self._discovery.is_current(listing):
            return
        only = None if listing is None else (listing.source,)
        await self._discovery.renew(self._catalogue, self._launcher(), retry_name=name, only=only)

    async def load(self, path: str, thread: str, grants: Grants = NO_GRANTS) -> Listing:
        """The tool at a path: the one that is there already, or one that is taken in. It is asked with what of `grants`
        can be had by who is asked: the network, variables, and files to read."""
        full = os.path.abspath(os.path.expanduser(path))
        there = [one for one in self._catalogue.listings(thread=thread) if one.spec.origin == full]
        if len(there) > 1:
            named = ", ".join(f"`{one.spec.name}`" for one in there)
            raise BadUsage(f"{full} is several tools: {named}", hint="call one of them by its name")
        if there and there[0].source and self._discovery.is_current(there[0]):
            return there[0]
        found = await self._discovery.at(full, self._launcher(), grants)
        assert found.tool is not None
        self._catalogue.forget(full)
        listing = self._catalogue.add(found.tool)
        if listing.state != "ready":
            raise BadUsage(f"{full} cannot be used: {listing.reason}", hint="give one of them another name")
        return listing

    async def _keep_up(self) -> None:
        """Refresh what changes. Nothing is set up for whoever is gone within a moment, as most commands are."""
        await asyncio.sleep(LOOK_SECONDS)
        while True:
            try:
                await self._refresh_what_changes()
            except Exception as error:  # whatever happens, the next tool is looked for
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
                    # Whoever is watched only from now on may have changed before.
                    stale = set() if watched is None else watched.follow(await self._discovery.places())
                    await asyncio.sleep(SETTLE_SECONDS if stale else 0)
                is_other = seen != self._catalogue.version
                pause, settle = (LOOK_SECONDS, SETTLE_SECONDS) if is_other else (2 * pause, 2 * settle)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(pause, MOST_SECONDS)):  # `wait_for` can lose a cancellation
                        await self._woken.wait()
                if self._woken.is_set():
                    # One save is several changes; and changes that mean nothing are looked at ever less often.
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
        """What wakes the task when a place changes; None where nothing can be watched."""
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
        except Exception as error:  # whatever happens, the next tool is looked for
            _log.warning("tools could not be looked for: %s", error)
