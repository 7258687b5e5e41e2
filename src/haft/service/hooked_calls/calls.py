"""The facade `service.hooked`: decides about commands of an agent's shell, and runs them with that shell's streams.

A call is one run from the hook to its end. `ticket` makes the run, and returns when the run is decided: the run then
waits for its ticket to be redeemed. `run` redeems the ticket. If the process that kept the run has died meanwhile, the
ticket is still good, and `run` makes a new run, which is decided again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Any, Final, Literal

from haft.contracts import NO_GRANTS, BadUsage, HaftError, Outcome, Principal, RunId
from haft.pipeline import Run
from haft.service.assembly import Host
from haft.service.hook_messages import HookMessage
from haft.service.hooked_calls.attachment import HookedAttachment, is_directory
from haft.service.hooked_calls.directory_report import may_move
from haft.service.hooked_calls.pipes import TicketPipes, remove_pipes
from haft.service.hooked_calls.tickets import LIFE_SECONDS, Ticket, Tickets, digest_of, new_ticket_id
from haft.values import dataclass

NOT_RUN: Final = 126
"""The exit status of a command that was not run, as shells have it."""
MARGIN_SECONDS: Final = 1.0
"""How long before the agent's own time limit a command ends, so that the agent reads why."""
NO_PORTS: Final = "this command runs in the background, in a network of its own: other commands cannot reach its ports"
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_STATUSES: Final = {"timed-out": 124, "cancelled": 130, "rejected": NOT_RUN, "not-covered": NOT_RUN}
"""The exit status that the agent's shell gets, by the code of the error, if the command has none."""


@dataclass(frozen=True, slots=True)
class HookedDecision:
    """What the hook answers its agent about a command."""

    action: Literal["run", "ask", "deny"]
    """`run`: the rewritten line may run. `ask`: it may run if a person says so in the agent's own prompt."""
    run: RunId
    ticket: str | None = None
    """The ticket for the rewritten line; None if the command is denied."""
    reason: str = ""
    """Why the command is denied, or needs approval."""
    may_move: bool = False
    """Whether the command may end in another directory, so that the line must move the agent's shell there."""


@dataclass(frozen=True, slots=True)
class HookedEnd:
    """How the command of a rewritten line ended."""

    status: int
    """The exit status for the agent's shell."""
    directory: str | None = None
    """Where the agent's shell must go; None if it stays where it is."""
    run: RunId | None = None
    text: str = ""
    """For stderr, if nothing was written there: why the command was not run."""


class HookedCalls:
    """The hooked calls of one workspace."""

    def __init__(self, host: Host, call: Callable[..., Run]) -> None:
        self._host = host
        self._call = call
        self._tickets = Tickets(host.home)
        self._waiting: dict[str, tuple[Run, HookedAttachment, asyncio.TimerHandle]] = {}
        """The runs that wait for their tickets, by ticket."""
        self._has_swept = False
        self._running: dict[str, Run] = {}
        """The runs whose commands run, by ticket."""
        self._pipes: dict[str, TicketPipes] = {}
        self._signals: dict[RunId, int] = {}
        """The signals that ended commands."""

    @property
    def is_busy(self) -> bool:
        """Whether a command runs. Tickets that were not redeemed do not count: they are good without this process."""
        return bool(self._running)

    def has(self, ticket: str) -> bool:
        """Whether the run of this ticket waits here."""
        return ticket in self._waiting

    async def ticket(
        self,
        command: str,
        *,
        agent: str,
        session: str,
        cwd: str,
        limit_seconds: float | None = None,
        is_background: bool = False,
        asks_agent: bool = True,
        wait_seconds: float = 0.0,
        has_own_sandbox: bool = False,
    ) -> HookedDecision:
        """Decide about a command that an agent is about to run in `cwd`. `limit_seconds` is the agent's own time limit.
        `asks_agent`: the agent can show a prompt to a person; without it, a command that needs approval waits
        `wait_seconds` in the inbox. `has_own_sandbox`: the agent's shell runs in a sandbox of the agent, which may
        forbid sockets (see `pipes`). Cancelling cancels the run. Raises `BadUsage` if `cwd` is not in the workspace."""
        if not self._has_swept:
            self._has_swept = True
            await asyncio.to_thread(self._sweep)
        attachment = self._attachment(
            agent, command, is_background=is_background, asks_agent=asks_agent, wait_seconds=wait_seconds
        )
        run = self._begin(command, attachment, agent, session, cwd, limit_seconds)
        try:
            ended = asyncio.ensure_future(_end_of(run))
            waited: set[asyncio.Future[Any]] = {ended, attachment.answered}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            run.cancel()
            raise
        if run.outcome is not None or not attachment.answered.done():
            outcome = await run
            return HookedDecision("deny", run.id, reason=_why(outcome))
        answered = attachment.answered.result()
        ticket = Ticket(
            id=new_ticket_id(),
            agent=agent,
            session=session,
            workspace=self._host.workspace,
            cwd=os.path.realpath(cwd),
            digest=digest_of(command),
            run=run.id,
            expires_at=time.time() + LIFE_SECONDS,
            is_asked=answered.action == "ask",
            limit_seconds=limit_seconds,
            is_background=is_background,
        )
        try:
            self._tickets.save(ticket)
            if has_own_sandbox:
                self._pipes[ticket.id] = self._open_pipes(ticket.id)
        except OSError as error:
            run.cancel()
            return HookedDecision("deny", run.id, reason=f"haft could not save its ticket: {error}")
        timer = asyncio.get_running_loop().call_later(LIFE_SECONDS, self.give_up, ticket.id)
        self._waiting[ticket.id] = run, attachment, timer
        return HookedDecision(answered.action, run.id, ticket.id, answered.reason, may_move(command))

    def _open_pipes(self, ticket: str) -> TicketPipes:
        async def redeem(message: HookMessage, stdin: int, stdout: int, stderr: int) -> tuple[bytes, bytes, bytes]:
            _format, _ticket, command, cwd, _variables, access, *_ = (*message.fields, *[b""] * 6)
            self._pipes.pop(ticket, None)
            end = await self.run(
                ticket,
                os.fsdecode(command),
                cwd=os.fsdecode(cwd),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                is_read_only=access == b"read",
            )
            return b"%d" % end.status, os.fsencode(end.directory or ""), end.text.encode()

        return TicketPipes(self._host.home, ticket, redeem, lambda number: self.signal(ticket, number))

    def signal(self, ticket: str, number: int) -> None:
        """Pass on a signal that the process of the rewritten line got. Signals that would end it end the command: TERM
        first, and KILL after a grace period. Other signals are ignored."""
        run = self._running.get(ticket)
        if run is not None and number in _ENDING:
            self._signals.setdefault(run.id, number)
            run.cancel()

    def _sweep(self) -> None:
        """Remove what earlier processes left: tickets that have expired, and pipes without a ticket."""
        self._tickets.remove_expired()
        remove_pipes(self._host.home, lambda ticket: self._tickets.find(ticket) is None)

    def _attachment(
        self, agent: str, command: str, *, is_background: bool, asks_agent: bool, wait_seconds: float = 0.0
    ) -> HookedAttachment:
        return HookedAttachment(
            agent,
            command,
            is_background=is_background,
            asks_agent=asks_agent,
            wait_seconds=wait_seconds,
            trusted=agent in self._host.trusted_clients,
        )

    def _begin(
        self,
        command: str,
        attachment: HookedAttachment,
        agent: str,
        session: str,
        cwd: str,
        limit_seconds: float | None,
    ) -> Run:
        return self._call(
            "shell",
            {"command": command},
            who=Principal(agent, thread=session, kind="agent"),
            cwd=self._inside(cwd),
            timeout=None if limit_seconds is None else max(limit_seconds - MARGIN_SECONDS, limit_seconds * 0.9),
            attachment=attachment,
        )

    def _inside(self, cwd: str) -> str:
        """The directory relative to the workspace. Raises `BadUsage` if it is not in the workspace."""
        root = os.path.realpath(self._host.workspace)
        inside = os.path.relpath(os.path.realpath(cwd), root)
        if inside == os.pardir or inside.startswith(os.pardir + os.sep):
            raise BadUsage(f"{cwd} is not in the workspace {root}")
        return inside

    def give_up(self, ticket: str, why: str = "its rewritten line was never run") -> bool:
        """Record the call of a ticket as not covered by haft, because nobody will redeem the ticket. Returns False if
        the ticket was redeemed, or belongs to another process."""
        found = self._tickets.find(ticket)
        if found is not None:
            self._tickets.take(found)
        if (pipes := self._pipes.pop(ticket, None)) is not None:
            pipes.close()
        waiting = self._waiting.pop(ticket, None)
        if waiting is None:
            return False
        run, attachment, timer = waiting
        timer.cancel()
        attachment.give_up(f"the command did not run through haft, so haft did not confine it: {why}")
        return run.outcome is None

    def close(self) -> None:
        """Record the calls that still wait as not covered. Their tickets stay good for the next process."""
        for run, attachment, timer in self._waiting.values():
            timer.cancel()
            attachment.give_up(f"haft's helper ended before the rewritten line of {run.id} was run")
        self._waiting.clear()
        for pipes in self._pipes.values():
            pipes.close()
        self._pipes.clear()

    async def run(
        self,
        ticket: str,
        command: str,
        *,
        cwd: str,
        stdin: int,
        stdout: int,
        stderr: int,
        is_read_only: bool = False,
    ) -> HookedEnd:
        """Redeem a ticket: run the command with these streams, and return how it ended. The caller closes the
        descriptors. With `is_read_only`, the command cannot write in the workspace, because the sandbox of the agent
        forbids it too. Cancelling ends the command and everything that it started."""
        found = self._tickets.find(ticket)
        if found is None or found.workspace != self._host.workspace:
            return _refused("its ticket is unknown, or was used before")
        if (why := found.why_not(command, cwd)) is not None:
            return _refused(why)
        if not self._tickets.take(found):
            return _refused("its ticket was used before")
        waiting = self._waiting.pop(ticket, None)
        if waiting is not None:
            run, attachment, timer = waiting
            timer.cancel()
        else:
            attachment = self._attachment(
                found.agent, command, is_background=found.is_background, asks_agent=found.is_asked
            )
            try:
                run = self._begin(command, attachment, found.agent, found.session, cwd, found.limit_seconds)
            except HaftError as error:
                return _refused(error.message)
        if run.outcome is not None:
            return _refused(_why(run.outcome), run.id)
        if is_read_only:
            attachment.profile = "read-only"
        return await self._run(run, attachment, found, (stdin, stdout, stderr))

    async def _run(
        self, run: Run, attachment: HookedAttachment, ticket: Ticket, streams: tuple[int, int, int]
    ) -> HookedEnd:
        attachment.redeem(*streams)
        if attachment.is_background and not self._shares_network(run):
            run.add_note(NO_PORTS)
            attachment.output("stderr", f"haft: {NO_PORTS}\n".encode())
        self._running[ticket.id] = run
        try:
            try:
                outcome = await run
            except asyncio.CancelledError:
                run.cancel()
                await run
                raise
            words = _last_words(outcome)
            await attachment.close(f"{words}\n".encode() if words else b"")
        except BaseException:
            attachment.abandon()
            raise
        finally:
            del self._running[ticket.id]
            number = self._signals.pop(run.id, None)
        if number is not None and outcome.status == "cancelled":
            return HookedEnd(128 + number, run=run.id)
        directory = attachment.directory
        moves = directory is not None and directory != ticket.cwd and is_directory(directory)
        return HookedEnd(_status(outcome), directory if moves else None, run.id)

    def _shares_network(self, run: Run) -> bool:
        decision = run.call.decision
        granted = NO_GRANTS if decision is None else decision.grants
        return True in (self._host.config.sandbox_network, granted.network, run.call.grants.network)


async def _end_of(run: Run) -> Outcome:
    return await run


def _refused(why: str, run: RunId | None = None) -> HookedEnd:
    return HookedEnd(NOT_RUN, run=run, text=f"haft: the command was not run: {why}")


def _why(outcome: Outcome) -> str:
    return "it was not decided" if outcome.error is None else outcome.error.message


def _status(outcome: Outcome) -> int:
    """The exit status for the agent's shell."""
    if outcome.error is None or outcome.exit_code:
        return outcome.exit_code or 0
    return _STATUSES.get(outcome.error.code, 1)


def _last_words(outcome: Outcome) -> str:
    """What the agent must read after the output of the command; empty if haft has nothing to say."""
    lines = []
    error = outcome.error
    if error is not None and not (error.code == "tool-failed" and outcome.exit_code):
        lines.append(f"haft: {error.message} ({outcome.run_id})")
    elif outcome.changes.state == "held":
        lines.append(f"haft: the changes of this command are held, because {outcome.changes.reason} ({outcome.run_id})")
    if outcome.ended_children:
        names = ", ".join(f"`{child.command}`" for child in outcome.ended_children[:3])
        lines.append(f"haft: what still ran when the command ended was ended with it: {names}")
    return "\n".join(lines)
