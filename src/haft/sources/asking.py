"""Asking a program what it is. It is foreign code: it runs in the sandbox, for a short time, and may say little."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from haft.contracts import Command, EndedChild, HaftError, Launcher, MachineError, Stream, failure_line

DESCRIBE_SECONDS: Final = 5.0
MOST_SAID: Final = 1_000_000
"""Bytes of stdout. Nobody describes a tool in more."""
MOST_NOISE: Final = 8_000
"""Bytes of stderr that are kept."""


@dataclass(frozen=True, slots=True)
class Said:
    """What came of asking."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int | None = None
    """None where it did not end by itself."""
    seconds: float = 0.0
    is_late: bool = False
    """It had not answered in time."""
    is_flood: bool = False
    """It said more than anyone reads."""
    left: tuple[str, ...] = ()
    """Processes that it left behind."""
    failure: str | None = None
    """Why it could not be started."""
    is_machine: bool = False
    """Whether that is the machine's fault rather than its own."""


class _Heard:
    def __init__(self) -> None:
        self.said = {"stdout": bytearray(), "stderr": bytearray()}
        self.left: list[str] = []
        self.flood = asyncio.Event()

    def output(self, stream: Stream, data: bytes) -> None:
        kept = self.said[stream]
        if stream == "stderr":
            kept += data
            del kept[:-MOST_NOISE]  # What went wrong is said last.
            return
        if len(kept) + len(data) > MOST_SAID:
            self.flood.set()
        kept += data[: max(0, MOST_SAID - len(kept))]

    def ended(self, children: Sequence[EndedChild]) -> None:
        self.left += [child.command for child in children]


async def ask(command: Command, launcher: Launcher, *, seconds: float = DESCRIBE_SECONDS) -> Said:
    """Run a program, to its end or to ours."""
    heard = _Heard()
    begun = time.monotonic()
    running = asyncio.ensure_future(launcher.run(replace(command, hurried=True), heard))
    flood = asyncio.ensure_future(heard.flood.wait())
    try:
        await asyncio.wait((running, flood), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        flood.cancel()
        is_late = not running.done() and not heard.flood.is_set()
        running.cancel()  # What it left is gone with it, before this returns.
        results = await asyncio.gather(running, return_exceptions=True)
    failure, is_machine, exit_code = None, False, None
    match results[0]:
        case HaftError() as error:
            failure = error.message if error.hint is None else f"{error.message}; {error.hint}"
            is_machine = isinstance(error, MachineError) and not error.message.startswith(f"`{command.argv[0]}`")
        case asyncio.CancelledError():
            pass
        case BaseException() as error:
            raise error
        case end:
            exit_code = end.code
    return Said(
        stdout=bytes(heard.said["stdout"]),
        stderr=bytes(heard.said["stderr"]),
        exit_code=exit_code,
        seconds=time.monotonic() - begun,
        is_late=is_late,
        is_flood=heard.flood.is_set(),
        left=tuple(heard.left),
        failure=failure,
        is_machine=is_machine,
    )


def tail_of(stderr: bytes) -> str:
    """The line that says what went wrong."""
    return failure_line(stderr.decode("utf-8", "replace"))
