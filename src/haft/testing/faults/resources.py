"""Faults of what a call uses: no memory, no network, and a full disk."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, ClassVar, Final

from haft.contracts import BadUsage, Command, ToolSpec
from haft.testing.calls.injection import Injection
from haft.values import replace

_LESS_THAN_ANY_PROGRAM: Final = 1_000_000
_LIMITED: Final = 'ulimit -v "$1"; shift; exec "$@"'


class NoMemory(Injection):
    """Each program of the call gets no more than `bytes` of address space, and its further allocations fail. Without
    `bytes`, it cannot even start."""

    OPTIONS = ("bytes",)

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._bytes = options.get("bytes", _LESS_THAN_ANY_PROGRAM)
        if isinstance(self._bytes, bool) or not isinstance(self._bytes, int) or self._bytes <= 0:
            raise BadUsage(f"has `bytes`, which must be a number of bytes above 0, not {self._bytes!r}")

    def why_not(self, spec: ToolSpec) -> str | None:
        if spec.hosting == "session" and self._bytes == _LESS_THAN_ANY_PROGRAM:
            return (
                f"the program of `{spec.name}` starts before the call, so that the fault needs `bytes` that are enough"
                " for the start and not for the call"
            )
        return super().why_not(spec)

    def changed(self, command: Command, *, outlives_calls: bool) -> Command:
        if outlives_calls and self._bytes == _LESS_THAN_ANY_PROGRAM:
            return command
        kibibytes = str(max(1, self._bytes // 1024))
        return replace(command, argv=["/bin/sh", "-c", _LIMITED, "sh", kibibytes, *command.argv])


class NoNetwork(Injection):
    """The network is closed, whatever is granted."""

    def settings(self) -> dict[str, Any]:
        return {"sandbox.network": "never"}


class FullDisk(Injection):
    """The file system of the workspace, on which the changes of a call are collected, has no space while the tool
    works. `bytes` are left free."""

    OPTIONS = ("bytes",)
    NEEDS_PROGRAM: ClassVar[bool] = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._bytes = options.get("bytes", 0)
        if isinstance(self._bytes, bool) or not isinstance(self._bytes, int) or self._bytes < 0:
            raise BadUsage(f"has `bytes`, which must be a number of bytes, not {self._bytes!r}")
        self.fill: Callable[[int], None] = _no_disk
        """Leaves only so many bytes free on the disk."""
        self.empty: Callable[[], None] = lambda: None

    def why_not(self, spec: ToolSpec) -> str | None:
        return f"`{spec.name}` runs on another machine" if spec.hosting == "remote" else None

    @contextlib.asynccontextmanager
    async def around(self, spec: ToolSpec) -> AsyncIterator[None]:
        self.note(spec)
        self.happened = True
        self.fill(self._bytes)
        try:
            yield
        finally:
            self.empty()


def _no_disk(_free: int) -> None:
    raise BadUsage("a full disk needs a disk of its own")
