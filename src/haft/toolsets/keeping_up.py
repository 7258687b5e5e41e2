"""Keeps a catalogue true to what lies on disk, while a service is open: tools come, go and change."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Final

from haft.contracts import NO_GRANTS, AskingLauncher, BadUsage, Grants, Listing
from haft.registry import Catalogue
from haft.toolsets.discovery import Discovery

LOOK_SECONDS: Final = 1.0
"""How often it looks by itself. A call looks at its own tool before, so that it never meets an old one."""
_log = logging.getLogger("haft")


class KeepingUp:
    """One for each service. `launcher` makes what asks tools what they are."""

    def __init__(self, discovery: Discovery, catalogue: Catalogue, launcher: Callable[[], AskingLauncher]) -> None:
        self._discovery = discovery
        self._catalogue = catalogue
        self._launcher = launcher
        self._looking: asyncio.Task[None] | None = None

    async def start(self, *, is_incomplete: bool) -> None:
        """Ask what is not known yet, and look again from time to time from now on."""
        if is_incomplete:
            await self.renew()
        self._looking = asyncio.create_task(self._keep_looking())

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
        await self._discovery.renew(self._catalogue, self._launcher(), doubted=name, only=only)

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

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.renew()
            except Exception as error:  # whatever happens, the next tool is looked for
                _log.warning("tools could not be looked for: %s", error)
