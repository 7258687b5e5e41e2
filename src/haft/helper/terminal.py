"""The pseudoterminal of a program that a person works with. It belongs to the call's own `/dev/pts`, so that the
program finds it by its name, and can reach no terminal of the host.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios

GET_NUMBER, SET_LOCK = 0x80045430, 0x40045431
"""The requests TIOCGPTN and TIOCSPTLCK, which Python's `termios` does not name."""
TERMINAL = b"P"
"""The first byte of the message with the controlling side of the pseudoterminal."""
IUTF8 = 0o40000


class Pseudoterminal:
    """A pseudoterminal that no process uses yet."""

    def __init__(self, rows: int, columns: int) -> None:
        self._controlling = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        fcntl.ioctl(self._controlling, SET_LOCK, struct.pack("i", 0))
        (number,) = struct.unpack("i", fcntl.ioctl(self._controlling, GET_NUMBER, bytes(4)))
        self.path = f"/dev/pts/{number}"
        fcntl.ioctl(self._controlling, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        modes = termios.tcgetattr(self._controlling)
        modes[0] |= IUTF8
        termios.tcsetattr(self._controlling, termios.TCSANOW, modes)

    def actions(self) -> list[tuple[int, ...]]:
        """The file actions with which the program opens the pseudoterminal as its three streams. The program is the
        leader of a new session, so that the first one becomes its controlling terminal."""
        first: tuple[int, ...] = (os.POSIX_SPAWN_OPEN, 0, self.path, os.O_RDWR, 0)  # type: ignore[assignment]
        return [first, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]

    def hand_over(self, control: socket.socket) -> None:
        """Send the controlling side to the host, and keep no descriptor of it: when the host closes it, the program is
        told that its terminal is gone."""
        socket.send_fds(control, [TERMINAL], [self._controlling])
        os.close(self._controlling)
