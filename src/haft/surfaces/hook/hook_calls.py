"""Answers hooks: what becomes of a call that an agent is about to make with one of its own tools.

- A shell command is decided and approved here, and rewritten to a line that runs it through haft.
- A call of any other tool is decided, and the agent runs it: see `service/observed_calls.py`.
- Where there is no workspace, haft decides nothing and notes the call in the audit log.

Every failure is a denial. `start.py` denies if this process does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Mapping
from typing import Any, Final

from haft.connecting import AGENTS, HookFacts
from haft.contracts import BadConfig, HaftError
from haft.service import (
    HookConnection,
    HookKind,
    HookMessage,
    StateHome,
    ToolService,
    find_workspace,
    is_harmless,
    person_command_in,
    record_uncovered,
)
from haft.surfaces.hook.agent_process import AgentProcess, agent_process, shows_person
from haft.surfaces.hook.call_keys import CallKeys
from haft.surfaces.hook.events import Format, HookEvent, Output, Reply, ShellUse
from haft.surfaces.hook.formats import FORMATS
from haft.surfaces.hook.line import START, shell_line
from haft.surfaces.hook.living_agents import LivingAgents
from haft.surfaces.hook.never_run import never_run
from haft.surfaces.hook.own_files import why_held, why_not_edited
from haft.surfaces.hook.probes import Probes
from haft.surfaces.hook.resident import signs_of_life
from haft.surfaces.hook.served_tools import is_served
from haft.surfaces.hook.workspaces import Workspaces
from haft.values import dataclass, replace

MARGIN_SECONDS: Final = 15.0
"""How long before the agent's limit a hook stops waiting for a person."""
SHORTEST_WAIT: Final = 1.0
PROJECT_VARIABLES: Final = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR")
"""Variables in which agents tell their hooks the directory in which they were started."""
DENIED: Final = "haft denied this call"
_LONGEST_REASON: Final = 2_000
_OWN_SANDBOX: Final = frozenset({"codex"})
"""Agents whose shell runs in a sandbox of their own."""
_READS_PLAIN: Final = frozenset({"codex"})
"""Agents whose rules check a line only if it has plain commands, without groups."""
_KEEPS_DIRECTORY: Final = frozenset({"claude-code"})
"""Agents whose next command begins in the directory in which the last one ended."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks: the agent, its process, and what it can do."""

    agent: str
    format: Format
    facts: HookFacts
    process: AgentProcess | None
    variables: Mapping[str, str]
    until: float
    """Until when an answer must be there, as a monotonic time."""

    def asks_agent(self, mode: str) -> bool:
        """Whether the agent can ask a person in its own prompt."""
        return self.format.can_ask and shows_person(self.agent, self.process, mode, self.variables)

    @property
    def build(self) -> str | None:
        """What distinguishes versions of the agent; None if nothing is known about the agent's process."""
        return None if self.process is None else self.process.build()

    def wait_seconds(self) -> float:
        """How long a request may wait in the inbox."""
        return max(self.until - time.monotonic(), SHORTEST_WAIT)


@dataclass(frozen=True, slots=True)
class _Rewritten:
    """A shell call whose line was rewritten."""

    service: ToolService
    ticket: str
    agent: str
    build: str | None
    is_background: bool


class HookCalls:
    """Answers the hooks of all agents."""

    def __init__(self, home: StateHome, workspaces: Workspaces, agents: LivingAgents) -> None:
        self._home = home
        self._workspaces = workspaces
        self._agents = agents
        self._probes = Probes(home.path)
        self._rewritten: dict[str, _Rewritten] = {}
        """The shell calls whose end was not told, by key."""
        self._keys: dict[str, str] = {}
        """The keys of shell calls, by ticket."""
        self._calls = CallKeys()
        self._is_prepared = False

    async def handle(self, connection: HookConnection, message: HookMessage) -> None:
        """Answer one hook. If the other end goes away meanwhile, the call is cancelled."""
        message.close()
        process = agent_process(connection.peer, START)
        work = asyncio.ensure_future(self._answer(message.fields, process))
        gone = asyncio.ensure_future(connection.receive())
        either: set[asyncio.Future[Any]] = {work, gone}
        async with signs_of_life(connection):
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
                if not work.done():
                    work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({work})
        if not work.cancelled():
            output = work.result()
            await connection.send(HookKind.ANSWER, b"%d" % output.code, output.stdout, output.stderr)

    async def _answer(self, fields: tuple[bytes, ...], process: AgentProcess | None) -> Output:
        try:
            _format, name, directory, given, told = fields[:5]
            agent = name.decode()
            form, facts = FORMATS[agent], AGENTS[agent].hooks
            assert facts is not None
            event = form.read(_json(given), os.fsdecode(directory))
        except (ValueError, KeyError, AssertionError, RecursionError) as error:
            why = f"{DENIED}: its hook got what it does not understand ({type(error).__name__}: {error})"
            return Output(stderr=f"{why[:_LONGEST_REASON]}\n".encode(), code=2)
        until = time.monotonic() + facts.limit_seconds - MARGIN_SECONDS
        asking = Asking(agent, form, facts, process, _variables(told), until)
        try:
            reply = await self._reply(asking, event)
        except Exception as error:  # Whatever fails: the call is denied.
            reply = Reply("deny", f"haft could not decide: {_words(error)}. `haft doctor` says more")
            if event.phase != "before":
                return Output(stderr=f"haft could not record the end of this call: {_words(error)}\n".encode())
        if reply.action == "deny":
            reply = replace(reply, reason=f"{DENIED}: {reply.reason}"[:_LONGEST_REASON])
        return form.write(event, reply)

    async def _reply(self, asking: Asking, event: HookEvent) -> Reply:
        if event.phase == "other" or event.meaning.is_ours:
            return Reply("none")
        if event.phase == "after":
            return await self._after(asking, event)
        if not self._is_prepared:
            self._home.prepare()
            self._is_prepared = True
        self._agents.meet(asking.agent, asking.process)
        shell = event.meaning.shell
        denies = None
        try:
            workspace = find_workspace(event.cwd if shell is None else shell.cwd, self._home.path)
        except BadConfig as error:
            found = self._workspace_of_agent(asking, event)
            if found is None:
                return await self._without_workspace(asking, event, error)
            workspace = found
            if shell is not None:  # Otherwise the model could leave the sandbox by naming another directory.
                denies = f"{shell.cwd} is not in the workspace {found}, so haft cannot run the command there"
        async with self._workspaces.service(workspace, asking.variables) as service:
            if event.meaning.perhaps_ours and is_served(service, event.meaning.perhaps_ours):
                return Reply("none")
            if shell is not None and denies is None:
                return await self._shell(asking, event, shell, service)
            return await self._observe(asking, event, service, denies=denies)

    def _workspace_of_agent(self, asking: Asking, event: HookEvent) -> str | None:
        """The workspace in which the agent works, although this call goes elsewhere; None if there is none."""
        for place in (event.cwd, *(asking.variables.get(name, "") for name in PROJECT_VARIABLES)):
            if os.path.isabs(place):
                with contextlib.suppress(BadConfig):
                    return find_workspace(place, self._home.path)
        return None

    async def _without_workspace(self, asking: Asking, event: HookEvent, error: BadConfig) -> Reply:
        files = event.meaning.files
        why_not = why_not_edited(files, self._home.path, asking.variables)
        held = why_held(files, self._home.path, asking.variables)
        if why_not is None and held is not None:
            why_not = f"{held}, and without a workspace nobody can approve such an edit"
        if why_not is None and event.meaning.shell is not None:
            why_not = _why_not_run(event.meaning.shell, event.cwd)
        reason = why_not or f"there is no workspace: {error.message}"
        await asyncio.to_thread(
            record_uncovered,
            self._home, asking.agent, event.session, event.tool, event.arguments, event.cwd, reason,
        )  # fmt: skip
        return Reply("none") if why_not is None else Reply("deny", why_not)

    # Shell commands.

    async def _shell(self, asking: Asking, event: HookEvent, shell: ShellUse, service: ToolService) -> Reply:
        service.start_helper()  # It starts while this process loads what reads the command.
        denies = _why_not_run(shell, service.workspace)
        why_plain = self._why_not_rewritten(asking, shell, service)
        if denies is not None or why_plain is not None:
            return await self._observe(asking, event, service, denies=denies, note=why_plain)
        decided = await service.hooked.ticket(
            shell.command,
            agent=asking.agent,
            session=_session(asking, event),
            cwd=shell.cwd,
            limit_seconds=shell.timeout,
            is_background=shell.is_background,
            asks_agent=asking.asks_agent(event.mode),
            wait_seconds=asking.wait_seconds(),
            has_own_sandbox=asking.agent in _OWN_SANDBOX,
        )
        if decided.action == "deny" or decided.ticket is None:
            return Reply("deny", f"{decided.reason} ({decided.run})")
        rewritten = _Rewritten(service, decided.ticket, asking.agent, asking.build, shell.is_background)
        self._remember(asking, event, rewritten)
        may_move = decided.may_move and asking.agent in _KEEPS_DIRECTORY
        shown = never_run(shell.command, is_plain=asking.agent in _READS_PLAIN)
        line = shell_line(self._home.path, decided.ticket, shell.command, shown=shown, may_move=may_move)
        arguments = {**event.arguments, shell.argument: line}
        if decided.action == "ask":
            return Reply("ask", f"{decided.reason} ({decided.run})", arguments)
        allows = asking.facts.rewriting == "with-allow"
        return Reply("rewrite", f"haft runs it in its sandbox ({decided.run})", arguments, allows=allows)

    def _why_not_rewritten(self, asking: Asking, shell: ShellUse, service: ToolService) -> str | None:
        """Why this command is not rewritten; None if it is."""
        agent = AGENTS[asking.agent]
        if asking.facts.rewriting == "off":
            return f"haft was not seen to run commands of {agent.title} through its sandbox, so it does not try"
        version = None if asking.process is None else asking.process.version()
        proof = self._probes.proof(asking.agent, asking.build)
        if proof == "refuted":
            return f"{agent.title} {version or ''} runs commands as they are, although haft's hook rewrites them"
        if asking.facts.rewriting == "plain" or proof == "proven" or version == agent.version:
            return None
        if is_harmless(shell.command, service.workspace, shell.cwd):
            return None  # The probe: this command only reads, so it does no harm, whichever line runs.
        return f"{agent.title} {version or 'of this version'} has not yet run a command that haft's hook rewrote"

    def _remember(self, asking: Asking, event: HookEvent, rewritten: _Rewritten) -> None:
        key = self._calls.begun(asking.agent, event)
        self._rewritten[key] = rewritten
        self._keys[rewritten.ticket] = key
        why = f"{asking.agent} ended before it ran the rewritten line"
        self._agents.await_end(asking.process, key, lambda: self._end_shell(key, why, proves=False))

    def redeemed(self, ticket: str) -> None:
        """Note that an agent ran a rewritten line."""
        key = self._keys.pop(ticket, None)
        found = None if key is None else self._rewritten.get(key)
        if found is not None:
            self._probes.note(found.agent, found.build, runs_rewritten=True)

    def _end_shell(self, key: str, why: str, *, proves: bool) -> None:
        """End a shell call. `proves`: the agent said that it ran the command, so an unused ticket proves that it does
        not run rewritten lines. If a person refused the command, or the agent ended before, nothing is proven."""
        found = self._rewritten.pop(key, None)
        if found is None:
            return
        is_unused = self._keys.pop(found.ticket, None) is not None
        if is_unused:
            # From inside an agent's own sandbox, the ticket is redeemed over pipes, and `redeemed` is not called.
            is_not_run = found.service.hooked.give_up(found.ticket, why)
            if proves or not is_not_run:
                self._probes.note(found.agent, found.build, runs_rewritten=not is_not_run)

    # All other tools.

    async def _observe(
        self,
        asking: Asking,
        event: HookEvent,
        service: ToolService,
        *,
        denies: str | None = None,
        note: str | None = None,
    ) -> Reply:
        meaning, shell = event.meaning, event.meaning.shell
        key = self._calls.begun(asking.agent, event)
        held = None
        if denies is None and meaning.changes:
            denies = why_not_edited(meaning.files, self._home.path, asking.variables)
            held = why_held(meaning.files, self._home.path, asking.variables)
        from haft.service import Observed  # A hook of a shell command does not wait for this import.

        observed = Observed(
            tool=event.tool,
            arguments=event.arguments,
            agent=asking.agent,
            session=_session(asking, event),
            cwd=event.cwd if shell is None else shell.cwd,
            decided_as=meaning.decided_as if shell is None else "shell",
            decided_with=meaning.decided_with if shell is None else [{"command": shell.command}],
            files=meaning.files,
            changes=meaning.changes,
            note=note,
            held=held,
        )
        decided = await service.observed.begin(
            key,
            observed,
            asks_agent=asking.asks_agent(event.mode),
            wait_seconds=asking.wait_seconds(),
            denies=denies,
        )
        if decided.action == "deny":
            self._calls.forget(key)
            return Reply("deny", f"{decided.reason} ({decided.run})")
        why = f"{asking.agent} ended and never said so"
        self._agents.await_end(asking.process, key, lambda: service.observed.lose(key, why))
        return Reply("ask", f"{decided.reason} ({decided.run})") if decided.action == "ask" else Reply("none")

    async def _after(self, asking: Asking, event: HookEvent) -> Reply:
        key = self._key_of_ended(asking, event)
        if key is None:
            return Reply("none")
        rewritten = self._rewritten.get(key)
        if rewritten is not None and rewritten.is_background and event.failure is None:
            return Reply("none")  # The agent tells this at once, perhaps before its shell runs the line.
        self._agents.forget(key)
        if rewritten is not None:
            why = f"{asking.agent} ran the command, but not the line that haft gave it"
            self._end_shell(key, why, proves=event.failure is None)
            return Reply("none")
        for service in self._workspaces.services():
            if await service.observed.end(key, event.failure) is not None:
                break
        return Reply("none")

    def _key_of_ended(self, asking: Asking, event: HookEvent) -> str | None:
        words = json.dumps(dict(event.arguments))
        for key, rewritten in self._rewritten.items():
            if rewritten.ticket in words:  # The agent tells the rewritten command.
                self._calls.forget(key)
                return key
        return self._calls.ended(asking.agent, event)


def _json(given: bytes) -> Mapping[str, Any]:
    found = json.loads(given)
    if not isinstance(found, dict):
        raise ValueError("it is no object")  # noqa: TRY004  the input is bad, not the code
    return found


def _variables(told: bytes) -> dict[str, str]:
    pairs = (os.fsdecode(each).partition("=") for each in told.split(b"\0") if each)
    return {name: value for name, _, value in pairs}


def _session(asking: Asking, event: HookEvent) -> str:
    pid = 0 if asking.process is None else asking.process.pid
    return event.session or f"{asking.agent}-{pid}"


def _why_not_run(shell: ShellUse, workspace: str) -> str | None:
    """Why an agent's shell may not run a command, whatever the rules say; None if it may."""
    found = person_command_in(shell.command, workspace, shell.cwd)
    return None if found is None else f"`{found}` counts as a person's: an agent cannot run it"


def _words(error: Exception) -> str:
    return error.message if isinstance(error, HaftError) else f"{type(error).__name__}: {error}"
