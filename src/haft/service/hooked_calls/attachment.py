"""The attachment of one hooked call: between the hook that asks about a command, the pipeline that decides about the
command and runs it, and the agent's shell that redeems the ticket."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Literal

from haft.contracts import (
    ApprovalAnswer,
    ApprovalRequest,
    Command,
    Exit,
    Launcher,
    NotCovered,
    OutputSink,
    Profile,
    Stream,
    Unanswered,
)
from haft.service.hooked_calls.directory_report import ReportingLauncher, may_move
from haft.service.hooked_calls.streams import AgentInput, AgentOutput, are_same
from haft.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Answered:
    """How far a call has come when the hook can answer its agent."""

    action: Literal["run", "ask"]
    reason: str = ""


class HookedAttachment:
    """Implements `Attachment` for a command of an agent's shell."""

    def __init__(
        self, agent: str, command: str, *, is_background: bool, asks_agent: bool, wait_seconds: float, trusted: bool
    ) -> None:
        """`asks_agent`: the agent can ask a person in its own prompt; without it, a request waits `wait_seconds` in the
        inbox. `trusted`: a person may also approve dangerous calls through this agent."""
        self.is_background = is_background
        self.profile: Profile | None = None
        self.answered: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        """Set when the hook can answer its agent."""
        self._agent = agent
        self._command = command
        self._asks_agent = asks_agent
        self._wait_seconds = wait_seconds
        self._trusted = trusted
        self._redeemed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._input: AgentInput | None = None
        self._output: AgentOutput | None = None
        self._is_merged = False
        self._reporting: ReportingLauncher | None = None

    @property
    def _is_late(self) -> bool:
        """Whether haft decides again about a redeemed ticket, and nobody was asked before."""
        return self._redeemed.done() and not self._asks_agent

    # For the pipeline.

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        if self._is_late:
            raise Unanswered("the rules now demand approval for it: run the command again, so that haft's hook can ask")
        if not self._asks_agent or not (request.client_may_approve or self._trusted):
            await asyncio.sleep(self._wait_seconds)
            raise Unanswered(f"nobody answered within {self._wait_seconds:g} seconds")
        self._answer(Answered("ask", request.reason))
        await asyncio.shield(self._redeemed)
        return ApprovalAnswer(approved=True, message=f"approved in the prompt of {self._agent}", via=self._agent)

    async def wait_for_start(self) -> None:
        self._answer(Answered("run"))
        await asyncio.shield(self._redeemed)

    def output(self, stream: Stream, data: bytes) -> None:
        if self._output is not None:
            self._output.write(stream, data)

    def launcher(self, launcher: Launcher) -> Launcher:
        if may_move(self._command):
            self._reporting = ReportingLauncher(launcher)
            launcher = self._reporting
        stdin = None if self._input is None else self._input.descriptor
        output = self._output
        return _AttachedLauncher(
            launcher,
            {
                "stdin_descriptor": stdin,
                "merges_streams": self._is_merged,
                "until_writable": None if output is None else output.until_writable,
            },
        )

    def _answer(self, answered: Answered) -> None:
        if not self.answered.done():
            self.answered.set_result(answered)

    # For `HookedCalls`.

    @property
    def directory(self) -> str | None:
        """The directory in which the command ended, if it may be another one than that in which it began."""
        return None if self._reporting is None else self._reporting.directory

    def redeem(self, stdin: int, stdout: int, stderr: int) -> None:
        """Let the call start, with these streams. The descriptors are duplicated."""
        self._input = AgentInput(stdin)
        self._output = AgentOutput(stdout, stderr)
        self._is_merged = are_same(stdout, stderr)
        self._redeemed.set_result(None)

    def give_up(self, why: str) -> None:
        """Let the call end, because nobody will redeem its ticket."""
        if not self._redeemed.done():
            self._redeemed.set_exception(NotCovered(why))
            self._redeemed.exception()  # Otherwise the loop warns if nobody waits for it.

    def abandon(self) -> None:
        """Drop the output that is not written yet, and close the streams: nobody reads them any more."""
        if self._input is not None:
            self._input.close()
        if self._output is not None:
            self._output.stop()

    async def close(self, last_words: bytes) -> None:
        """Write `last_words` to stderr, wait until all output is written, and close the streams."""
        if self._input is not None:
            self._input.close()
        if self._output is not None:
            if last_words:
                self._output.write("stderr", last_words)
            await self._output.end()


class _AttachedLauncher:
    """Starts commands with the streams of an agent's shell."""

    def __init__(self, launcher: Launcher, streams: dict[str, Any]) -> None:
        self._launcher = launcher
        self._streams = streams

    async def run(self, command: Command, sink: OutputSink) -> Exit:
        return await self._launcher.run(replace(command, **self._streams), sink)


def is_directory(path: str) -> bool:
    """Whether the agent's shell can go to this directory."""
    return os.path.isabs(path) and os.path.isdir(path)
