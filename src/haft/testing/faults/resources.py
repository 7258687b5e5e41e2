"""Faults of what a call uses: no memory, no network, and a full disk."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, ClassVar, Final

from haft.contracts import BadUsage, Confinement, Limits, ToolSpec
from haft.testing.faults.injection import Injection
from haft.values import replace

_LESS_THAN_ANY_PROGRAM: Final = 1_000_000


class NoMemory(Injection):
    """The programs of the call reach their memory limit. Without `bytes`, that is less than any program needs."""

    OPTIONS = ("bytes",)

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._bytes = options.get("bytes", _LESS_THAN_ANY_PROGRAM)
        if isinstance(self._bytes, bool) or not isinstance(self._bytes, int) or self._bytes <= 0:
            raise BadUsage(f"`bytes` must be a number of bytes above 0, not {self._bytes!r}")

    def why_not(self, spec: ToolSpec) -> str | None:
        if spec.hosting == "session":
            return (
                f"the program of `{spec.name}` outlives its calls, and its memory limit cannot change for one of them"
            )
        return super().why_not(spec)

    def confinement(self, confinement: Confinement, limits: Limits) -> Confinement:
        return replace(confinement, limits=replace(confinement.limits or limits, memory_bytes=self._bytes))


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
            raise BadUsage(f"`bytes` must be a number of bytes, not {self._bytes!r}")
        self.fill: Callable[[int], None] = _no_disk
        """Leaves only so many bytes free on the disk."""
        self.empty: Callable[[], None] = lambda: None

    def why_not(self, spec: ToolSpec) -> str | None:
        return f"`{spec.name}` runs on another machine" if spec.hosting == "remote" else None

    @contextlib.asynccontextmanager
    async def around(self, _spec: ToolSpec) -> AsyncIterator[None]:
        self.happened = True
        self.fill(self._bytes)
        try:
            yield
        finally:
            self.empty()


def _no_disk(_free: int) -> None:
    raise BadUsage("a full disk needs a disk of its own")
