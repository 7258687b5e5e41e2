"""What is common to every way of starting a process: a request, and a handle on its end.

The streaming side (`streams`) knows descriptors and this handle; it does not know who started the child. So a zygote
in the sandbox, a plain helper or a bare spawn can stand behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from haft.contracts import EndedChild
from haft.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """What to start, complete: nothing is inherited."""

    argv: Sequence[str]
    env: Mapping[str, str]
    directory: int
    """A descriptor of the working directory: a path could be swapped for a link meanwhile."""
    stdin: int
    stdout: int
    stderr: int
    has_stdin: bool = False
    """Whether there is anything to read from it."""
    share: int | None = None
    """A socket that is handed over too, where a view of its layer is wanted."""
    witness: int | None = None
    """Where the helper is to set a watch on the layer that it mounts."""
    terms: Mapping[str, Any] = field(default_factory=dict)
    """Sandbox and limits, in the words of the helper that starts it."""

    @property
    def extra(self) -> dict[str, int]:
        """What is handed over besides its streams, by what it is for."""
        named = {"share": self.share, "witness": self.witness}
        return {name: descriptor for name, descriptor in named.items() if descriptor is not None}


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended. A negative status is a signal, as Python's `subprocess` has it."""

    status: int
    ended: tuple[EndedChild, ...] = ()
    left: tuple[EndedChild, ...] = ()
    """Processes that resisted KILL."""
    failed: tuple[int | None, str] | None = None
    """errno and sentence, where the command could not be started at all."""
    hit: tuple[str, float] | None = None
    """The limit that ended it, and how much was used."""
    spilled: tuple[str, float] | None = None
    """The limit that its thread's `/tmp` passed, and how much that holds."""
    stale: bool = False
    """Whether it was not started because the helper sees another directory than we do, or ended before."""
    replaced: str | None = None
    """Where something else lay than the call was resolved to, so that it was not started."""
    kept: bool = False
    """Whether what it was forked from is there for another call."""


class Handle(Protocol):
    """A started child."""

    ending: asyncio.Future[Ending]
    """Set when nothing of the child is left."""

    def terminate(self) -> None:
        """End the whole tree: TERM, after a grace KILL."""
        ...

    def hurry(self) -> None:
        """End the whole tree at once, and hear how it ended."""
        ...

    def kill(self) -> None:
        """End the whole tree at once."""
        ...


class Starter(Protocol):
    """A way of starting children."""

    async def start(self, request: Request) -> Handle: ...

    def close(self) -> None: ...
