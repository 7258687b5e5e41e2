"""Lines that a person types at the terminal: an answer, and yes or no.

What was typed before the question stood there does not answer it. Reading happens in a thread that can be called off.
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


async def confirmed(question: str, *, default: bool = False) -> bool:
    """Whether the person says yes. Enter means `default`, the end of input no; any other word asks again."""
    while True:
        line = await typed(question)
        answer = line.strip().lower()
        if not line or answer in (*YES, *NO):
            return answer in YES
        if not answer:
            return default
        say(not_understood(answer, "y (yes) or n (no)"))


def not_understood(answer: str, keys: str) -> str:
    """What is said about a word that is no answer, before the question is asked again."""
    return f"`{answer[:40]}` is no answer to this: type {keys}"


async def typed(question: str) -> str:
    """A line from the terminal; empty at its end. Cancelling leaves no thread behind."""
    descriptor = sys.stdin.fileno()
    with contextlib.suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)
    sys.stderr.write(question)
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()
    awake, wake = os.pipe()

    def settle(text: str) -> None:
        if not answer.done():
            answer.set_result(text)

    def read() -> None:
        text = _line(descriptor, awake)
        with contextlib.suppress(RuntimeError):  # the loop is gone: so is the question
            loop.call_soon_threadsafe(settle, text)

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
    """Bytes up to a newline, or nothing when called off."""
    data = b""
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([descriptor, awake], [], [])
        if awake in ready:
            return ""
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # the terminal went away
            return ""
        if not part:
            break
        data += part
    return data.decode("utf-8", "replace")
