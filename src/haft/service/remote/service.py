"""The tool service of a server, with the methods of `ToolService`.

async with ToolService.connect("https://tools.example:8443", token=…) as service:
    outcome = await service.call("add", {"a": 1, "b": 2})

Methods that start a run return it at once, as those of the embedded service do. All others ask the server, and are
awaited.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

from haft.contracts import (
    ApprovalAnswer,
    Approver,
    BadUsage,
    Listing,
    Principal,
    Rejected,
    RunId,
    ThreadId,
    is_batch_id,
)
from haft.service.remote.address import read_address, read_token
from haft.service.remote.approvals import RemoteApprovals, RemoteApprover, is_below
from haft.service.remote.connection import ServerConnection, part
from haft.service.remote.facades import RemoteAudit, RemoteBatches, RemoteChanges, RemoteRuns, RemoteTools
from haft.service.remote.host import RemoteHost
from haft.service.remote.not_remote import INSTEAD, not_remote
from haft.service.remote.run import RemoteRun
from haft.service.remote.shapes import explanation_from

if TYPE_CHECKING:
    from types import TracebackType

    from haft.changes import Direction, ReversalResult
    from haft.pipeline import BatchPlan
    from haft.policy import Explanation, Waiting
    from haft.runs import RunRecord
    from haft.service.inbox import Reply
    from haft.service.output_pages import OutputPage
    from haft.service.remote.batch import RemoteBatch


class RemoteToolService:
    """One workspace of a server, with the rights of a token."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        workspace: str | None = None,
        approver: Approver | None = None,
        approves_connections: bool = False,
        answers_questions: bool = False,
        answerable: Callable[[RunId], Collection[str]] | None = None,
        thread: str | None = None,
        verify: bool | str | os.PathLike[str] | ssl.SSLContext = True,
        timeout: float = 30.0,
        retry_seconds: float = 60.0,
        keeps_runs: bool = False,
        allow_http: bool = False,
        tools: Iterable[object] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if tuple(tools):
            raise not_remote(
                "connect(…, tools=…)",
                "Python tools run where the server is: put them there, or offer them from here as an MCP server, which"
                " the server's configuration names in [providers]",
            )
        address = read_address(url, allow_http=allow_http)
        if workspace is not None and address.workspace not in (None, workspace):
            raise BadUsage(f"the address names the workspace `{address.workspace}`, and `workspace=` `{workspace}`")
        connection = ServerConnection(
            address,
            read_token(token, os.environ if environ is None else environ),
            verify=verify,
            timeout=timeout,
            retry_seconds=retry_seconds,
        )
        self._host = RemoteHost(connection, workspace or address.workspace, thread)
        self._keeps_runs = keeps_runs
        self._approver = approver
        self._approver_options: dict[str, Any] = {
            "approves_connections": approves_connections,
            "answers_questions": answers_questions,
            "answerable": answerable,
        }
        self._approving: RemoteApprover | None = None

    def __repr__(self) -> str:
        return f"<RemoteToolService {self._host.connection.address.base}>"

    async def __aenter__(self) -> Self:
        await self._host.open()
        if self._approver is not None:
            if not self._host.may("answer") or not self._host.may("see-inbox"):
                name = self._host.name
                await self.close()
                raise Rejected(
                    f"the token of {name} may not approve calls, so it cannot have an approver",
                    hint="use the token of a person with the role approver or operator, or answer in the console",
                )
            self._approving = RemoteApprover(
                self._approver, self._host.approvals, self._host.feed, self._is_asked_here, **self._approver_options
            )
            self._approving.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancel the live runs that this service started, unless it was opened with `keeps_runs`, and end the
        connection."""
        if self._approving is not None:
            await self._approving.close()
        await self._host.close(keeps_runs=self._keeps_runs)

    def _is_asked_here(self, waiting: Waiting) -> bool:
        """Whether a call of this service asks, and its requests go to the approver."""
        own = {run for run, each in self._host.started.items() if not each.pauses}
        return is_below(waiting, own)

    # The facades.

    @property
    def runs(self) -> RemoteRuns:
        """The runs. `await service.runs(…)` lists them."""
        return self._host.runs

    @property
    def changes(self) -> RemoteChanges:
        """The changes of runs."""
        return self._host.changes

    @property
    def approvals(self) -> RemoteApprovals:
        """The requests that wait for a person."""
        return self._host.approvals

    @property
    def tools(self) -> RemoteTools:
        """The tools. `await service.tools(…)` lists them."""
        return self._host.tools

    @property
    def batches(self) -> RemoteBatches:
        """The batches. `service.batch(…)` starts one."""
        return self._host.batches

    @property
    def audit(self) -> RemoteAudit:
        """The audit log of the server."""
        return self._host.audit

    record = audit

    def __getattr__(self, name: str) -> NoReturn:
        if name in INSTEAD:
            raise not_remote(name, INSTEAD[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # What the service is.

    @property
    def principal(self) -> Principal:
        """Who the token stands for."""
        return self._host.principal

    @property
    def who(self) -> str:
        """The name of the one whom the token stands for."""
        return self._host.name

    @property
    def thread(self) -> ThreadId:
        """The thread to which the calls of this service belong, unless a call names another thread."""
        return self._host.thread

    @property
    def workspace(self) -> str:
        """The path of the workspace on the server's machine."""
        return str(self._host.workspace["path"])

    @property
    def workspace_name(self) -> str:
        """The name of the workspace."""
        return str(self._host.workspace["name"])

    # Calls.

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        trial: bool = False,
        pauses: bool = False,
        claim: str | None = None,
        run_id: RunId | None = None,
        **options: Any,
    ) -> RemoteRun:
        """Call a tool. Returns the run at once: await it, iterate over it, cancel it. The options are those of
        `ToolService.call`, except `rights`, `attachment` and `key`. `env` and `config` travel to the server; `parent`
        is a live run of the server."""
        host = self._host
        host.check(name, arguments, options)
        body = {"tool": name, "args": dict(arguments or {}), **host.how(options)}
        body |= {name: True for name, value in (("trial", trial), ("pauses", pauses)) if value}
        body |= {} if claim is None else {"claim": claim}
        run = RemoteRun(host.context, run_id or host.new_id(), str(name))
        run.pauses = pauses

        async def start(run: RemoteRun) -> None:
            run.take(await host.post("/calls", {**body, "runId": run.id}, run.id))

        return host.begin(run, start)

    def batch(self, calls: Iterable[Any], **options: Any) -> RemoteBatch:
        """Make several calls at once: see `ToolService.batch`."""
        return self._host.batches.start(calls, **options)

    async def plan_batch(self, calls: Iterable[Any], *, thread: str | None = None, cwd: str | None = None) -> BatchPlan:
        """The order in which the calls of a batch would run. Calls no tool, and asks nobody."""
        return await self._host.batches.plan(calls, thread=thread, cwd=cwd)

    async def preview(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> str | None:
        """The line in which the tool says what a call would do, without making the call; None if the tool has no
        preview."""
        if options.get("config"):
            raise not_remote("preview(…, config=…)", "the server's own configuration counts")
        path = f"/tools/{part(name)}/preview"
        answer = await self._host.ask("POST", path, body={"args": dict(arguments or {})}, is_repeatable=True)
        text: str | None = answer["preview"]
        return text

    async def permissions_test(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        cwd: str = ".",
        thread: str | None = None,
        subagent: bool = False,
    ) -> Explanation:
        """The decision about a call, and the steps that lead to it. Calls no tool."""
        body = {"tool": name, "args": dict(arguments or {}), "cwd": cwd, "subagent": subagent, "explain": True}
        body |= self._host.in_thread(thread)
        return explanation_from(await self._host.ask("POST", "/permissions/test", body=body, is_repeatable=True))

    # Short forms of the facades' methods.

    async def tools_as(self, form: str, *, thread: str | None = None) -> list[dict[str, Any]]:
        """The definitions of the tools that can be called, for the API of a model provider."""
        return await self._host.tools.as_form(form, thread=thread)

    async def resume(
        self, run: str, answer: bool | ApprovalAnswer | None = None, *, request: str | None = None
    ) -> RemoteRun:
        """Answer what a paused run asks, and go on. Returns the run that was named, or the outermost one above it that
        this service started. With `request`, the answer counts only if the run still asks this request."""
        host = self._host
        given = ApprovalAnswer(approved=answer) if isinstance(answer, bool) else answer
        name = await host.runs.whole_id(run)
        if given is not None:
            asked = [each for each in await host.approvals.inbox() if is_below(each, {RunId(name)})]
            fitting = [each for each in asked if request in (None, each.id)]
            if len(fitting) > 1:
                raise BadUsage(
                    f"{len(fitting)} runs below {name} wait for an answer: name one with `request=`",
                    hint=f"they are {', '.join(each.id for each in fitting)}",
                )
            if not asked:
                raise BadUsage(f"{name} asks nothing that could be answered")
            if fitting:
                await host.approvals.give(fitting[0], given)
        found = await host.runs.get(name)
        if isinstance(found, RemoteRun):
            return found
        ended = RemoteRun(host.context, found.id, found.tool, status=found.status, is_own=False)
        await ended.refresh()
        return ended

    async def inbox(self, *, all: bool = False) -> list[Waiting]:  # noqa: A002  the word of the command line
        """The requests that wait for a person: those of this workspace, or with `all` of every workspace of the server
        that the token may enter."""
        return await self._host.approvals.inbox(all=all)

    def approve(self, name: str, *, who: str | Principal | None = None, **answer: Any) -> asyncio.Task[Reply]:
        """Approve a call that waits: see `ToolService.approve`."""
        self._host.check_who(who)
        return self._host.approvals.approve(name, **answer)

    def reject(self, name: str, *, who: str | Principal | None = None, **answer: Any) -> asyncio.Task[Reply]:
        """Reject a call that waits. The model sees the message."""
        self._host.check_who(who)
        return self._host.approvals.reject(name, **answer)

    def undo(
        self, *runs: str, thread: str | None = None, force: bool = False, who: str | Principal | None = None
    ) -> RemoteRun:
        """Undo the changes of the named runs: see `ToolService.undo`. What the server refuses is raised when the run is
        awaited."""
        return self._host.changes.undo(*runs, thread=thread, force=force, who=who)

    def redo(self, *runs: str, force: bool = False, who: str | Principal | None = None) -> RemoteRun:
        """Redo the changes of runs that were undone."""
        return self._host.changes.redo(*runs, force=force, who=who)

    def apply(self, run: str, *, who: str | Principal | None = None) -> RemoteRun:
        """Apply the held changes of a run."""
        return self._host.changes.apply(run, who=who)

    def drop(self, run: str, *, who: str | Principal | None = None) -> RemoteRun:
        """Drop the held changes of a run."""
        return self._host.changes.drop(run, who=who)

    async def look_ahead(
        self, direction: Direction, *runs: str, thread: str | None = None, force: bool = False
    ) -> ReversalResult:
        """What an undo or redo would do, without doing it."""
        return await self._host.changes.plan(direction, *runs, thread=thread, force=force)

    async def diff(self, run: str) -> str:
        """The changes of a run as a patch. Raises `BadUsage` if the run changed nothing."""
        return await self._host.changes.diff(run)

    async def run(self, run: str) -> RemoteRun | RunRecord:
        """A run that has not ended, or the stored record of any run."""
        return await self._host.runs.get(run)

    async def output(self, run: str, offset: int = 0) -> OutputPage:
        """The stored output of a run from byte `offset` on, as much as fits on a page."""
        return await self._host.runs.output(run, offset)

    async def cancel(self, run: str, *, who: str | Principal | None = None) -> bool:
        """Cancel a run, or a whole batch. Returns False if it had already ended."""
        facade = self._host.batches if is_batch_id(run) else self._host.runs
        return await facade.cancel(run, who=who)

    async def look_again(self, name: str) -> Listing | None:
        """The tool with this name if it can be called now, else None. The server itself notices tools that change."""
        return await self._host.tools.look_again(name)

    def load(self, path: str, **options: Any) -> NoReturn:
        """Not for a service on a server."""
        self._host.tools.load(path)

    def add(self, tool: object) -> NoReturn:
        """Not for a service on a server: Python tools cannot travel."""
        self._host.tools.add(tool)

    def remove(self, name: str) -> NoReturn:
        """Not for a service on a server."""
        self._host.tools.remove(name)

    def watch_tools(self) -> AsyncIterator[list[Listing]]:
        """Yield the list of tools now, and again after every change."""
        return self._host.tools.watch()
