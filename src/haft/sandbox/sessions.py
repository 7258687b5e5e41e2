"""Controls a program that outlives its calls and runs in a layer. The host tells the helper when to stop the program,
and when to replace the layer by a fresh one."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Sequence

from haft.contracts import Exit, Layer, StartFailed
from haft.processes import ProcessSession


class LayeredProgram:
    """A `LayeredSession` whose process runs in the sandbox."""

    def __init__(self, session: ProcessSession, layers: str) -> None:
        """`layers` is the directory with the layers of calls."""
        self._session = session
        self._layers = layers

    @property
    def is_over(self) -> bool:
        return self._session.is_over

    def send(self, data: bytes) -> Awaitable[None]:
        return self._session.send(data)

    def begin_call(self) -> None:
        self._session.begin_call()

    async def end_call(self) -> None:
        await self._session.end_call()

    async def wait(self) -> Exit:
        return await self._session.wait()

    async def end(self) -> None:
        await self._session.end()

    async def stop(self) -> Sequence[str]:
        said = await self._session.order({"do": "stop"})
        problem = said.get("problem")
        return [*([problem] if problem else []), *said.get("holders", ())]

    async def resume(self, layer: Layer) -> None:
        work = f"work-{os.urandom(8).hex()}"
        fields = {
            "name": layer.name,
            "options": layer.options,
            "upper": layer.upper,
            "lowers": layer.lowers,
            "work": work,
        }
        said = await self._session.order({"do": "turn", "layer": fields, "view": layer.view is not None})
        if layer.view is not None and "view" in said:
            layer.view(said["view"])
        # The kernel makes this directory when it mounts the layer, so it proves more than the helper's answer.
        if "failed" in said or not os.path.isdir(os.path.join(self._layers, layer.name, work, "work")):
            why = said.get("failed", "it is not there")
            raise StartFailed(f"a fresh layer could not be mounted under its process: {why}")
