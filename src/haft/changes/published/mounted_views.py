"""Views for tools in this process: an overlay over the workspace and its published layers, reached by a descriptor.

The host itself mounts nothing. A helper mounts the overlay in its own namespace, and sends a descriptor of it. Calls
with equal views share one.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final, Protocol

from haft.changes.engines import layer_options
from haft.contracts import Layer, StartFailed
from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.changes.published.views import Lowers, View


MOUNT_SECONDS: Final = 10.0


class Mounter(Protocol):
    """The part of the sandbox that mounts a layer for reading."""

    async def mount(self, layer: Layer) -> None: ...


@dataclass(slots=True)
class _Mounted:
    descriptor: asyncio.Future[int]
    users: set[str] = field(default_factory=set)


class MountedViews:
    """The mounted views of one host."""

    def __init__(self, mounter: Mounter) -> None:
        self._mounter = mounter
        self._mounted: dict[Lowers, _Mounted] = {}
        self._count = 0

    async def descriptor(self, view: View) -> int:
        """A descriptor of the workspace as the view shows it. It is closed when the last of its views has ended."""
        mounted = self._mounted.get(view.lowers)
        if mounted is None:
            mounted = self._mounted[view.lowers] = _Mounted(asyncio.ensure_future(self._mount(view.lowers)))
        mounted.users.add(view.run)
        try:
            return await asyncio.shield(mounted.descriptor)
        except BaseException:
            self.release(view)
            raise

    async def _mount(self, lowers: Lowers) -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def receive(descriptor: int) -> None:
            if found.done():
                os.close(descriptor)
            else:
                found.set_result(descriptor)

        self._count += 1
        name = f"view-{self._count}"
        await self._mounter.mount(Layer(name, layer_options(), (0, 0), lowers, is_readonly=True, view=receive))
        try:
            async with asyncio.timeout(MOUNT_SECONDS):
                return await found
        except TimeoutError:
            raise StartFailed("the committed state of the workspace could not be mounted") from None

    def release(self, view: View) -> None:
        """A call with this view has ended, or its view was renewed."""
        for lowers, mounted in [*self._mounted.items()]:
            if view.run in mounted.users:
                mounted.users.discard(view.run)
                if not mounted.users:
                    del self._mounted[lowers]
                    mounted.descriptor.add_done_callback(_close)


def _close(descriptor: asyncio.Future[int]) -> None:
    if not descriptor.cancelled() and descriptor.exception() is None:
        os.close(descriptor.result())
