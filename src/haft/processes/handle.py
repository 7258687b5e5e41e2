"""The types that every way of starting a process shares: the request, the handle of a child, and how the child ended.

The code that reads the output (`streams`) knows only descriptors and this handle. So the child can be started by the
helper with a sandbox, by the helper without one, or directly by the host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from haft.contracts import EndedChild
from haft.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """Everything about a process that is to be started: the process inherits nothing from the host."""

    argv: Sequence[str]
    env: Mapping[str, str]
    directory: int
    """A descriptor of the working directory: another process could replace a path by a link."""
    stdin: int
    stdout: int
    stderr: int
    has_stdin: bool = False
    """Whether stdin has data to read."""
    share: int | None = None
    """A socket over which the helper sends a descriptor of the workspace as the command sees it, if the host wants
    one."""
    network: int | None = None
    """A socket over which the helper sends the sockets of the command's network to the egress process."""
    witness: int | None = None
    """An inotify descriptor on which the helper sets a watch for the layer that it mounts."""
    helper_fields: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the JSON request to the helper: sandbox, limits and working directory."""

    @property
    def extra(self) -> dict[str, int]:
        """The descriptors that are sent in addition to the three standard streams, each under the name of its
        purpose."""
        named = {"share": self.share, "witness": self.witness, "network": self.network}
        return {name: descriptor for name, descriptor in named.items() if descriptor is not None}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended. A negative status is a signal, as in Python's `subprocess`."""

    status: int
    ended: tuple[EndedChild, ...] = ()
    left: tuple[EndedChild, ...] = ()
    """Processes that KILL did not end."""
    failed: tuple[int | None, str] | None = None
    """errno and message, if the command could not be started."""
    hit: tuple[str, float] | None = None
    """The limit that ended the process, and the amount that was used."""
    spilled: tuple[str, float] | None = None
    """The limit that the `/tmp` of the call's thread exceeded, and the amount in that directory."""
    stale: bool = False
    """Whether the process was not started, because the helper sees another workspace than the host, or has ended."""
    replaced: str | None = None
    """The path that was replaced after the call was resolved; the process was then not started."""
    kept: bool = False
    """Whether the loaded program that the process was forked from can serve another call."""


class Handle(Protocol):
    """A child process that was started."""

    ending: asyncio.Future[Ending]
    """Set when the child and all its descendants have ended."""

    def terminate(self) -> None:
        """End the child and all its descendants: TERM, and KILL after a grace period."""
        ...

    def kill_and_report(self) -> None:
        """End the child and all its descendants at once, and still report in `ending` how the child ended."""
        ...

    def crash(self) -> None:
        """Send KILL to the child and all its descendants, as if something other than haft did so. For tests."""
        ...

    def kill(self) -> None:
        """End the child and all its descendants at once."""
        ...


class Starter(Protocol):
    """Starts child processes. Each class that implements this protocol starts them in its own way."""

    async def start(self, request: Request) -> Handle: ...

    def close(self) -> None: ...
