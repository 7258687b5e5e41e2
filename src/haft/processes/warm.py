"""The host's side of a program that is kept loaded (`haft.helper.warm`): a starter of one call at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from haft.contracts import StartFailed
from haft.processes.handle import Ending, Request
from haft.processes.helper import Helper, HelperHandle, handed, told_by
from haft.processes.launcher import Stale

MOST_WORDS = 1 << 16
_log = logging.getLogger("haft")


class WarmStarter:
    """Starts what a loaded program answers."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._loop = asyncio.get_running_loop()
        self.is_over = False
        """Whether it answers no more."""
        self.is_free = True
        self._loop.add_reader(control, self._ended)

    @staticmethod
    async def open(
        helper: Helper, argv: Sequence[str], env: Mapping[str, str], directory: int, terms: Mapping[str, Any]
    ) -> WarmStarter:
        """Have a program loaded. `StartFailed` with the reason where it cannot be kept."""
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            request = Request(argv, env, directory, nowhere, nowhere, nowhere, terms={**terms, "warm": True})
            control = await helper.told(request)
        finally:
            os.close(nowhere)
        try:
            words = b""
            while not words.endswith(b"\n"):
                part = await asyncio.get_running_loop().sock_recv(control, MOST_WORDS)
                if not part:
                    raise StartFailed("it ended before it was loaded")
                words += part
            said = json.loads(words)
            if not said.get("ready"):
                raise StartFailed(str(said.get("failed") or "it could not be started"))
            return WarmStarter(control)
        except BaseException:
            control.close()
            raise

    async def start(self, request: Request) -> HelperHandle:
        """`Stale` where it can answer no more."""
        self.is_free = False

        async def hand_over(theirs: int) -> None:
            socket.send_fds(self._control, [b"c"], handed(theirs, request))

        try:
            handle = HelperHandle(await told_by(request, hand_over), self._loop)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise Stale from error
            raise
        handle.ending.add_done_callback(self._answered)
        return handle

    def _answered(self, ending: asyncio.Future[Ending]) -> None:
        if ending.cancelled() or not ending.result().kept:
            self.close()
        else:
            self.is_free = True

    def _ended(self) -> None:
        with contextlib.suppress(BlockingIOError, InterruptedError):
            with contextlib.suppress(OSError):
                words = self._control.recv(MOST_WORDS)
                if words:
                    _log.debug("a loaded program ended: %s", words.decode("utf-8", "replace").strip())
            self.close()

    def close(self) -> None:
        """End it: nothing of it is left a moment later."""
        if not self.is_over:
            self.is_over = True
            self._loop.remove_reader(self._control)
            self._control.close()
