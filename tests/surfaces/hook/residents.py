"""Residents of tests: which process it is, and its end."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from pathlib import Path

from haft.service import hook_socket_path


def resident_of(home: Path) -> int | None:
    """The process that listens at the socket of a state home; None if there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        try:
            asked.connect(hook_socket_path(home))
        except OSError:
            return None
        told = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", told)[0])


def end_resident(home: Path) -> None:
    """End the resident of a state home, and wait until it has ended."""
    process = resident_of(home)
    if process is None:
        return
    watched = os.pidfd_open(process)
    try:
        os.kill(process, signal.SIGTERM)
        assert select.select([watched], [], [], 20)[0], "the resident does not end"
    finally:
        os.close(watched)
