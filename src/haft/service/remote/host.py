"""What the facades of one service on a server share: the connection, the workspace, who the token stands for, and the
runs that the service started."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any, Final

from haft.contracts import (
    BadUsage,
    CallError,
    Grants,
    HaftError,
    Outcome,
    Principal,
    RunId,
    ThreadId,
    ToolName,
    UnknownWorkspace,
    grants_from,
    near_miss,
    new_run_id,
    new_thread_id,
)
from haft.service.call_arguments import check_call
from haft.service.remote.approvals import RemoteApprovals
from haft.service.remote.connection import ServerConnection, closed, part
from haft.service.remote.facades import RemoteAudit, RemoteBatches, RemoteChanges, RemoteRuns, RemoteTools
from haft.service.remote.feed import Feed
from haft.service.remote.not_remote import not_remote
from haft.service.remote.run import RemoteRun, RunContext

DEFAULT_WORKSPACE: Final = "default"
_WAIT_SECONDS: Final = 20.0
_MOST_WAITING: Final = 48
"""With so many requests that wait for calls, further ones do not wait: the feed tells when their calls end."""
_OPTIONS: Final = frozenset(
    {
        *("thread", "who", "parent", "timeout", "cwd", "env", "config", "grants", "isolation", "uses_cache"),
        *("rights", "attachment", "key"),
    }
)
_REAL_SKEW: Final = 5.0
"""The server tells its time in whole seconds, and late."""


class RemoteHost:
    """One workspace of a server."""

    def __init__(self, connection: ServerConnection, workspace: str | None, thread: str | None) -> None:
        self.connection = connection
        self._wanted = workspace
        self.thread = ThreadId(thread) if thread else new_thread_id()
        self.started: dict[RunId, RemoteRun] = {}
        """The runs that this service started, by their ids, as far as these are known."""
        self.followed: set[RemoteRun] = set()
        """All runs of which this service may still learn something."""
        self._waiting = 0
        self._facts: dict[str, Any] | None = None
        self._workspace: dict[str, Any] | None = None

    async def open(self) -> None:
        """Ask the server who the token stands for, and choose the workspace."""
        self.connection.open()
        try:
            before = time.time()
            self._facts, date = await self.connection.ask_dated("/me")
            self._learn_skew(date, before)
            listed = (await self.connection.ask("GET", "/workspaces"))["workspaces"]
            self._workspace = _chosen(self._wanted, listed, self.name)
        except BaseException:
            await self.connection.close()
            raise

    def _learn_skew(self, date: str | None, before: float) -> None:
        if date is not None and (parsed := email.utils.parsedate_to_datetime(date)) is not None:
            skew = parsed.timestamp() + 0.5 - (before + time.time()) / 2
            self.connection.skew = skew if abs(skew) > _REAL_SKEW else 0.0

    async def close(self, *, keeps_runs: bool) -> None:
        """Cancel the runs that this service started, unless `keeps_runs`, and end all requests."""
        if self._facts is None:
            return
        open_runs = [run for run in self.followed if not run.has_ended]
        own = [] if keeps_runs else [run for run in open_runs if run.is_own]
        await asyncio.gather(*(run.end() for run in own))
        await asyncio.gather(*(run.abandon() for run in open_runs))
        await self.feed.close()
        await self.connection.close()
        self._facts = self._workspace = None

    @property
    def facts(self) -> dict[str, Any]:
        """Who the token stands for. Raises `BadConfig` if the service is not open."""
        if self._facts is None:
            raise closed()
        return self._facts

    @property
    def workspace(self) -> dict[str, Any]:
        """The name and the path of the workspace."""
        if self._workspace is None:
            raise closed()
        return self._workspace

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    def may(self, action: str) -> bool:
        """Whether the token allows an action."""
        return action in self.facts["actions"]

    @property
    def principal(self) -> Principal:
        """Who the token stands for."""
        return Principal(self.name, self.thread, self.facts["kind"])

    @property
    def path(self) -> str:
        """The path of the workspace, below `/api/v1`."""
        return f"/workspaces/{part(self.workspace['name'])}"

    async def ask(self, method: str, path: str, **options: Any) -> Any:
        """Make a request to the workspace."""
        return await self.connection.ask(method, self.path + path, **options)

    # What the facades use.

    @cached_property
    def feed(self) -> Feed:
        return Feed(self.connection, self.path)

    @cached_property
    def approvals(self) -> RemoteApprovals:
        return RemoteApprovals(self.connection, self.path)

    @cached_property
    def context(self) -> RunContext:
        approvals = self.approvals
        return RunContext(self.connection, self.feed, self.path, approvals.asked_below, approvals.give)

    @cached_property
    def runs(self) -> RemoteRuns:
        return RemoteRuns(self)

    @cached_property
    def changes(self) -> RemoteChanges:
        return RemoteChanges(self)

    @cached_property
    def tools(self) -> RemoteTools:
        return RemoteTools(self)

    @cached_property
    def batches(self) -> RemoteBatches:
        return RemoteBatches(self)

    @cached_property
    def audit(self) -> RemoteAudit:
        return RemoteAudit(self.connection)

    def in_thread(self, thread: str | None) -> dict[str, str]:
        """The thread of a request."""
        return {"thread": str(thread or self.thread)}

    def check_who(self, who: str | Principal | None) -> None:
        """Raise `BadUsage` if somebody else should act than the one whom the token stands for."""
        name = who.who if isinstance(who, Principal) else who
        if name is not None and name != self.name:
            raise BadUsage(
                f"on a server, the token says who acts: this one is {self.name}'s, so {name!r} cannot act",
                hint="connect with the other's token",
            )

    # Calls.

    def new_id(self) -> RunId:
        """A new run id, by the clock of the server: later ids sort after earlier ones."""
        skewed = int(new_run_id()[2:], 16) + (int(self.connection.skew * 1000) << 52)
        return RunId(f"r_{skewed:024x}")

    def check(self, name: str, arguments: Any, options: Mapping[str, Any]) -> None:
        """Raise `BadUsage` if something is wrong with a call before the server sees it."""
        for option in options:
            if option not in _OPTIONS:
                raise TypeError(f"a call on a server has no option {option!r}")
        for option in ("rights", "attachment", "key"):
            if options.get(option) is not None:
                hint = "a token with fewer tools has fewer rights" if option == "rights" else "call without it"
                raise not_remote(f"call(…, {option}=…)", hint)
        self.check_who(options.get("who"))
        cwd = options.get("cwd")
        check_call(
            name,
            arguments,
            timeout=options.get("timeout"),
            cwd="." if cwd is None else cwd,
            env=options.get("env"),
            config=options.get("config"),
            grants=options.get("grants"),
            isolation=options.get("isolation"),
        )

    def how(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of calls, as the API has them."""
        who = options.get("who")
        of_principal = who.thread if isinstance(who, Principal) else None
        grants = grants_from(options.get("grants"))
        how = {
            **self.in_thread(options.get("thread") or of_principal),
            "timeout": options.get("timeout"),
            "cwd": options.get("cwd"),
            "env": None if options.get("env") is None else dict(options["env"]),
            "config": None if options.get("config") is None else dict(options["config"]),
            "grants": None if grants == Grants() else {k: v for k, v in grants.to_json().items() if v},
            "isolation": options.get("isolation"),
            "parent": options.get("parent"),
        }
        if not options.get("uses_cache", True):
            how["usesCache"] = False
        return {name: value for name, value in how.items() if value is not None}

    async def post(self, path: str, body: Mapping[str, Any], key: RunId) -> dict[str, Any]:
        """Make a request that starts calls, and wait for a while for their end. It is safe to lose the answer: the same
        request made again gets the same runs."""
        wait = _WAIT_SECONDS if self._waiting < _MOST_WAITING else 0.0
        self._waiting += 1
        try:
            answer: dict[str, Any] = await self.ask("POST", path, body={**body, "wait": wait}, key=key, waits=wait)
            return answer
        finally:
            self._waiting -= 1

    def begin(self, run: RemoteRun, start: Callable[[RemoteRun], Awaitable[None]]) -> RemoteRun:
        """Start a run: `start` makes the request."""
        _ = self.facts  # Raises if the service is not open.
        self.followed = {each for each in self.followed if not each.has_ended}
        self.followed.add(run)
        if run.has_id:
            self.started = {name: each for name, each in self.started.items() if not each.has_ended}
            self.started[run.id] = run

        async def begin(run: RemoteRun) -> None:
            try:
                await start(run)
            except CallError as error:
                self.refused(run, error)
            except HaftError as error:
                if error.code != "key-in-use":
                    raise
                run.follow()  # The server still works on the first request of which the answer was lost.

        run.begin(begin)
        return run

    def refused(self, run: RemoteRun, error: CallError) -> None:
        """The server refused a call in a way that the embedded service shows as its outcome."""
        if run.has_id:
            error_of, now = error.failure(), time.time()
            run.finish(
                Outcome(
                    run.id, ToolName(run.tool_name), "error", self.name, self.thread, error=error_of, started_at=now
                )
            )
        else:
            run.fail(error)


def _chosen(wanted: str | None, listed: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The workspace that is used. Raises `UnknownWorkspace`, or `BadUsage` if none was named and there are several."""
    names = [each["name"] for each in listed]
    if wanted is None and len(listed) == 1:
        return listed[0]
    for each in listed:
        if each["name"] == (wanted or DEFAULT_WORKSPACE):
            return each
    if wanted is not None:
        raise UnknownWorkspace(wanted, near_miss(wanted, names))
    if not names:
        raise BadUsage(f"{name} may enter no workspace of this server")
    raise BadUsage(
        "the server has several workspaces: name one", hint=f"pass `workspace=`; they are {', '.join(names)}"
    )
