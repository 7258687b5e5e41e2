"""The tool service: the object that an embedding program uses. `assembly` puts its host together, and one facade for
each kind of thing does the work.

async with ToolService.open(workspace=".", tools=[add]) as service:
    outcome = await service.call("add", {"a": 1, "b": 2})
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from haft.audit import secret_values
from haft.contracts import (
    NO_CONDITIONS,
    NO_GRANTS,
    ApprovalAnswer,
    Approver,
    Attachment,
    Call,
    Conditions,
    Grants,
    HaftError,
    Isolation,
    Listing,
    Principal,
    Rights,
    RunId,
    Scope,
    ThreadId,
    ToolName,
    ToolSpec,
    as_rights,
    check_text,
    grants_from,
    is_batch_id,
    new_run_id,
    own_copy,
    read_claim,
)
from haft.policy import PolicyQuery
from haft.service.assembly import Host
from haft.service.call_arguments import check_call, never_granted
from haft.service.facades.tools import HostTools

if TYPE_CHECKING:
    import asyncio
    from types import TracebackType

    from haft.changes import Direction, ReversalResult, Transactions
    from haft.config import Config
    from haft.pipeline import BatchPlan, Run, RunWatcher
    from haft.policy import Explanation, Waiting
    from haft.registry import Catalogue
    from haft.runs import RunRecord
    from haft.sandbox import Sandbox
    from haft.service.audit_log import AuditLogFacade
    from haft.service.facades.approvals import HostApprovals
    from haft.service.facades.audit import HostAudit
    from haft.service.facades.batches import BatchRun, HostBatches
    from haft.service.facades.changes import HostChanges
    from haft.service.facades.keyed_requests import HostKeyedRequests
    from haft.service.facades.paused_runs import HostPausedRuns
    from haft.service.facades.programs import HostPrograms
    from haft.service.facades.providers import HostProviders
    from haft.service.facades.runs import HostRuns
    from haft.service.facades.tasks import HostTasks
    from haft.service.hooked_calls.calls import HookedCalls
    from haft.service.inbox import Reply
    from haft.service.observed_calls import ObservedCalls
    from haft.service.output_pages import OutputPage
    from haft.service.previews import PreviewContext
    from haft.service.remote.service import RemoteToolService
    from haft.service.sync import SyncToolService
    from haft.storage import StateHome
    from haft.toolsets import Discovery, ToolLike


class ToolService:
    """One host: a workspace, a catalogue of tools, and the runs of its calls."""

    def __init__(self, host: Host) -> None:
        self._host = host
        host.task.host = lambda: self.tasks

    @classmethod
    def open(
        cls,
        workspace: str | os.PathLike[str] = ".",
        *,
        tools: Iterable[ToolLike] = (),
        approver: Approver | None = None,
        approves_connections: bool = False,
        answers_questions: bool = False,
        answerable: Callable[[RunId], Collection[str]] | None = None,
        home: str | os.PathLike[str] | None = None,
        who: str | Principal | None = None,
        thread: str | None = None,
        settings: Mapping[str, Any] | None = None,
        secrets: Iterable[str] = (),
        installed: bool = True,
        environ: Mapping[str, str] | None = None,
        for_changes: bool = False,
        waits_for_flush: bool = False,
        conditions: Conditions = NO_CONDITIONS,
        watchers: Iterable[RunWatcher] = (),
        neighbours: Sequence[str | os.PathLike[str]] = (),
        is_shared: bool = False,
    ) -> ToolService:
        """Make a service. Enter it with `async with`.

        `who` is the name of a person, or a `Principal`. All methods act for this principal unless they get another one.
        A service that was opened for an agent never acts for a person, whatever `who` its methods get.
        `approves_connections`: the approver also answers requests about connections to hosts that were not granted (see
        `ApprovalRequest.connection`); without it, these connections are refused, unless there is no approver and a
        person answers in the inbox. `answers_questions`: the approver also answers questions of tools in progress (see
        `ApprovalRequest.question`); without it, only the inbox does. `answerable` returns, for the id of a run, which
        kinds of questions the approver can answer; without it, any. `home` is
        the state home (default: `HAFT_HOME`). `settings` are settings by their dotted names; they override the
        configuration files. `secrets` are values to mask in output. With `installed`, the tools of installed packages
        are loaded. `environ` are the variables that count, instead of those of this process. `for_changes`: the service
        only applies, drops, undoes or redoes changes, so `workspace` may also be a directory in which no tool can run,
        such as a home directory. `waits_for_flush`: a call ends only when its changes are in the workspace's own files,
        where programs outside of haft see them. Without it, that may take a moment longer if other calls run.
        `neighbours` are the other workspaces of a server: no call sees them, whatever a person approves. Entering
        raises `BadConfig` if this machine cannot hide them. `is_shared`: several people use the workspace. Then the
        `/tmp` of a thread belongs to one caller, and calls have no private caches such as `~/.cache`.
        `conditions` are for tests. `watchers` are told about every run.
        """
        return cls(
            Host(
                workspace,
                tools=tools,
                approver=approver,
                approves_connections=approves_connections,
                answers_questions=answers_questions,
                answerable=answerable,
                home=home,
                who=who,
                thread=thread,
                settings=settings,
                secrets=secrets,
                installed=installed,
                environ=environ,
                for_changes=for_changes,
                waits_for_flush=waits_for_flush,
                conditions=conditions,
                watchers=watchers,
                neighbours=neighbours,
                is_shared=is_shared,
            )
        )

    @classmethod
    def open_sync(cls, workspace: str | os.PathLike[str] = ".", **options: Any) -> SyncToolService:
        """Make a service for a program without an event loop. Enter it with `with`. The options are those of `open`."""
        from haft.service.sync import SyncToolService

        return SyncToolService(cls.open(workspace, **options))

    @classmethod
    def connect(cls, url: str, *, token: str | None = None, **options: Any) -> RemoteToolService:
        """Connect to the tool service of a server (`haft serve http`), with the rights of a token. Enter it with `async
        with`. It has the methods of `ToolService`; those that ask the server are awaited.

        `url` is the server's address; it may name a workspace, as that of a page of the console does: `…/w/NAME`.
        Without `token`, the variable `HAFT_TOKEN` has it. Other options: `workspace` is the name of a workspace
        (default: the only one, or `default`). `approver` answers requests of calls that this service makes, with
        `approves_connections`, `answers_questions` and `answerable` as in `open`; the token must be allowed to approve.
        `thread` is the conversation of the calls. `verify` names a file or directory with the certificates of a private
        authority, or is an `ssl.SSLContext`. `timeout` is for how many seconds the server may be silent, and
        `retry_seconds` for how long a server that cannot be reached is tried again. With `keeps_runs`, calls that have
        not ended go on when the service is closed. `allow_http` lets the token be sent unencrypted beyond this
        machine."""
        from haft.service.remote.service import RemoteToolService

        return RemoteToolService(url, token=token, **options)

    @classmethod
    def connect_sync(cls, url: str, *, token: str | None = None, **options: Any) -> SyncToolService:
        """Connect to the tool service of a server, for a program without an event loop. Enter it with `with`. The
        options are those of `connect`."""
        from haft.service.sync import SyncToolService

        return SyncToolService(cls.connect(url, token=token, **options))

    async def __aenter__(self) -> Self:
        await self._host.open(self.call, self.changes.apply_approved)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancel the live runs, save everything, and end all processes."""
        await self._host.close()

    # The facades, each loaded when it is first used.

    @cached_property
    def runs(self) -> HostRuns:
        """The runs. `service.runs(…)` lists them and blocks the event loop; the methods `find`, `get` and `cancel` do
        not."""
        from haft.service.facades.runs import HostRuns

        return HostRuns(self._host)

    @cached_property
    def changes(self) -> HostChanges:
        """The changes of runs."""
        from haft.service.facades.changes import HostChanges

        return HostChanges(self._host)

    @cached_property
    def approvals(self) -> HostApprovals:
        """The requests that wait for a person."""
        from haft.service.facades.approvals import HostApprovals

        return HostApprovals(self._host, self.changes)

    @cached_property
    def paused_runs(self) -> HostPausedRuns:
        """The paused runs. `service.resume(…)` goes on with one."""
        from haft.service.facades.paused_runs import HostPausedRuns

        return HostPausedRuns(self._host)

    @cached_property
    def keyed_requests(self) -> HostKeyedRequests:
        """Requests that a client may send twice, because it gave them a key."""
        from haft.service.facades.keyed_requests import HostKeyedRequests

        return HostKeyedRequests(self._host)

    @cached_property
    def tools(self) -> HostTools:
        """The tools. `service.tools(…)` lists them."""
        return HostTools(self._host)

    def tools_as(self, form: str, *, thread: str | None = None) -> list[dict[str, Any]]:
        """The definitions of the tools that can be called, for the API of a model provider: `openai` (chat
        completions), `openai-responses` or `anthropic`; or `mcp`, as an MCP server lists them. A tool that the provider
        would refuse is left out."""
        from haft.service.tool_forms import tool_definitions

        return tool_definitions(self.tools(thread=thread), form)[0]

    @cached_property
    def providers(self) -> HostProviders:
        """The MCP servers."""
        from haft.service.facades.providers import HostProviders

        return HostProviders(self._host)

    @cached_property
    def batches(self) -> HostBatches:
        """The batches. `service.batch(…)` starts one."""
        from haft.service.facades.batches import HostBatches

        return HostBatches(self._host, self.call)

    @cached_property
    def tasks(self) -> HostTasks:
        """The tasks of sub-agents."""
        from haft.service.facades.tasks import HostTasks

        return HostTasks(self._host, self.call, self.batches.start)

    @cached_property
    def hooked(self) -> HookedCalls:
        """The shell commands of agents that run through haft because a hook rewrote them."""
        from haft.service.hooked_calls.calls import HookedCalls

        return HookedCalls(self._host, self.call)

    @cached_property
    def observed(self) -> ObservedCalls:
        """The calls of agents' own tools, which haft does not run, but decides about and records."""
        from haft.service.observed_calls import ObservedCalls

        return ObservedCalls(self._host)

    @cached_property
    def programs(self) -> HostPrograms:
        """Whole programs, each in one confined run."""
        from haft.service.facades.programs import HostPrograms

        return HostPrograms(self._host)

    @cached_property
    def audit(self) -> HostAudit:
        """The audit log."""
        from haft.service.facades.audit import HostAudit

        return HostAudit(self._host.home)

    # What the service is and has.

    @property
    def principal(self) -> Principal:
        """The principal (a person or an agent) that methods act for, unless they get another one as `who`."""
        return self._host.principal

    @property
    def who(self) -> str:
        """The name of the service's principal."""
        return self._host.principal.who

    @property
    def thread(self) -> ThreadId:
        """The thread to which the calls of this service belong, unless a call names another thread."""
        return self._host.thread

    @property
    def workspace(self) -> str:
        return self._host.workspace

    @property
    def home(self) -> StateHome:
        """The state home."""
        return self._host.home

    @property
    def config(self) -> Config:
        """The settings in force."""
        return self._host.config

    @property
    def trusted_clients(self) -> Collection[str]:
        """The clients through which a person may approve dangerous calls: none if an approval passphrase is set."""
        return self._host.trusted_clients

    @property
    def catalogue(self) -> Catalogue:
        return self._host.catalogue

    @property
    def discovery(self) -> Discovery:
        return self._host.discovery

    @property
    def loaded(self) -> int:
        """How many programs the warm pool keeps loaded. The next call of such a program runs in a fork of the loaded
        program."""
        return self._host.sandbox.loaded

    @property
    def abandoned(self) -> int:
        """How many tools and worker threads ignored their cancellation and still run in this process."""
        return self._host.abandoned

    # Calls.

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        thread: str | None = None,
        who: str | Principal | None = None,
        parent: str | None = None,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        config: Mapping[str, Any] | None = None,
        grants: Grants | Mapping[str, Any] | None = None,
        trial: bool = False,
        isolation: Isolation | None = None,
        uses_cache: bool = True,
        attachment: Attachment | None = None,
        rights: Rights | tuple[Rights, ...] | None = None,
        pauses: bool = False,
        key: str | None = None,
        claim: str | None = None,
        run_id: RunId | None = None,
    ) -> Run:
        """Call a tool. Returns the run at once: await it, iterate over it, cancel it. `grants` open the sandbox for
        this call. With `trial`, the call is a trial run: its changes are applied only after a person has reviewed and
        approved them. `cwd` is a directory in the workspace; the default is the setting `working_directory`. `parent`
        is the live run that makes this call: if the parent is cancelled, the call is, too. The default is the run whose
        tool makes this call, if there is one. `isolation` says how the call is isolated from other callers; without it,
        a rule or the setting `changes.isolation` does. With `uses_cache=False`, the call is not answered from the
        cache. `attachment` is a process outside haft to which the call is attached: see `hooked`. `rights` say what
        the call, and every call that it makes, may do at most: never more than the caller may. With `pauses`, requests
        for approval of the call, and of all calls below it, do not go to the approver: await `run.pause_or_outcome()`,
        and see `resume`. `key` is a name of the call by which `service.paused_runs.find` finds its run again. `claim`
        is the caller's own sentence of why it makes the call, which a person sees who is asked to approve it. `run_id`
        is the id of the run, if it was made before the call."""
        host = self._host
        cwd = host.directory if cwd is None else cwd
        check_call(
            name, arguments, timeout=timeout, cwd=cwd, env=env, config=config, grants=grants, isolation=isolation
        )
        granted = NO_GRANTS if grants is None else grants_from(grants)
        if granted.network and host.config.never_network is not None:
            raise never_granted(host.config.never_network)
        check_text("parent", parent)
        pipeline = host.running()
        if env:
            host.trail.redactor.learn(secret_values(env))
        if arguments and isinstance(given := arguments.get("env"), Mapping):
            host.trail.redactor.learn(secret_values({str(key): str(value) for key, value in given.items()}))
        if config:
            host.trail.redactor.learn(value for value in config.values() if isinstance(value, str))
        secrets = host.known(env or {}, config or {}) if env or config else host.known()
        caller = pipeline.within() if parent is None else pipeline.caller(parent)
        is_plain = caller is None and not who and not thread
        return pipeline.call(
            Call(
                run=run_id or new_run_id(),
                name=ToolName(str.__str__(name)),
                arguments=own_copy(arguments or {}),
                principal=host.principal if is_plain else host.acting(who, thread, caller),
                parent=None if caller is None else caller.id,
                timeout=timeout,
                cwd=cwd,
                env=dict(env or {}),
                config=dict(config or {}),
                grants=granted,
                trial=trial,
                isolation=isolation,
                uses_cache=uses_cache,
                attachment=attachment,
                key=key,
                claim=None
                if claim is None
                else read_claim(claim, lambda text: host.trail.redactor.masked_text(text, secrets)),
                rights=(() if caller is None else caller.call.rights) + as_rights(rights),
                secrets=secrets,
            ),
            pauses=pauses,
        )

    def batch(
        self,
        calls: Iterable[Any],
        *,
        thread: str | None = None,
        who: str | Principal | None = None,
        parent: str | None = None,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        config: Mapping[str, Any] | None = None,
        grants: Grants | Mapping[str, Any] | None = None,
        isolation: Isolation | None = None,
        uses_cache: bool = True,
        rights: Rights | tuple[Rights, ...] | None = None,
    ) -> BatchRun:
        """Make several calls at once. Returns the batch at once: await it for the outcomes in the order given, iterate
        over it for the events of all calls, cancel it. Each call is a pair of a tool's name and arguments, or a table
        with the keys `tool`, `args`, `id`, `after` and `timeout`. Their effects and outcomes are those that the order
        of the list gives; calls that do not depend on each other run at once. A failed call stops no other call,
        except those that name its id in `after`. `timeout` is for calls that have none of their own; the other options
        hold for all calls, as in `call`. Raises `BadUsage`, before anything runs, if the list is wrong."""
        return self.batches.start(
            calls,
            thread=thread,
            who=who,
            parent=parent,
            timeout=timeout,
            cwd=cwd,
            env=env,
            config=config,
            grants=grants,
            isolation=isolation,
            uses_cache=uses_cache,
            rights=rights,
        )

    async def plan_batch(self, calls: Iterable[Any], *, thread: str | None = None, cwd: str | None = None) -> BatchPlan:
        """The order in which the calls of a batch would run: their groups, and why each call waits for others. Calls no
        tool, and asks nobody."""
        return await self.batches.plan(calls, thread=thread, cwd=cwd)

    def start_helper(self) -> None:
        """Start the sandbox's helper before the first call needs it. Returns at once."""
        self._host.running()
        self._host.sandbox.begin()

    async def preview(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, config: Mapping[str, Any] | None = None
    ) -> str | None:
        """The line in which the tool says what a call would do, without making the call; None if the tool has no
        preview."""
        self._host.running()
        await self._host.disk.renew(name)
        from haft.service.previews import preview

        return await preview(self.catalogue.get(name, self.thread), arguments or {}, self._nobody(config or {}))

    def _nobody(self, config: Mapping[str, Any]) -> PreviewContext:
        from haft.service.previews import PreviewContext

        return PreviewContext(
            self._host.root,
            self._host.sandbox.describe_launcher(),
            self.config.limits,
            principal=self.principal,
            cwd=self._host.directory,
            config=dict(config),
            secrets=self._host.known(config),
        )

    # Permissions.

    async def permissions_test(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        cwd: str = ".",
        thread: str | None = None,
        who: str | Principal | None = None,
        subagent: bool = False,
    ) -> Explanation:
        """The decision about a call of `who`, and the steps that lead to it. Calls no tool, and runs no program that a
        rule lets decide. With `subagent`, rules for sub-agents count; but the rights of a type of sub-agent do not."""
        self._host.running()
        await self._host.disk.renew(name)
        spec = self.catalogue.get(name, thread or self.thread).spec
        confined = await self._is_confined(spec)
        given = await self.policy_arguments(name, arguments or {}, thread=thread)
        caller = self._host.acting(who, thread)
        return self._host.policy_engine.explain(
            PolicyQuery(
                spec,
                given,
                cwd=cwd,
                thread=thread or self.thread,
                subagent=subagent,
                confined=confined,
                who=caller.who,
                on_behalf=self._host.person_behind(caller),
            )
        )

    async def policy_arguments(
        self, name: str, arguments: Mapping[str, Any], *, thread: str | None = None
    ) -> dict[str, Any]:
        """The arguments as the policy engine gets them, with strings converted to the types of the tool's schema. Does
        not preprocess the arguments of a Python tool, because that would run the tool's code. Arguments that do not fit
        the schema stay the same."""
        tool = self.catalogue.get(name, thread or self.thread)
        given: dict[str, Any] = own_copy(arguments)
        if tool.spec.preprocesses and tool.spec.kind != "python":
            with contextlib.suppress(HaftError):
                given = await tool.preprocess(own_copy(arguments), self._nobody({}))
        return given

    async def missing_conditions(self) -> str | None:
        """Why this machine cannot create the conditions that `open` got; None if it can."""
        return await self._host.sandbox.no_stand_ins()

    async def _is_confined(self, spec: ToolSpec) -> bool:
        return spec.has_processes and (await self._host.sandbox.ready()).namespaces

    # Short forms of the facades' methods. Those that read from disk block the event loop.

    async def resume(self, run: str, answer: bool | ApprovalAnswer | None = None, *, request: str | None = None) -> Run:
        """Go on with a paused run, and answer what it asks. Returns the run of the outermost call. `run` is the run
        that asks, or the outermost one if only one run below it asks. If the host of the run has ended, this host takes
        it over: the same run passes the pipeline again. If several processes try that, one succeeds. The answer counts
        only if nobody has given one in the inbox, and if the call shows the same as before; else the run asks again.
        With `request`, it counts only if the run still asks the request with this id.
        Raises `BadUsage` if the run cannot be resumed here."""
        given = ApprovalAnswer(approved=answer) if isinstance(answer, bool) else answer
        return await self.paused_runs.resume(run, given, request)

    def inbox(self, *, all: bool = False) -> list[Waiting]:  # noqa: A002  the word of the command line
        """The requests that wait for a person: those of this workspace, or with `all` of every workspace. Any process
        can answer them."""
        return self.approvals.inbox(all=all)

    def approve(
        self,
        name: str,
        *,
        scope: Scope = "once",
        allow: int = 0,
        arguments: Mapping[str, Any] | None = None,
        grants: Grants | Mapping[str, Any] | None = None,
        message: str | None = None,
        paths: Sequence[str] = (),
        digest: str | None = None,
        who: str | Principal | None = None,
        passphrase: str | None = None,
    ) -> asyncio.Task[Reply]:
        """Approve a call that waits. `name` is the id of its request or of its run; the id of a batch stands for all
        its calls that wait. The answer takes effect even if
        nobody awaits the task. With `paths`, only these changes of a trial run are applied, with everything below these
        paths; the rest stays held. `digest` is the digest of what the person saw (`Waiting.digest`). `passphrase` is
        the approval passphrase, if one is set. Raises `NeedsPerson` if this method acts for an agent and not for a
        person, `ShownHasChanged` if the request shows something else now, and `AnsweredBefore` if somebody else was
        faster."""
        answer: Any = {"scope": scope, "allow": allow, "arguments": arguments, "grants": grants, "message": message}
        answer |= {"paths": paths, "digest": digest}
        return self.approvals.approve(name, who=who, passphrase=passphrase, **answer)

    def reject(
        self,
        name: str,
        *,
        message: str | None = None,
        digest: str | None = None,
        who: str | Principal | None = None,
        passphrase: str | None = None,
    ) -> asyncio.Task[Reply]:
        """Reject a call that waits. The model sees the message. `digest` is that of `approve`."""
        return self.approvals.reject(name, message=message, digest=digest, who=who, passphrase=passphrase)

    def undo(
        self, *runs: str, thread: str | None = None, force: bool = False, who: str | Principal | None = None
    ) -> Run:
        """Undo the changes of the named runs. If one of them cannot be undone, nothing is undone. Without named runs
        and without `thread`, the last run of `who` is undone (by default, of the service's own principal). Returns the
        run that does the undo, without waiting for its end. `thread` selects all runs of that thread; it is not the
        thread of the undo itself."""
        return self.changes.undo(*runs, thread=thread, force=force, who=who)

    def redo(self, *runs: str, force: bool = False, who: str | Principal | None = None) -> Run:
        """Redo the changes of runs that were undone. `runs` are the undone runs, not the runs that undid them. Returns
        the run that does the redo, without waiting for its end."""
        return self.changes.redo(*runs, force=force, who=who)

    def apply(self, run: str, *, who: str | Principal | None = None) -> Run:
        """Apply the held changes of a run. Returns the run that applies them, without waiting for its end. Raises
        `NeedsPerson` if this method acts for an agent and not for a person."""
        return self.changes.apply(run, who=who)

    def drop(self, run: str, *, who: str | Principal | None = None) -> Run:
        """Drop the held changes of a run. Returns the run that drops them, without waiting for its end."""
        return self.changes.drop(run, who=who)

    def look_ahead(
        self, direction: Direction, *runs: str, thread: str | None = None, force: bool = False
    ) -> ReversalResult:
        """What an undo or redo would do, without doing it."""
        return self.changes.look_ahead(direction, *runs, thread=thread, force=force)

    def diff(self, run: str) -> str:
        """The changes of a run as a patch. Raises `BadUsage` if the run changed nothing."""
        return self.changes.patch(run)

    def run(self, run: str) -> Run | RunRecord:
        """A live run of this host, or the stored record of any run."""
        return self.runs.one(run)

    async def output(self, run: str, offset: int = 0) -> OutputPage:
        """The stored output of a run from byte `offset` on, as much as fits on a page; `next` of the page is where the
        next one begins. `Outcome.output` has only the beginning and the end of a long output."""
        return await self.runs.output(run, offset)

    def cancel(self, run: str, *, who: str | Principal | None = None) -> bool:
        """Cancel a run, or a whole batch, of this host or of another host. Returns False if it had already ended."""
        return self.batches.stop(run, who) if is_batch_id(run) else self.runs.stop(run, who)

    async def look_again(self, name: str) -> Listing | None:
        """Search again for a missing or broken tool of this name. Returns the tool if it can be called now, else
        None."""
        return await self.tools.look_again(name)

    async def load(self, path: str, *, grants: Grants | Mapping[str, Any] | None = None) -> Listing:
        """Load the tool at a path outside all toolboxes. If it is loaded already, return it as it is. While haft
        describes the tool, the tool has the network, the variables and the readable files of `grants`."""
        return await self.tools.load(path, grants=grants)

    def add(self, tool: ToolLike) -> Listing:
        """Add a tool, as if it had been passed to `ToolService.open`."""
        return self.tools.add(tool)

    def remove(self, name: str) -> None:
        self.tools.remove(name)

    def watch_tools(self) -> AsyncIterator[list[Listing]]:
        """Yield the list of tools now, and again after every change."""
        return self.tools.watch()

    @property
    def record(self) -> AuditLogFacade:
        """The audit log, with methods that block the event loop."""
        from haft.service.audit_log import AuditLogFacade

        return AuditLogFacade(self.home)

    @property
    def _sandbox(self) -> Sandbox:
        return self._host.sandbox

    @property
    def _transactions(self) -> Transactions:
        return self._host.changes()
