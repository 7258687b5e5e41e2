"""The protocol of an attachment: a process outside haft to which a call is attached, such as the shell of an agent.

The call is decided first. It starts only when that process asks for it, and its output also goes to that process.
`pipeline` uses the protocol, `service.hooked_calls` implements it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from haft.contracts.confinement import Profile
    from haft.contracts.decision import ApprovalAnswer, ApprovalRequest
    from haft.contracts.ports import Launcher, Stream


class Attachment(Protocol):
    """A process to which a call is attached."""

    @property
    def is_background(self) -> bool:
        """Whether the call works on the workspace itself, with no deadline and no place in the queue, for as long as
        its program runs."""
        ...

    @property
    def profile(self) -> Profile | None:
        """The profile of the sandbox, once the process has asked for the call, if it must be stricter than decided."""
        ...

    def approve(self, request: ApprovalRequest) -> Awaitable[ApprovalAnswer]:
        """Answer the request for approval of the call. The inbox may answer it first. Raises `Unanswered` if nobody
        answered in time."""
        ...

    async def wait_for_start(self) -> None:
        """Wait until the process asks for the call, which is decided and approved. Raises `NotCovered` if the process
        does not ask in time."""
        ...

    def output(self, stream: Stream, data: bytes) -> None:
        """Receive output of the call as it comes, with secrets masked."""
        ...

    def launcher(self, launcher: Launcher) -> Launcher:
        """A launcher that starts the command of the call with the input of the process."""
        ...


class Unanswered(Exception):
    """Nobody answered a request for approval in time. The text says how long it waited."""
