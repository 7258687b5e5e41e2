"""The life of one MCP server: it starts on first use, is reused, starts again after a crash, and ends with the host.

A server that may write in the workspace answers one call at a time, so that haft knows whose changes it makes. Other
servers answer calls at the same time.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from haft.contracts import (
    Answer,
    Command,
    Deadlock,
    HaftError,
    RunId,
    Secrets,
    Session,
    SessionLauncher,
    ToolContext,
    ToolFailed,
)
from haft.lazy import late_module
from haft.sources.mcp import texts
from haft.sources.mcp.definitions import Known, ServerDefinitions, digest_of, prepared
from haft.sources.mcp.provider import START_SECONDS, InstalledServer, Provider, ServerPackages, StartTrust
from haft.sources.mcp.remote.failures import LoginRequired
from haft.sources.mcp.server_log import ServerLog
from haft.sources.owner_task import OwnerTask
from haft.values import replace

if TYPE_CHECKING:
    import asyncio

    from haft.sources.mcp.calls import ServerCall
    from haft.sources.mcp.connection import Connection
    from haft.sources.mcp.transport import ServerStreams

else:
    asyncio = late_module("asyncio")  # Listing tools makes servers, and starts none.

FIRST_PAUSE: Final = 0.5
"""The pause before the second start after a failure. Each further failure doubles it."""
LONGEST_PAUSE: Final = 60.0
PATIENCE_SECONDS: Final = 5.0
"""A call waits at most so long for the next start of a server that fails; if the pause is longer, the call fails."""
STABLE_SECONDS: Final = 60.0
"""A process that lived so long did not fail at its start."""
CANCEL_GRACE: Final = 0.3
"""How long a server that may write has to stop its work after a cancellation, before it is ended."""
LIST_PAUSE: Final = 1.0
"""The shortest time between two lists of tools that a server asks haft to fetch."""
LIST_SHARE: Final = 10
"""haft waits so many times as long as the last list took, before it fetches the next one."""
PING_SECONDS: Final = 3.0

NOT_REPEATED: Final = "the call may have had effects, so it was not repeated"

T = TypeVar("T")
Progress = Callable[[str], None]


def _silent(_line: str) -> None:
    return


class McpServer:
    """One configured server, and its connection if there is one."""

    def __init__(
        self,
        provider: Provider,
        kept: ServerDefinitions,
        workspace: str,
        log_path: str,
        launcher: SessionLauncher | None,
        packages: ServerPackages | None,
        trust: StartTrust | None,
        state_home: str,
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        """`changed` is awaited when the server's tools changed."""
        self.provider = provider
        self.kept = kept
        self._workspace = workspace
        self._log = ServerLog(log_path, provider.secrets)
        self._launcher = launcher
        self._packages = packages
        self._trust = trust
        self._state_home = state_home
        self._changed = changed
        self._owner: OwnerTask[Connection] | None = None
        self._calls: dict[RunId, ServerCall] = {}
        self._failures = 0
        self._failed_at = 0.0
        self._started_at = 0.0
        self._listing: asyncio.Task[None] | None = None
        self._list_again = False
        self._telling: set[asyncio.Task[None]] = set()
        self._installed: InstalledServer | None = None
        self._digests: tuple[object, dict[str, str]] = (None, {})
        """The tools of a connection, and the digests of some of them."""
        self._in_doubt: int | None = None
        """The number of messages at a cancellation after which the server was not heard; None if there is no doubt."""
        self.removed: str | None = None
        """Why the server must not be used any more; None if it may be."""

    @cached_property
    def _starting(self) -> asyncio.Lock:
        return asyncio.Lock()

    @cached_property
    def _turn(self) -> asyncio.Lock:
        return asyncio.Lock()

    @property
    def name(self) -> str:
        return self.provider.name

    @property
    def may_write(self) -> bool:
        return bool(self.provider.grants.write)

    def installed(self) -> InstalledServer | None:
        """The server's package; None if the server needs none, or if it is not installed."""
        if self._packages is None or not self._packages.names_package(self.provider):
            return None
        return self._packages.installed(self.provider)

    @property
    def known(self) -> Known | None:
        """What is kept of the server; None if it was never asked."""
        return self.kept.get(self.installed())

    def why_not_start(self) -> str | None:
        """Why the server may not start, and what to do; None if it may."""
        return None if self._trust is None else self._trust.why_not(self.provider)

    @property
    def connection(self) -> Connection | None:
        """The open connection; None if there is none."""
        if self._owner is None or self._owner.is_closed or self._owner.value.is_over:
            return None
        return self._owner.value

    @property
    def session(self) -> Session | None:
        """The process, even if it has just ended; None if there is none."""
        return None if self._owner is None else self._owner.value.session

    @property
    def busy_with(self) -> RunId | None:
        """The run that the server works on, if it answers one call at a time."""
        return next(iter(self._calls), None) if self.may_write else None

    async def started(self) -> Session:
        """The process of a stdio server, which is started if it does not run."""
        session = (await self.connected()).session
        assert session is not None
        return session

    async def connected(self, progress: Progress = _silent) -> Connection:
        """The connection, which is opened if there is none. Raises `HaftError` if that is not possible."""
        if (connection := self.connection) is not None:
            return connection
        return await _apart(self._connected(progress))

    async def _connected(self, progress: Progress) -> Connection:
        async with self._starting:
            if (connection := self.connection) is not None:
                return connection
            if self.removed is not None:
                raise self._error(self.removed)
            await self._close_old()
            await self._wait_for_turn(progress)
            return await self._start(progress)

    async def _wait_for_turn(self, progress: Progress) -> None:
        """Wait before a server that failed is started again."""
        if self._started_at and time.monotonic() - self._started_at < STABLE_SECONDS and not self._failures:
            self._failures = 1
        if self._failures < 2:
            return
        pause = min(FIRST_PAUSE * 2 ** (self._failures - 2), LONGEST_PAUSE)
        left = self._failed_at + pause - time.monotonic()
        if left > PATIENCE_SECONDS:
            raise self._error(
                f"failed {self._failures} times; it is started again in {left:.0f} s",
                hint=f"`haft providers logs {self.name}` shows why; `haft providers restart {self.name}` starts it now",
            )
        if left > 0:
            progress(f"the MCP server {self.name} is started again in {left:.1g} s")
            await asyncio.sleep(left)

    async def _start(self, progress: Progress) -> Connection:
        if self._launcher is None:
            raise self._error("cannot be started: this host calls no tools")
        self._check_start()
        installed = self._installed = await self._install(progress)
        connecting = await _loaded()
        before = self.kept.get(installed)
        try:
            async with asyncio.timeout(START_SECONDS):
                self._owner = await OwnerTask.open(self._open(installed, before), _until_over)
                await self._owner.value.list_tools()
        except Exception as error:
            failure = await self._start_failure(connecting.cause_of(error))
            if installed is not None and installed.note:
                failure.hint = "; ".join(filter(None, (installed.note, failure.hint)))
            await self._close_old()
            self._note_failure()
            if before is None or "problem" in before:
                cure = failure.hint if isinstance(failure, LoginRequired) else None
                self.kept.put(installed, {"problem": failure.message, "cure": cure})
            elif before.get("era") is not None:
                # The server may speak another protocol now: the next start finds out.
                self.kept.put(installed, {**before, "era": None})
            raise failure from None
        except BaseException:
            await self._close_old()
            raise
        if self.removed is not None:
            await self._close_old()
            raise self._error(self.removed)
        self._started_at = time.monotonic()
        self._in_doubt = None
        connection = self._owner.value
        self._keep(installed, connection, before)
        return connection

    def _check_start(self) -> None:
        if self.provider.problem is not None:
            raise self._error(f"cannot be used: {self.provider.problem}")
        if (why := self.why_not_start()) is not None:
            raise self._error(f"was not started: {why}")

    def _keep(self, installed: InstalledServer | None, connection: Connection, before: Known | None) -> None:
        facts = prepared(self.provider, installed, connection.facts())
        if before is None or any(before.get(key) != value for key, value in facts.items()) or "problem" in before:
            self.kept.put(installed, facts)
            self._tell()

    def _tell(self) -> None:
        """Let the catalogue read the server's tools again, soon."""
        task = asyncio.create_task(_ignoring_errors(self._changed()))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _install(self, progress: Progress) -> InstalledServer | None:
        if self._packages is None or not self._packages.names_package(self.provider):
            return None
        found = self._packages.installed(self.provider)
        if found is not None:
            return found
        try:
            return await self._packages.install(self.provider, progress)
        except ToolFailed as error:
            # The other lines are output of the package manager.
            self.kept.put(None, {"problem": error.message.splitlines()[0], "cure": error.hint})
            raise

    @contextlib.asynccontextmanager
    async def _open(self, installed: InstalledServer | None, before: Known | None) -> AsyncIterator[Connection]:
        connecting = _load()
        era = None if before is None else before.get("era")
        options = {
            "is_legacy": isinstance(era, str) and era < "2026",
            "elicit": self._elicit,
            "on_change": self._list_soon,
        }
        if self.provider.transport != "stdio":
            from haft.sources.mcp.remote.http import open_http

            remote = open_http(self.provider, self._state_home)
            try:
                async with connecting.connected(remote, None, None, **options) as connection:
                    connection.remote = remote
                    yield connection
            except Exception as error:
                raise remote.explained(error) or error from None
            return
        assert self._launcher is not None
        from haft.sources.mcp.transport import ServerStreams

        streams = ServerStreams(self._log)
        command = command_of(self.provider, installed, self._workspace)
        self._log.started(self.provider.secrets.masked_text(" ".join(command.argv)))
        try:
            session = await self._launcher.start(command, streams, self.provider.grants, self._current_run)
        except BaseException:
            streams.dispose()
            self._log.ended()
            raise
        try:
            async with connecting.connected(streams.opened(session), session, streams, **options) as connection:
                yield connection
        except Exception as error:
            if connecting.is_closed(error):
                raise await self._ended(session, streams) from None
            raise
        finally:
            await session.end()
            self._log.ended()

    def _current_run(self) -> RunId | None:
        """The newest call: the connections of the process are recorded in it."""
        return next(reversed(self._calls), None) if self._calls else None

    def _note_failure(self) -> None:
        self._failures += 1
        self._failed_at = time.monotonic()

    async def _close_old(self) -> None:
        """Close a connection that is over."""
        owner, self._owner = self._owner, None
        if owner is not None:
            with contextlib.suppress(Exception):
                await owner.close()

    async def _start_failure(self, error: BaseException) -> HaftError:
        connecting = _load()
        if isinstance(error, HaftError):
            return error
        connection = None if self._owner is None else self._owner.value
        if connecting.is_closed(error) and connection is not None and connection.session is not None:
            return await self._ended(connection.session, connection.streams)
        if connection is not None and connection.remote is not None:
            found: HaftError | None = connection.remote.explained(error)
            if found is not None:
                return found
        if isinstance(error, TimeoutError):
            is_local = self.provider.transport == "stdio"
            line = texts.line(self._log.last_line) if is_local else ""
            of_start = " of its start" if is_local else ""
            what = f"did not answer within {START_SECONDS:g} s{of_start}" + (f": {line}" if line else "")
        else:
            what = f"could not be used: {connecting.reason(error)}"
        return self._error(what, hint=self._logs if self.provider.transport == "stdio" else None)

    @property
    def _logs(self) -> str:
        return f"`haft providers logs {self.name}` shows what it wrote"

    async def _ended(self, session: Session, streams: ServerStreams | None) -> HaftError:
        """The error for a process that ended before it answered."""
        if self.removed is not None:
            return self._error(f"{self.removed}, and was ended before it answered")
        line = texts.line(self._log.last_line)
        if streams is not None and streams.trouble is not None:
            return self._error(f"was ended: {streams.trouble}", hint=self._logs)
        waiting = asyncio.ensure_future(session.wait())
        await asyncio.wait([waiting], timeout=1)
        if not waiting.done() or waiting.cancelled():
            waiting.cancel()
            how = "closed the connection before it answered"
        elif (error := waiting.exception()) is not None:
            if isinstance(error, HaftError):
                return error
            how = f"ended before it answered: {error}"
        else:
            end = waiting.result()
            code = f"was ended by signal {end.signal}" if end.signal is not None else f"exited {end.code}"
            how = f"{code} before it answered"
        return self._error(f"{how}: {line}" if line else how, hint=self._logs)

    def _error(self, what: str, hint: str | None = None) -> ToolFailed:
        return ToolFailed(f"the MCP server `{self.name}` {what}", hint=hint)

    async def call(
        self,
        work: Callable[[ServerCall], Awaitable[T]],
        context: ToolContext,
        *,
        is_idempotent: bool = False,
        must_run: bool = False,
    ) -> T:
        """Let the server do one thing for a call. If the process of the server may have got the call and then ended,
        the call is repeated only if it is idempotent. With `must_run`, the server is not started: the changes of
        another process would not be counted as changes of the call."""
        if not self.may_write:
            return await _apart(self._call(work, context, is_idempotent=is_idempotent))
        if self.busy_with is not None and self.busy_with in context.chain:
            raise Deadlock(
                f"the MCP server `{self.name}` was not called: it answers one call at a time, and its current call"
                f" {self.busy_with} waits for this one"
            )
        async with self._turn:
            if must_run and self.connection is None:
                raise self._error("ended before it got the call", hint="call again: haft starts the server anew")
            return await _apart(self._call(work, context, is_idempotent=False))

    async def _call(
        self, work: Callable[[ServerCall], Awaitable[T]], context: ToolContext, *, is_idempotent: bool
    ) -> T:
        connecting = await _loaded()
        from haft.sources.mcp.calls import ServerCall

        for is_last, is_first in ((not is_idempotent, True), (True, False)):
            connection = await self._ready()
            call = ServerCall(self.name, connection, context)
            self._calls[context.run] = call
            session = connection.session
            try:
                if session is not None:
                    session.begin_call()
                    self._log.begin_call(context.run)
                result = await work(call)
                if session is not None:
                    await session.end_call()
            except asyncio.CancelledError:
                self._log.end_call(context.run, abandoned=True)
                await self._after_cancel(connection)
                raise
            except HaftError:
                raise
            except Exception as error:
                if connection.remote is not None and (failed := connection.remote.failure_of(error)) is not None:
                    if failed.kind == "session" and is_first and not call.has_begun:
                        continue  # The server forgot the session, and took no notice of the call.
                    failure = failed.error()
                    raise (_not_repeated(failure) if failed.may_have_arrived or call.has_begun else failure) from None
                if connection.is_over or connecting.is_closed(error):
                    failure = await self._died(connection, error)
                    # Over HTTP, the server may still be working on the call.
                    if is_last or self.removed is not None or session is None:
                        raise failure from None
                    continue
                raise await self._refusal(connection, error, context) from None
            else:
                self._failures = 0
                result = self._with_log(result, context)
                return result if connection.remote is None else _without(connection.remote.secrets, result)
            finally:
                self._calls.pop(context.run, None)
                self._log.end_call(context.run)
        raise AssertionError("unreachable")

    async def _refusal(self, connection: Connection, error: Exception, context: ToolContext) -> HaftError:
        """The error for a call that the server got, and did not carry out."""
        if connection.session is not None:
            await connection.session.end_call()
        failure = self._call_failure(connection, error)
        failure.hint = failure.hint or self._tell_log(context)
        return failure

    def _with_log(self, result: T, context: ToolContext) -> T:
        """A result. If it says that the call failed, it names the log."""
        if not isinstance(result, Answer) or result.failure is None:
            return result
        hint = result.failure.hint or self._tell_log(context)
        return replace(result, failure=replace(result.failure, hint=hint))

    def _tell_log(self, context: ToolContext) -> str | None:
        """Tell the pipeline what the server wrote to its log during a call that failed: servers may keep the reason of
        a failure for themselves. Returns the hint that names the log; None if the server wrote nothing."""
        text, is_shared = self._log.of_call(context.run)
        if not text.strip():
            return None
        context.program_log(text, is_shared=is_shared)
        return self._logs

    def _call_failure(self, connection: Connection, error: Exception) -> HaftError:
        """The error for a call that the server, or the way to it, answered with an error."""
        if connection.remote is not None and (found := connection.remote.explained(error)) is not None:
            return found
        return self._error(f"did not carry out the call: {_load().reason(error)}")

    async def _ready(self) -> Connection:
        """The connection for a call. After a cancelled call of which the server took no notice, haft first makes sure
        that the server still answers."""
        connection = await self.connected()
        streams = connection.streams
        if self._in_doubt is not None and streams is not None and not self._calls and not self.may_write:
            doubt, self._in_doubt = self._in_doubt, None
            if streams.heard == doubt:
                try:
                    async with asyncio.timeout(PING_SECONDS):
                        await connection.client.session.list_tools()
                except Exception:
                    await self.end()
                    connection = await self.connected()
        return connection

    async def _after_cancel(self, connection: Connection) -> None:
        """The call was cancelled, and the server was told. A server that may write is ended, because it might go on
        and write on behalf of the next call."""
        if connection.streams is not None:
            self._in_doubt = connection.streams.heard
        if self.may_write and not connection.is_over:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(CANCEL_GRACE)
            if connection.session is not None:
                await connection.session.end()

    async def _died(self, connection: Connection, cause: Exception) -> HaftError:
        """The error for a call whose server ended before it answered."""
        self._note_failure()
        if connection.session is None:
            words = texts.line(str(cause))
            # Over HTTP, each answer has a stream of its own: other calls go on.
            connection.is_lost = not words.startswith("SSE stream")
            return self._error(f"did not answer: {words}", hint=NOT_REPEATED)
        error = await self._ended(connection.session, connection.streams)
        return _not_repeated(error) if isinstance(error, ToolFailed) else error

    async def _elicit(self, params: Any) -> Any:
        """Answer a request for input that a server of 2025 sends. Such a request does not say for which call it is."""
        import mcp_types as types

        calls = list(self._calls.values())
        if not calls:
            return types.ErrorData(code=types.INVALID_REQUEST, message="there is no call that could need input")
        if len({(call.context.who, call.context.thread) for call in calls}) > 1:
            return types.ErrorData(
                code=types.INVALID_REQUEST, message="calls of several callers are in progress: nobody can be asked"
            )
        return await calls[-1].elicit(params)

    def _list_soon(self) -> None:
        """Fetch the tools again: the server said that they changed."""
        self._list_again = True
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._list_changes())

    async def _list_changes(self) -> None:
        pause = LIST_PAUSE
        while self._list_again and (connection := self.connection) is not None:
            self._list_again = False
            began = time.monotonic()
            try:
                is_changed = await connection.list_tools()
            except Exception:  # The next call finds out what is wrong with the server.
                return
            if is_changed:
                installed = self.installed()
                self._keep(installed, connection, self.kept.get(installed))
            # A long list takes little of haft's time if haft waits much longer than it works.
            await asyncio.sleep(max(pause, LIST_SHARE * (time.monotonic() - began)))
            pause = min(2 * pause, LONGEST_PAUSE)  # A server that says so all the time is asked less and less often.

    def digest_of(self, tool: str) -> str | None:
        """The digest of a tool as the connected server defines it now; None if the server has no such tool."""
        connection = self.connection
        if connection is None or tool not in connection.tools:
            return None
        if self._digests[0] is not connection.tools:
            self._digests = connection.tools, {}
        digests = self._digests[1]
        if tool not in digests:
            one = connection.tools[tool]
            digests[tool] = digest_of(self.provider, self._installed, connection.instructions, one)
        return digests[tool]

    async def describe(self, progress: Progress = _silent) -> Known:
        """Start the server if it does not run, and return what it says about itself."""
        connection = await self.connected(progress)
        return connection.facts()

    async def listed(self, kind: str) -> list[dict[str, Any]]:
        """What the server offers of a kind: `resources`, `templates` or `prompts`, as MCP writes it."""
        connection = await self.connected()
        try:
            async with asyncio.timeout(START_SECONDS):
                return await connection.listed(kind)
        except Exception as error:
            raise self._call_failure(connection, error) from None

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The server's answer to `completion/complete`."""
        connection = await self.connected()
        try:
            async with asyncio.timeout(START_SECONDS):
                return await connection.complete(request)
        except Exception as error:
            raise self._call_failure(connection, error) from None

    async def restart(self, progress: Progress = _silent, *, upgrade: bool = False) -> Known:
        """End the server, and start it again at once, even if it failed before. With `upgrade`, first install the
        newest version of its package; if that fails, the server goes on as it is."""
        if upgrade:
            self._check_start()
            if self._packages is None or not self._packages.names_package(self.provider):
                raise self._error(
                    "has no package that haft installed, so there is nothing to upgrade",
                    hint=f"`haft providers restart {self.name}` starts it again",
                )
            await self._packages.install(self.provider, progress, upgrade=True)
        await self.end()
        self._failures = 0
        return await self.describe(progress)

    async def end(self, why: str | None = None) -> None:
        """Close the connection, and end the process. With `why`, the server is not started again."""
        self.removed = why or self.removed
        for task in (*self._telling, *(() if self._listing is None else (self._listing,))):
            task.cancel()
        owner, self._owner = self._owner, None
        self._started_at = 0.0
        if owner is not None:
            if owner.value.streams is not None:
                owner.value.streams.close()
            with contextlib.suppress(Exception):
                await owner.close()


def _without(secrets: Secrets, result: T) -> T:
    """An answer without the tokens that haft got since the call began. Those that it had before are masked with all
    other secrets."""
    if not secrets.values or not isinstance(result, Answer):
        return result
    failure = result.failure
    if failure is not None:
        failure = replace(failure, message=secrets.masked_text(failure.message))
    return replace(
        result,
        text=None if result.text is None else secrets.masked_text(result.text),
        result=secrets.masked(result.result),
        content=secrets.masked(result.content),
        failure=failure,
    )


def _not_repeated(error: HaftError) -> HaftError:
    """An error whose hint also says that the call was not repeated."""
    error.hint = NOT_REPEATED if error.hint is None else f"{NOT_REPEATED}; {error.hint}"
    return error


async def _ignoring_errors(work: Awaitable[None]) -> None:
    with contextlib.suppress(Exception):
        await work


async def _apart(work: Coroutine[Any, Any, T]) -> T:
    """Do work in a task of its own. Libraries cancel tasks to end their waiting, and the pipeline would take that for a
    cancellation of the call."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        raise
    if task.cancelled():
        raise ToolFailed("the connection to the MCP server was closed")
    return task.result()


async def _until_over(connection: Connection) -> None:
    """Return when the process of a connection ended, or floods haft. Return never for a connection without process."""
    if connection.session is None or connection.streams is None:
        await asyncio.Event().wait()
        return
    ends = [asyncio.ensure_future(connection.session.wait()), asyncio.ensure_future(connection.streams.broken.wait())]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in ends:
            each.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


def _load() -> Any:
    """The module that needs the `mcp` package."""
    from haft.sources.mcp import connection

    return connection


_modules: list[Any] = []
"""The module, once it is imported completely."""


async def _loaded() -> Any:
    """The same module. Importing it takes a second, in which the event loop goes on."""
    if _modules:
        return _modules[0]
    _modules.append(await asyncio.to_thread(_load))
    return _modules[0]


def command_of(provider: Provider, installed: InstalledServer | None, workspace: str) -> Command:
    """The command that starts a stdio server."""
    assert provider.command is not None
    argv = (provider.command, *provider.args) if installed is None else installed.argv
    env = {**_guarded(provider, workspace), **provider.env, **({} if installed is None else installed.env)}
    readable = [*_readable(provider), *(() if installed is None else installed.readable)]
    cwd = "."
    if provider.cwd is not None:
        inside = os.path.relpath(os.path.realpath(provider.cwd), os.path.realpath(workspace))
        if inside == ".." or inside.startswith("../"):
            # The launcher starts programs only in the workspace.
            argv = ("/bin/sh", "-c", 'cd -- "$0" && exec "$@"', provider.cwd, *argv)
            if not _contains(provider.cwd, os.path.realpath(os.path.expanduser("~"))):
                readable.append(provider.cwd)
        else:
            cwd = inside
    keeps = () if installed is None else installed.keeps
    return Command(list(argv), cwd=cwd, env=env, readable=tuple(dict.fromkeys(readable)), keeps=keeps)


def _guarded(provider: Provider, workspace: str) -> dict[str, str]:
    """Variables that keep Python from loading modules of the workspace. `python -m NAME` looks for all modules first in
    the directory in which it starts, so a module of any workspace would run in a server of the user, with its secrets.
    If the person trusted a file of the workspace, or if a script beside its modules is started, they are needed."""
    words = [word for each in provider.args for word in each.split()]
    root = f"{os.path.realpath(workspace)}/"
    is_of_user = provider.provenance == "user" and provider.skill is None
    is_module = any(word.startswith(("-m", "-c")) for word in words) and not any(map(_is_python, words))
    is_trusted = any(path.startswith(root) for path in filter(_is_python, provider.files))
    starts_inside = f"{os.path.realpath(provider.cwd or workspace)}/".startswith(root)
    return {"PYTHONSAFEPATH": "1"} if is_of_user and is_module and starts_inside and not is_trusted else {}


def _is_python(path: str) -> bool:
    return path.endswith(".py")


MARKERS: Final = ("package.json", "pyproject.toml", "pyvenv.cfg", "Cargo.toml", "go.mod", "deno.json")
MOST_ABOVE: Final = 6
CODE_ENDINGS: Final = (
    *(".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".rb", ".pl", ".php", ".sh", ".jar", ".dll"),
    *(f"/{each}" for each in MARKERS),
)


def _readable(provider: Provider) -> list[str]:
    """What the program of a server needs to read besides the system: the files that its command names, and the
    packages that they belong to. Never a directory that contains the home directory."""
    found: list[str] = []
    command = provider.command or ""
    for path in (*provider.files, *((command,) if os.path.isabs(command) else ())):
        for each in dict.fromkeys((path, os.path.realpath(path))):
            found.append(each)
            if path == command or _is_code(each):
                found += _package_of(each)
    return found


def _is_code(path: str) -> bool:
    """Whether a file is run, so that it needs the files around it. The files around any other file may be secrets: an
    argument such as `~/.aws/config` opens no other file."""
    return path.endswith(CODE_ENDINGS) or os.access(path, os.X_OK)


def _package_of(path: str) -> list[str]:
    """The directory of a file, and the directory of the package or the installation that the file belongs to."""
    home = os.path.realpath(os.path.expanduser("~"))
    folder = os.path.dirname(path)
    found = [] if _contains(folder, home) else [folder]
    above = os.path.dirname(folder)
    if os.path.basename(folder) == "bin" and not _contains(above, home) and above != os.path.join(home, ".local"):
        found.append(above)  # Programs find their libraries beside their directory.
    for _ in range(MOST_ABOVE):
        if _contains(folder, home) or folder == "/":
            break
        if any(os.path.exists(os.path.join(folder, each)) for each in MARKERS):
            return [*found, folder]
        folder = os.path.dirname(folder)
    return found


def _contains(folder: str, home: str) -> bool:
    return f"{home}/".startswith(f"{os.path.realpath(folder).rstrip('/')}/")
