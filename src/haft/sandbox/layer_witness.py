"""Tells whether any process still has something open in the layers of a call that has ended.

When a call has ended, so have its processes, but one of them may have sent a descriptor to a process of another call.
The kernel removes a mounted layer only after the last descriptor, mapping and working directory in it is closed. It
then sends an event to inotify watches on the layer's top directory. The helper sets such a watch when it mounts the
layer.
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
"""How long to wait for the kernel, which removes a mount a moment after its last process ended."""


class LayerWitness:
    """Watches the layers of one call. A call may mount several layers one after another."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        self._mounted = 0
        self._gone = 0

    def lend(self) -> int | None:
        """The inotify descriptor on which the helper sets its watch; None if inotify is not available."""
        self._mounted += 1
        return self._descriptor if self._descriptor >= 0 else None

    def is_held(self) -> bool:
        """Whether some process may still have something open in the layers. True also if that is unknown."""
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
