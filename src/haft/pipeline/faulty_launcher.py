"""The launcher of a call into which a test injects a fault."""

from __future__ import annotations

from haft.contracts import CallFaults, Command, Exit, Launcher, OutputSink


class _FaultyLauncher:
    """Runs the programs that a fault makes of those that a call starts."""

    def __init__(self, launcher: Launcher, faults: CallFaults) -> None:
        self._launcher = launcher
        self._faults = faults

    async def run(self, command: Command, sink: OutputSink) -> Exit:
        return await self._launcher.run(*self._faults.program(command, sink))


def with_faults(launcher: Launcher, faults: CallFaults | None) -> Launcher:
    """A launcher that injects these faults, if there are any."""
    return launcher if faults is None else _FaultyLauncher(launcher, faults)
