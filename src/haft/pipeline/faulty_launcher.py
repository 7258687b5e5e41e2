"""The launcher of a call into which a test injects a fault."""

from __future__ import annotations

from haft.contracts import CallFaults, Command, Exit, Launcher, OutputSink


class FaultyLauncher:
    """Runs the programs that a fault makes of those that a call starts."""

    def __init__(self, launcher: Launcher, faults: CallFaults) -> None:
        self._launcher = launcher
        self._faults = faults

    async def run(self, command: Command, sink: OutputSink) -> Exit:
        return await self._launcher.run(*self._faults.program(command, sink))
