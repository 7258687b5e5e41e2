"""Runs a foreign program in the sandbox for a short time and returns its output: to describe a tool, for example.

Time and output are limited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from haft.contracts import Command, EndedChild, HaftError, Launcher, MachineError, Stream, error_or_last_line

DESCRIBE_SECONDS: Final = 5.0
MAX_STDOUT: Final = 1_000_000
"""The most bytes of stdout. No description needs more."""
MAX_STDERR: Final = 8_000
"""How many bytes at the end of stderr are kept."""


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """What a program printed, and how it ended."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int | None = None
    """None if haft stopped the program, or if it did not start."""
    seconds: float = 0.0
    timed_out: bool = False
    """Whether haft stopped the program at its deadline."""
    is_too_long: bool = False
    """Whether haft stopped the program because it printed more than `MAX_STDOUT` bytes."""
    left_processes: tuple[str, ...] = ()
    """The commands of the processes that the program left running. haft has ended these processes."""
    start_failure: str | None = None
    """Why the program could not be started; None if it was started."""
    is_machine_fault: bool = False
    """Whether the machine, and not the program, is the reason why it could not be started."""


class _OutputCollector:
    def __init__(self) -> None:
        self.streams = {"stdout": bytearray(), "stderr": bytearray()}
        self.left_processes: list[str] = []
        self.too_much = asyncio.Event()

    def output(self, stream: Stream, data: bytes) -> None:
        kept = self.streams[stream]
        if stream == "stderr":
            kept += data
            del kept[:-MAX_STDERR]  # Programs print the cause of a failure last.
            return
        if len(kept) + len(data) > MAX_STDOUT:
            self.too_much.set()
        kept += data[: max(0, MAX_STDOUT - len(kept))]

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self.left_processes += [child.command for child in children]


async def run_briefly(command: Command, launcher: Launcher, *, seconds: float = DESCRIBE_SECONDS) -> ProgramOutput:
    """Run a program until it ends, until the deadline, or until it has printed too much."""
    collector = _OutputCollector()
    begun = time.monotonic()
    running = asyncio.ensure_future(launcher.run(replace(command, kill_at_once=True), collector))
    flooded = asyncio.ensure_future(collector.too_much.wait())
    try:
        await asyncio.wait((running, flooded), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        flooded.cancel()
        timed_out = not running.done() and not collector.too_much.is_set()
        running.cancel()  # This also ends the processes that the program started, before this function returns.
        results = await asyncio.gather(running, return_exceptions=True)
    failure, is_machine_fault, exit_code = None, False, None
    match results[0]:
        case HaftError() as error:
            failure = error.message if error.hint is None else f"{error.message}; {error.hint}"
            is_machine_fault = isinstance(error, MachineError) and not error.message.startswith(f"`{command.argv[0]}`")
        case asyncio.CancelledError():
            pass
        case BaseException() as error:
            raise error
        case end:
            exit_code = end.code
    return ProgramOutput(
        stdout=bytes(collector.streams["stdout"]),
        stderr=bytes(collector.streams["stderr"]),
        exit_code=exit_code,
        seconds=time.monotonic() - begun,
        timed_out=timed_out,
        is_too_long=collector.too_much.is_set(),
        left_processes=tuple(collector.left_processes),
        start_failure=failure,
        is_machine_fault=is_machine_fault,
    )


def stderr_summary(stderr: bytes) -> str:
    """The line of stderr that names the cause of a failure; the last line if none does."""
    return error_or_last_line(stderr.decode("utf-8", "replace"))
