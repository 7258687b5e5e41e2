"""The launchers that the sandbox gives to tools: each confines the commands that it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from haft.contracts import (
    NO_GRANTS,
    Command,
    Confinement,
    ConnectionObserver,
    DescribeLauncher,
    EndedChild,
    Exit,
    Grants,
    Layer,
    MaskedStream,
    OutputSink,
    ScratchFull,
    Secrets,
    Stream,
)
from haft.values import replace

if TYPE_CHECKING:
    from haft.sandbox.sandbox import Sandbox


class DiscardedOutput:
    """An output sink for a command whose output nobody needs."""

    def output(self, stream: Stream, data: bytes) -> None: ...

    def processes_ended(self, children: Sequence[EndedChild]) -> None: ...


class _MaskingSink:
    """Passes the output of a program on, with the granted secrets masked."""

    def __init__(self, sink: OutputSink, secrets: Secrets) -> None:
        self._sink = sink
        self._streams: dict[Stream, MaskedStream] = {"stdout": secrets.stream(), "stderr": secrets.stream()}

    def output(self, stream: Stream, data: bytes) -> None:
        self._sink.output(stream, self._streams[stream].feed(data))

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self._sink.processes_ended(children)

    def end(self) -> None:
        for stream, masked in self._streams.items():
            self._sink.output(stream, masked.end())


class SandboxLauncher:
    """Starts commands with the confinement that `confine` returns. Commands in the same layer run one after another."""

    def __init__(
        self,
        sandbox: Sandbox,
        confine: Callable[[], Awaitable[Confinement]],
        grants: Grants = NO_GRANTS,
        *,
        layer: Layer | None = None,
        closed: bool = False,
        is_of_one_call: bool = False,
        observer: ConnectionObserver | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._confine = confine
        self._grants = grants
        self._layer = layer
        self._closed = closed
        self._is_of_one_call = is_of_one_call
        self._observer = observer
        self._has_begun = False
        self._turn = asyncio.Lock()

    @property
    def granted(self) -> Grants:
        return self._grants

    def with_grants(self, grants: Grants) -> DescribeLauncher:
        """A launcher for a program to which a person granted more: network, variables, and files to read."""
        if grants == NO_GRANTS:
            return self
        return self._sandbox.describe_launcher_with(Grants(network=grants.network, env=grants.env, read=grants.read))

    async def is_confined(self) -> bool:
        return (await self._sandbox.ready()).namespaces

    async def run(self, command: Command, sink: OutputSink) -> Exit:
        confinement = await self._confine()
        if self._has_begun:
            confinement = self._sandbox.for_later_command(confinement)
        self._has_begun = self._is_of_one_call
        self._sandbox.check(confinement)
        if self._closed and (secrets := self._sandbox.granted_secrets(self._grants)):
            sink = _MaskingSink(sink, secrets)
        try:
            return await self._run(confinement, command, sink)
        except ScratchFull:
            if self._sandbox.scratch is not None and confinement.scratch is not None:
                await asyncio.to_thread(self._sandbox.scratch.empty, confinement.scratch)
            raise

    async def _run(self, confinement: Confinement, command: Command, sink: OutputSink) -> Exit:
        if self._layer is None:
            end = await self._sandbox.start(confinement, command, sink, self._observer)
            if isinstance(sink, _MaskingSink):
                sink.end()
            return end
        async with self._turn:
            return await self._sandbox.answer(replace(confinement, layer=self._layer), command, sink, self._observer)
