"""Tells whether anyone still holds something in the layers of a call that is over.

When a call is over its processes have ended, but one of them may have handed a descriptor to a process of another call.
A layer that was mounted is gone only when the last descriptor, mapping and directory in it is: the kernel then tells
whoever watches its top. The helper sets that watch for us when it mounts the layer.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import time
from typing import Final

_UNMOUNTED: Final = 0x2000
_EVENT: Final = struct.Struct("iIII")
PATIENCE_SECONDS: Final = 0.25
"""How long to wait for the kernel, which takes a mount away a moment after its last process ended."""


class LayerWitness:
    """For one call, which may have mounted several layers one after another."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        self._mounted = 0
        self._gone = 0

    def lend(self) -> int | None:
        """What a helper needs to set the watch; None where there can be none, and nothing will be known."""
        self._mounted += 1
        return self._descriptor if self._descriptor >= 0 else None

    def is_held(self) -> bool:
        """Whether someone may still have something open. Also where nobody can tell."""
        if self._descriptor < 0:
            return True
        until = time.monotonic() + PATIENCE_SECONDS
        while self._gone < self._mounted:
            if not select.select([self._descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
                return True
            self._read()
        return False

    def _read(self) -> None:
        data, at = os.read(self._descriptor, 4096), 0
        while at < len(data):
            _watch, mask, _cookie, size = _EVENT.unpack_from(data, at)
            self._gone += bool(mask & _UNMOUNTED)
            at += _EVENT.size + size

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
