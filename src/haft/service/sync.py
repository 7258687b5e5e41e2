"""`SyncToolService`: the methods of `ToolService` without `await`. They block. The event loop of the service runs in a
thread of its own."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, cast

from haft.audit import Verdict
from haft.changes import Direction, ReversalResult
from haft.contracts import ApprovalAnswer, BadConfig, Event, Grants, Listing, Outcome, Principal, RunId
from haft.pipeline import BatchPlan
from haft.policy import Explanation, Waiting
from haft.runs import RunRecord
from haft.service.audit_log import AuditLogFacade
from haft.service.inbox import Reply
from haft.service.output_pages import OutputPage
from haft.toolsets import ToolLike

T = TypeVar("T")


class StartedRun(Protocol):
    """A run of this host, or of a server."""

    @property
    def id(self) -> RunId: ...
    @property
    def status(self) -> str: ...
    @property
    def cancel(self) -> Callable[[], bool | asyncio.Task[bool]]: ...
    @property
    def pause_or_outcome(self) -> Callable[[], Coroutine[Any, Any, Any]]: ...
    def __await__(self) -> Generator[Any, None, Outcome]: ...
    def __aiter__(self) -> AsyncIterator[Event]: ...


class Service(Protocol):
    """The part of `ToolService`, and of the service of a server, that this module uses. The modules of these import
    this module, so this module cannot import them. What a service on a server must ask for, it returns as a
    coroutine."""

    @property
    def record(self) -> Any: ...
    async def __aenter__(self) -> Any: ...
    async def close(self) -> None: ...
    @property
    def call(self) -> Callable[..., StartedRun]: ...
    @property
    def batch(self) -> Callable[..., Awaitable[list[Outcome]]]: ...
    @property
    def tasks(self) -> Any: ...
    @property
    def plan_batch(self) -> Callable[..., Coroutine[Any, Any, BatchPlan]]: ...
    @property
    def preview(self) -> Callable[..., Coroutine[Any, Any, str | None]]: ...
    @property
    def load(self) -> Callable[..., Coroutine[Any, Any, Listing]]: ...
    @property
    def look_again(self) -> Callable[..., Coroutine[Any, Any, Listing | None]]: ...
    @property
    def missing_conditions(self) -> Callable[[], Coroutine[Any, Any, str | None]]: ...
    @property
    def undo(self) -> Callable[..., StartedRun]: ...
    @property
    def redo(self) -> Callable[..., StartedRun]: ...
    @property
    def apply(self) -> Callable[..., StartedRun]: ...
    @property
    def drop(self) -> Callable[..., StartedRun]: ...
    @property
    def look_ahead(self) -> Callable[..., ReversalResult | Coroutine[Any, Any, ReversalResult]]: ...
    @property
    def permissions_test(self) -> Callable[..., Coroutine[Any, Any, Explanation]]: ...
    @property
    def inbox(self) -> Callable[..., list[Waiting] | Coroutine[Any, Any, list[Waiting]]]: ...
    @property
    def resume(self) -> Callable[..., Coroutine[Any, Any, StartedRun]]: ...
    @property
    def approve(self) -> Callable[..., asyncio.Task[Reply]]: ...
    @property
    def reject(self) -> Callable[..., asyncio.Task[Reply]]: ...
    @property
    def diff(self) -> Callable[[str], str | Coroutine[Any, Any, str]]: ...
    @property
    def run(self) -> Callable[[str], Any]: ...
    @property
    def runs(self) -> Callable[..., list[RunRecord] | Coroutine[Any, Any, list[RunRecord]]]: ...
    @property
    def cancel(self) -> Callable[..., bool | Coroutine[Any, Any, bool]]: ...
    @property
    def tools(self) -> Callable[..., list[Listing] | Coroutine[Any, Any, list[Listing]]]: ...
    @property
    def add(self) -> Callable[[ToolLike], Listing]: ...
    @property
    def remove(self) -> Callable[[str], None]: ...
    @property
    def tools_as(self) -> Callable[..., list[dict[str, Any]] | Coroutine[Any, Any, list[dict[str, Any]]]]: ...
    @property
    def output(self) -> Callable[..., Coroutine[Any, Any, OutputPage]]: ...
    def watch_tools(self) -> AsyncIterator[list[Listing]]: ...


class SyncRun:
    """A run, for a program without an event loop: `wait()` for it, iterate over it, `cancel()` it."""

    def __init__(self, run: StartedRun, loop: asyncio.AbstractEventLoop) -> None:
        self._run = run
        self._loop = loop

    @property
    def id(self) -> RunId:
        return self._run.id

    @property
    def status(self) -> str:
        return self._run.status

    def wait(self, timeout: float | None = None) -> Outcome:
        """Wait for the outcome. Raises `TimeoutError` after `timeout` seconds; the run then continues."""

        async def outcome() -> Outcome:
            return await self._run

        future = asyncio.run_coroutine_threadsafe(outcome(), self._loop)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise

    def pause_or_outcome(self) -> Any:
        """The next `Pause`, or the outcome: wait until the call, or a call below it, needs approval, or until the run
        has ended. Answer a pause with `SyncToolService.resume`."""
        return asyncio.run_coroutine_threadsafe(self._run.pause_or_outcome(), self._loop).result()

    def __iter__(self) -> Iterator[Event]:
        async def subscribe() -> Any:
            return aiter(self._run)

        events = asyncio.run_coroutine_threadsafe(subscribe(), self._loop).result()
        try:
            while True:
                try:
                    yield asyncio.run_coroutine_threadsafe(_next(events), self._loop).result()
                except StopAsyncIteration:
                    return
        finally:
            if self._loop.is_running():
                asyncio.run_coroutine_threadsafe(events.aclose(), self._loop).result()

    def cancel(self) -> bool:
        async def cancel() -> bool:
            cancelled = self._run.cancel()
            return cancelled if isinstance(cancelled, bool) else await cancelled

        return asyncio.run_coroutine_threadsafe(cancel(), self._loop).result()


class SyncToolService:
    """The tool service, blocking. Enter it with `with`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="haft-service", daemon=True)
        self._thread.start()
        try:
            self._wait(self._service.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the live runs, save everything, and end all processes."""
        if self._loop is not None:
            try:
                self._wait(self._service.close())
                self._wait(self._loop.shutdown_default_executor())
            finally:
                self._stop()

    def _stop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            coroutine.close()
            raise BadConfig("this service is not open", hint="use it inside `with ToolService.open_sync(...)`")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _on_loop(self, work: Callable[[], T | Coroutine[Any, Any, T]]) -> T:
        async def do() -> T:
            found = work()
            return await found if inspect.iscoroutine(found) else cast("T", found)

        return self._wait(do())

    def _here(self, found: T | Coroutine[Any, Any, T]) -> T:
        """What was read in this thread, so that the event loop goes on meanwhile; or what a server is asked."""
        return self._wait(found) if inspect.iscoroutine(found) else cast("T", found)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> SyncRun:
        """Call a tool. Returns the run without waiting for its end."""
        return self._started(lambda: self._service.call(name, arguments, **options))

    def start_task(self, prompt: str, **options: Any) -> SyncRun:
        """Start a task of a sub-agent. Returns its run without waiting for its end. The options are those of
        `ToolService.tasks.start`."""
        return self._started(lambda: self._service.tasks.start(prompt, **options))

    def resume_task(self, task: str, prompt: str | None = None, **options: Any) -> SyncRun:
        """Go on with an ended task. Returns the new run without waiting for its end."""
        return self._started(lambda: self._service.tasks.resume(task, prompt, **options))

    def _started(self, start: Callable[[], StartedRun]) -> SyncRun:
        run = self._on_loop(start)
        wait_for_id: Callable[[], Coroutine[Any, Any, None]] | None = getattr(run, "wait_for_id", None)
        if wait_for_id is not None:  # A server makes some ids, or refuses.
            self._wait(wait_for_id())
        assert self._loop is not None
        return SyncRun(run, self._loop)

    def preview(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> str | None:
        """The line in which the tool says what a call would do, without making the call; None if the tool has no
        preview."""
        return self._wait(self._service.preview(name, arguments, **options))

    def look_again(self, name: str) -> Listing | None:
        """Search again for a missing or broken tool of this name. Returns the tool if it can be called now, else
        None."""
        return self._wait(self._service.look_again(name))

    def missing_conditions(self) -> str | None:
        """Why this machine cannot create the conditions that `open_sync` got; None if it can."""
        return self._wait(self._service.missing_conditions())

    def load(self, path: str, *, grants: Grants | Mapping[str, Any] | None = None) -> Listing:
        """Load the tool at a path. If it is loaded already, return it as it is."""
        return self._wait(self._service.load(path, grants=grants))

    def undo(
        self, *runs: str, thread: str | None = None, force: bool = False, who: str | Principal | None = None
    ) -> SyncRun:
        """Undo the changes of the named runs. If one of them cannot be undone, nothing is undone. Without named runs
        and without `thread`, the last run of `who` is undone (by default, of the service's own principal)."""
        return self._started(lambda: self._service.undo(*runs, thread=thread, force=force, who=who))

    def batch(self, calls: Iterable[Any], **options: Any) -> list[Outcome]:
        """Make several calls at once, and wait for their outcomes, which come in the order given. The options are those
        of `ToolService.batch`."""

        async def outcomes() -> list[Outcome]:
            return await self._service.batch(calls, **options)

        return self._wait(outcomes())

    def plan_batch(self, calls: Iterable[Any], **options: Any) -> BatchPlan:
        """The order in which the calls of a batch would run. Calls no tool, and asks nobody."""
        return self._wait(self._service.plan_batch(calls, **options))

    def redo(self, *runs: str, force: bool = False, who: str | Principal | None = None) -> SyncRun:
        """Redo the changes of runs that were undone. `runs` are the undone runs, not the runs that undid them."""
        return self._started(lambda: self._service.redo(*runs, force=force, who=who))

    def apply(self, run: str, *, who: str | Principal | None = None) -> SyncRun:
        """Apply the held changes of a run."""
        return self._started(lambda: self._service.apply(run, who=who))

    def drop(self, run: str, *, who: str | Principal | None = None) -> SyncRun:
        """Drop the held changes of a run."""
        return self._started(lambda: self._service.drop(run, who=who))

    def look_ahead(
        self, direction: Direction, *runs: str, thread: str | None = None, force: bool = False
    ) -> ReversalResult:
        """What an undo or redo would do, without doing it."""
        return self._here(self._service.look_ahead(direction, *runs, thread=thread, force=force))

    def permissions_test(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Explanation:
        """The decision about a call, and the steps that led to it. Calls no tool, and runs no program that a rule lets
        decide."""
        return self._wait(self._service.permissions_test(name, arguments, **options))

    def inbox(self, *, all: bool = False) -> list[Waiting]:  # noqa: A002  the word of the command line
        """The requests that wait for a person."""
        return self._on_loop(lambda: self._service.inbox(all=all))

    def resume(self, run: str, answer: bool | ApprovalAnswer | None = None, *, request: str | None = None) -> SyncRun:
        """Go on with a paused run, and answer what it asks. Returns the run of the outermost call."""
        resumed = self._wait(self._service.resume(run, answer, request=request))
        assert self._loop is not None
        return SyncRun(resumed, self._loop)

    def approve(self, name: str, **options: Any) -> Reply:
        """Approve a call that waits."""
        return self._wait(_given(lambda: self._service.approve(name, **options)))

    def reject(self, name: str, **options: Any) -> Reply:
        """Reject a call that waits."""
        return self._wait(_given(lambda: self._service.reject(name, **options)))

    def diff(self, run: str) -> str:
        """The changes of a run as a patch."""
        return self._here(self._service.diff(run))

    def output(self, run: str, offset: int = 0) -> OutputPage:
        """The stored output of a run from byte `offset` on, as much as fits on a page."""
        return self._wait(self._service.output(run, offset))

    def tools_as(self, form: str, *, thread: str | None = None) -> list[dict[str, Any]]:
        """The definitions of the tools that can be called, for the API of a model provider."""
        return self._on_loop(lambda: self._service.tools_as(form, thread=thread))

    def run(self, run: str) -> SyncRun | RunRecord:
        found = self._on_loop(lambda: self._service.run(run))
        if isinstance(found, RunRecord):
            return found
        assert self._loop is not None
        return SyncRun(found, self._loop)

    def runs(self, **wanted: Any) -> list[RunRecord]:
        return self._on_loop(lambda: self._service.runs(**wanted))

    def cancel(self, run: str, *, who: str | Principal | None = None) -> bool:
        return self._on_loop(lambda: self._service.cancel(run, who=who))

    def tools(self, *, all: bool = False) -> list[Listing]:  # noqa: A002  the word of the command line
        return self._on_loop(lambda: self._service.tools(all=all))

    def add(self, tool: ToolLike) -> Listing:
        return self._on_loop(lambda: self._service.add(tool))

    def remove(self, name: str) -> None:
        self._on_loop(lambda: self._service.remove(name))

    def watch_tools(self) -> Iterator[list[Listing]]:
        """Yield the list of tools now, and again after every change. Blocks between two changes."""
        catalogues = self._on_loop(self._service.watch_tools)
        while True:
            yield self._wait(_next(catalogues))

    @property
    def record(self) -> AuditLogFacade | SyncAuditLog:
        """The audit log."""
        record = self._service.record
        return record if isinstance(record, AuditLogFacade) else SyncAuditLog(record, self._wait)


class SyncAuditLog:
    """The audit log of a server, blocking."""

    def __init__(self, log: Any, wait: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._log = log
        self._wait = wait

    def verify(self, *, since_checkpoint: bool = False) -> Verdict:
        """Check every entry, or those after the last one that an earlier check found intact."""
        verdict: Verdict = self._wait(self._log.verify(since_checkpoint=since_checkpoint))
        return verdict

    def last(self, limit: int = 50) -> list[dict[str, Any]]:
        """The last entries, the newest first."""
        found: list[dict[str, Any]] = self._wait(self._log.last(limit))
        return found

    def entries(self) -> Iterator[dict[str, Any]]:
        """All entries, the oldest first."""
        entries = self._log.entries()
        try:
            while True:
                try:
                    yield self._wait(_next(entries))
                except StopAsyncIteration:
                    return
        finally:
            self._wait(entries.aclose())


async def _given(start: Callable[[], Awaitable[T]]) -> T:
    return await start()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)
