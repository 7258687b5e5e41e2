"""Lines that a person types at the terminal: any answer, or yes and no.

Text that was typed before the question appeared is discarded. A thread reads the line, and cancelling ends the thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
import termios
import threading
from typing import Final

from haft.surfaces.cli.screen.printing import say

YES: Final = ("y", "yes")
NO: Final = ("n", "no")


async def confirm(question: str, *, default: bool = False, is_answer_needed: bool = False) -> bool:
    """Whether the person answers yes. Enter means `default`, and any other word repeats the question. At the end of
    input, the result is False; but with `is_answer_needed`, `EOFError` is raised."""
    while True:
        line = await read_line(question)
        if not line and is_answer_needed:
            raise EOFError
        answer = line.strip().lower()
        if not line or answer in (*YES, *NO):
            return answer in YES
        if not answer:
            return default
        say(not_understood(answer, "y (yes) or n (no)"))


def not_understood(answer: str, keys: str) -> str:
    """The message for an answer that is not valid; `keys` are the valid ones."""
    return f"`{answer[:40]}` is not an answer here: type {keys}"


async def read_line(question: str) -> str:
    """A line that the person types; empty at the end of input. If this coroutine is cancelled, the thread that reads
    the line ends, too."""
    descriptor = sys.stdin.fileno()
    with contextlib.suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)
    sys.stderr.write(question)
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()
    awake, wake = os.pipe()

    def set_answer(text: str) -> None:
        if not answer.done():
            answer.set_result(text)

    def read() -> None:
        text = _line(descriptor, awake)
        with contextlib.suppress(RuntimeError):  # The loop has ended, and nobody waits for the answer.
            loop.call_soon_threadsafe(set_answer, text)

    thread = threading.Thread(target=read, name="haft-approver", daemon=True)
    thread.start()
    try:
        return await answer
    finally:
        os.write(wake, b"x")
        thread.join()
        os.close(awake)
        os.close(wake)


def _line(descriptor: int, awake: int) -> str:
    """The text up to a newline; empty if the read was cancelled."""
    data = b""
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([descriptor, awake], [], [])
        if awake in ready:
            return ""
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # The terminal was closed.
            return ""
        if not part:
            break
        data += part
    return data.decode("utf-8", "replace")
