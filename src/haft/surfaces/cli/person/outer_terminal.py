"""The person's own terminal while a program of `haft run` uses it. Keys go to the program's pseudoterminal unchanged,
Ctrl-C and Ctrl-Z included; its output goes to the screen, and changes of the window's size are passed on.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import tty
from collections import deque
from typing import Final

READ_BYTES: Final = 1 << 16
MOST_WAITING: Final = 1 << 20
"""How many bytes of input may wait for a program that does not read."""

RESET: Final = b"".join(
    (
        b"\x18\x1b\\",  # Ends an escape sequence that the program left unfinished.
        b"\x1b[?47l",  # The main screen.
        b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l",  # No reports of mouse, focus, paste.
        b"\x1b[!p\x1b7\x1b[r\x1b8\x1b[?25h",  # No scroll region, a visible cursor that stays where it is.
        b"\x1b(B\x0f\x1b[m",  # Letters are letters, and visible.
        b"\x1b]104\x07\x1b]110\x07\x1b]111\x07",  # The person's own colours.
    )
)
"""Undoes what a program may have done to the screen, so that it cannot hide or change what haft shows next."""


class OuterTerminal:
    """A terminal with separate descriptors for reading and writing; both are the same terminal."""

    def __init__(self, reading: int = 0, writing: int = 1) -> None:
        self._reading = reading
        self._writing = writing
        self._inner: int | None = None
        """The controlling side of the program's pseudoterminal, while the program runs."""
        self._modes: list[object] | None = None
        self._waiting: deque[memoryview] = deque()

    def size(self) -> tuple[int, int]:
        try:
            found = os.get_terminal_size(self._writing)
        except OSError:
            return 24, 80
        return found.lines or 24, found.columns or 80

    def attach(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        self._inner = descriptor
        self._modes = termios.tcgetattr(self._reading)
        tty.setraw(self._reading, termios.TCSADRAIN)
        loop.add_reader(self._reading, self._read)
        loop.add_signal_handler(signal.SIGWINCH, self.resize)
        loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        self.resize()

    def received(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._writing, rest) :]
            except BlockingIOError:  # Another program has made the terminal non-blocking.
                select.select([], [self._writing], [], 1.0)
            except OSError:
                return  # The terminal is gone. The output is kept with the run.

    def detach(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._reading)
        loop.remove_signal_handler(signal.SIGWINCH)
        loop.remove_signal_handler(signal.SIGTSTP)
        if self._inner is not None:
            loop.remove_writer(self._inner)
            self._inner = None
        self._waiting.clear()
        if os.environ.get("TERM", "dumb") != "dumb":
            self.received(RESET)
        self._restore()

    def resize(self) -> None:
        """Give the pseudoterminal the size of this terminal. The kernel then sends SIGWINCH to the program."""
        if self._inner is not None:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._inner, termios.TIOCSWINSZ, struct.pack("HHHH", *self.size(), 0, 0))

    def _restore(self) -> None:
        if self._modes is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._reading, termios.TCSADRAIN, self._modes)  # type: ignore[arg-type]

    def _suspend(self) -> None:
        """Stop this process, as a shell's job control wants, with the terminal as it was before. The program goes on
        meanwhile."""
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        with contextlib.suppress(termios.error):
            tty.setraw(self._reading, termios.TCSADRAIN)
        self.resize()

    def _read(self) -> None:
        try:
            data = os.read(self._reading, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        loop = asyncio.get_running_loop()
        if not data:
            loop.remove_reader(self._reading)  # The terminal is gone; SIGHUP ends the run.
            return
        if self._inner is not None:
            self._waiting.append(memoryview(data))
            loop.add_writer(self._inner, self._write)
            if sum(map(len, self._waiting)) > MOST_WAITING:
                loop.remove_reader(self._reading)

    def _write(self) -> None:
        assert self._inner is not None
        loop = asyncio.get_running_loop()
        if self._waiting:
            try:
                done = os.write(self._inner, self._waiting[0])
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._waiting.clear()
            else:
                first = self._waiting.popleft()
                if done < len(first):
                    self._waiting.appendleft(first[done:])
        if not self._waiting:
            loop.remove_writer(self._inner)
            loop.add_reader(self._reading, self._read)
