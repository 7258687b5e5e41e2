"""Starts calls, one at a time, in a program that the helper keeps loaded (`haft.helper.warm`)."""

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
from haft.processes.helper import Helper, HelperHandle, open_call_socket, request_descriptors
from haft.processes.launcher import StaleHelper

MAX_WORDS = 1 << 16
_log = logging.getLogger("haft")


class WarmStarter:
    """Starts calls in forks of a loaded program."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._loop = asyncio.get_running_loop()
        self.is_over = False
        """Whether the loaded program has ended."""
        self.is_free = True
        self._loop.add_reader(control, self._ended)

    @staticmethod
    async def open(
        helper: Helper, argv: Sequence[str], env: Mapping[str, str], directory: int, helper_fields: Mapping[str, Any]
    ) -> WarmStarter:
        """Load a program. Raises `StartFailed` with the reason if it cannot be kept loaded."""
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            request = Request(
                argv, env, directory, nowhere, nowhere, nowhere, helper_fields={**helper_fields, "warm": True}
            )
            control = await helper.open_call(request)
        finally:
            os.close(nowhere)
        try:
            words = b""
            while not words.endswith(b"\n"):
                part = await asyncio.get_running_loop().sock_recv(control, MAX_WORDS)
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
        """Start one call. Raises `StaleHelper` if the loaded program has ended."""
        self.is_free = False

        async def hand_over(theirs: int) -> None:
            socket.send_fds(self._control, [b"c"], request_descriptors(theirs, request))

        try:
            handle = HelperHandle(await open_call_socket(request, hand_over), self._loop)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise StaleHelper from error
            raise
        handle.ending.add_done_callback(self._after_call)
        return handle

    def _after_call(self, ending: asyncio.Future[Ending]) -> None:
        if ending.cancelled() or not ending.result().kept:
            self.close()
        else:
            self.is_free = True

    def _ended(self) -> None:
        with contextlib.suppress(BlockingIOError, InterruptedError):
            with contextlib.suppress(OSError):
                words = self._control.recv(MAX_WORDS)
                if words:
                    _log.debug("a loaded program ended: %s", words.decode("utf-8", "replace").strip())
            self.close()

    def close(self) -> None:
        """End the loaded program with all its processes."""
        if not self.is_over:
            self.is_over = True
            self._loop.remove_reader(self._control)
            self._control.close()
