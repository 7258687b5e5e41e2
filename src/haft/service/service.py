"""The tool service: what a program that embeds haft holds in its hands. It delegates: `assembly` puts a host together,
and one facade for each thing does the work.

async with ToolService.open(workspace=".", tools=[add]) as service:
    outcome = await service.call("add", {"a": 1, "b": 2})
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from haft.audit import secret_values
from haft.contracts import (
    NO_GRANTS,
    Approver,
    Call,
    Grants,
    HaftError,
    Listing,
    Principal,
    Scope,
    ThreadId,
    ToolName,
    ToolSpec,
    check_text,
    grants_from,
    new_run_id,
    own_copy,
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
    from haft.pipeline import Run
    from haft.policy import Explanation, Waiting
    from haft.registry import Catalogue
    from haft.runs import RunRecord
    from haft.sandbox import Sandbox
    from haft.service.facades.approvals import HostApprovals
    from haft.service.facades.audit import HostAudit
    from haft.service.facades.changes import HostChanges
    from haft.service.facades.runs import HostRuns
    from haft.service.inbox import Reply
    from haft.service.previewing import PreviewContext
    from haft.service.record import RecordFacade
    from haft.service.sync import SyncToolService
    from haft.storage import StateHome
    from haft.toolsets import Discovery, ToolLike


class ToolService:
    """One host: a workspace, a catalogue of tools, and the runs it makes of calls."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @classmethod
    def open(
        cls,
        workspace: str | os.PathLike[str] = ".",
        *,
        tools: Iterable[ToolLike] = (),
        approver: Approver | None = None,
        home: str | os.PathLike[str] | None = None,
        who: str | Principal | None = None,
        thread: str | None = None,
        settings: Mapping[str, Any] | None = None,
        secrets: Iterable[str] = (),
        installed: bool = True,
    ) -> ToolService:
        """A service, to be entered with `async with`.

        `who` acts where a method names nobody: a name, which is a person's, or a `Principal`. A service that was opened
        for an agent acts for no person, whatever name it is given.
        `home` is where state is kept (default: `HAFT_HOME`), `settings` are the strongest settings by their dotted
        names, `secrets` are values to mask in all that calls say, `installed` takes in tools of installed packages.
        """
        return cls(
            Host(
                workspace,
                tools=tools,
                approver=approver,
                home=home,
                who=who,
                thread=thread,
                settings=settings,
                secrets=secrets,
                installed=installed,
            )
        )

    @classmethod
    def open_sync(cls, workspace: str | os.PathLike[str] = ".", **options: Any) -> SyncToolService:
        """The same service for programs without an event loop, to be entered with `with`. Options as for `open`."""
        from haft.service.sync import SyncToolService

        return SyncToolService(cls.open(workspace, **options))

    async def __aenter__(self) -> Self:
        await self._host.open(self.call)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancel what still runs, write everything down, end every process."""
        await self._host.close()

    # The facades, each loaded when it is first used.

    @cached_property
    def runs(self) -> HostRuns:
        """The runs there are. `service.runs(…)` lists them; the methods do not block."""
        from haft.service.facades.runs import HostRuns

        return HostRuns(self._host)

    @cached_property
    def changes(self) -> HostChanges:
        """What runs changed."""
        from haft.service.facades.changes import HostChanges

        return HostChanges(self._host)

    @cached_property
    def approvals(self) -> HostApprovals:
        """What waits for a person."""
        from haft.service.facades.approvals import HostApprovals

        return HostApprovals(self._host, self.changes)

    @cached_property
    def tools(self) -> HostTools:
        """The tools there are. `service.tools(…)` lists them."""
        return HostTools(self._host)

    @cached_property
    def audit(self) -> HostAudit:
        """The audit log."""
        from haft.service.facades.audit import HostAudit

        return HostAudit(self._host.home)

    # What it is.

    @property
    def principal(self) -> Principal:
        """Whoever acts where nobody else is named."""
        return self._host.principal

    @property
    def who(self) -> str:
        """The name of whoever acts where nobody else is named."""
        return self._host.principal.who

    @property
    def thread(self) -> ThreadId:
        """The conversation of this service."""
        return self._host.thread

    @property
    def workspace(self) -> str:
        return self._host.workspace

    @property
    def home(self) -> StateHome:
        """Where state is kept."""
        return self._host.home

    @property
    def config(self) -> Config:
        """The settings in force."""
        return self._host.config

    @property
    def catalogue(self) -> Catalogue:
        return self._host.catalogue

    @property
    def discovery(self) -> Discovery:
        return self._host.discovery

    @property
    def loaded(self) -> int:
        """How many programs of tools are kept loaded, and answer their next call from a fork."""
        return self._host.sandbox.loaded

    @property
    def abandoned(self) -> int:
        """Tools and threads that ignored their cancellation and are still at work in this process."""
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
    ) -> Run:
        """Call a tool. Returns at once with the run: await it, iterate it, cancel it. `grants` open the sandbox for it.
        With `trial` it runs first, and its changes are committed once someone has seen and approved them. `cwd` is in
        the workspace; without one it is what `working_directory` says. `parent` is the live run that makes the call,
        and whose scope the call joins; without one it is the run whose tool calls this, if one does."""
        host = self._host
        cwd = host.directory if cwd is None else cwd
        check_call(name, arguments, timeout=timeout, cwd=cwd, env=env, config=config, grants=grants)
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
        caller = pipeline.within() if parent is None else pipeline.caller(parent)
        is_plain = caller is None and not who and not thread
        return pipeline.call(
            Call(
                run=new_run_id(),
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
                secrets=host.known(env or {}, config or {}) if env or config else host.known(),
            )
        )

    async def preview(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, config: Mapping[str, Any] | None = None
    ) -> str | None:
        """What a tool says that a call would do, without calling it; None where it says nothing."""
        self._host.running()
        await self._host.disk.renew(name)
        from haft.service.previewing import preview

        return await preview(self.catalogue.get(name, self.thread), arguments or {}, self._nobody(config or {}))

    def _nobody(self, config: Mapping[str, Any]) -> PreviewContext:
        from haft.service.previewing import PreviewContext

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
        self, name: str, arguments: Mapping[str, Any] | None = None, *, cwd: str = ".", thread: str | None = None
    ) -> Explanation:
        """What would be decided about a call, and by which steps. Nothing is called, and no delegate is asked."""
        self._host.running()
        await self._host.disk.renew(name)
        spec = self.catalogue.get(name, thread or self.thread).spec
        confined = await self._is_confined(spec)
        given = await self.as_judged(name, arguments or {}, thread=thread)

        return self._host.policy_engine.explain(
            PolicyQuery(spec, given, cwd=cwd, thread=thread or self.thread, confined=confined)
        )

    async def as_judged(self, name: str, arguments: Mapping[str, Any], *, thread: str | None = None) -> dict[str, Any]:
        """The arguments as a call is judged with: texts are the values that they stand for. What a Python tool makes of
        its arguments is not known, since that would run it; what a tool refuses stays as it is."""
        tool = self.catalogue.get(name, thread or self.thread)
        given: dict[str, Any] = own_copy(arguments)
        if tool.spec.preprocesses and tool.spec.kind != "python":
            with contextlib.suppress(HaftError):
                given = await tool.preprocess(own_copy(arguments), self._nobody({}))
        return given

    async def _is_confined(self, spec: ToolSpec) -> bool:
        return spec.has_processes and (await self._host.sandbox.ready()).namespaces

    # The plain forms: what programs call by the service alone. Those that read a disk block.

    def inbox(self, *, all: bool = False) -> list[Waiting]:  # noqa: A002  the word of the command line
        """The calls that wait for a person, in this workspace or in all; any process can answer them."""
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
        who: str | Principal | None = None,
    ) -> asyncio.Task[Reply]:
        """Say yes to a call that waits, by its name in the inbox or its run's; said even where it is not awaited.
        `NeedsPerson` for agents."""
        answer: Any = {"scope": scope, "allow": allow, "arguments": arguments, "grants": grants, "message": message}
        return self.approvals.approve(name, who=who, **answer)

    def reject(
        self, name: str, *, message: str | None = None, who: str | Principal | None = None
    ) -> asyncio.Task[Reply]:
        """Say no to a call that waits; the message is told to the model."""
        return self.approvals.reject(name, message=message, who=who)

    def undo(
        self, *runs: str, thread: str | None = None, force: bool = False, who: str | Principal | None = None
    ) -> Run:
        """Take back what runs changed, all of them or none; without any, the last of whoever undoes. Returns at once
        with the run that does it. `thread` names runs to take back, and is not the thread of whoever undoes."""
        return self.changes.undo(*runs, thread=thread, force=force, who=who)

    def redo(self, *runs: str, force: bool = False, who: str | Principal | None = None) -> Run:
        """Bring back what was undone; named are the runs that were undone."""
        return self.changes.redo(*runs, force=force, who=who)

    def apply(self, run: str, *, who: str | Principal | None = None) -> Run:
        """Commit what a run holds. `NeedsPerson` for agents."""
        return self.changes.apply(run, who=who)

    def drop(self, run: str, *, who: str | Principal | None = None) -> Run:
        """Throw away what a run holds."""
        return self.changes.drop(run, who=who)

    def look_ahead(
        self, direction: Direction, *runs: str, thread: str | None = None, force: bool = False
    ) -> ReversalResult:
        """What an undo or redo would do."""
        return self.changes.look_ahead(direction, *runs, thread=thread, force=force)

    def diff(self, run: str) -> str:
        """What a run changed, as a patch. `BadUsage` where it changed nothing."""
        return self.changes.patch(run)

    def run(self, run: str) -> Run | RunRecord:
        """A run of this host that has not ended, or any run as it was kept."""
        return self.runs.one(run)

    def cancel(self, run: str, *, who: str | Principal | None = None) -> bool:
        """Cancel a run of this host or of another. False when it had ended already."""
        return self.runs.stop(run, who)

    async def look_again(self, name: str) -> Listing | None:
        """Look at the disk again because a tool is wanted that is not there, or is broken; the tool, where it is there
        now and can be called."""
        return await self.tools.look_again(name)

    async def load(self, path: str, *, grants: Grants | Mapping[str, Any] | None = None) -> Listing:
        """Take in the tool at a path that no toolbox has, or find the one that has it. The network, variables and files
        to read that `grants` name are its own while it is asked what it is."""
        return await self.tools.load(path, grants=grants)

    def add(self, tool: ToolLike) -> Listing:
        """Take in another tool, as if handed over at the start."""
        return self.tools.add(tool)

    def remove(self, name: str) -> None:
        self.tools.remove(name)

    def watch_tools(self) -> AsyncIterator[list[Listing]]:
        """The tools now, and again after every change."""
        return self.tools.watch()

    @property
    def record(self) -> RecordFacade:
        """The audit log, in its plain form."""
        from haft.service.record import RecordFacade

        return RecordFacade(self.home)

    @property
    def _sandbox(self) -> Sandbox:
        return self._host.sandbox

    @property
    def _transactions(self) -> Transactions:
        return self._host.changes()
