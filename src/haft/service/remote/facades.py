"""The facades of a service on a server: runs, changes, tools, batches, the audit log. Their methods have the names of
the embedded service's, and all that ask the server are awaited."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import orjson

from haft.audit import Verdict
from haft.contracts import (
    RUN_ID,
    AmbiguousRun,
    BadUsage,
    Listing,
    Principal,
    RunId,
    UnknownRun,
    UnknownTool,
    new_run_id,
    outcome_from,
)
from haft.pipeline import BatchPlan, read_calls
from haft.service.facades.runs import wanted_runs
from haft.service.output_pages import OutputPage
from haft.service.remote.batch import RemoteBatch
from haft.service.remote.connection import ServerConnection, part
from haft.service.remote.not_remote import not_remote
from haft.service.remote.run import RemoteRun
from haft.service.remote.shapes import listing_from, plan_from, record_from, reversal_from

if TYPE_CHECKING:
    from haft.changes import Direction, ReversalResult
    from haft.runs import RunRecord
    from haft.service.remote.host import RemoteHost

_MOST_ON_A_PAGE: Final = 200
_WAIT_SECONDS: Final = 20.0


class RemoteRuns:
    """The runs of a workspace of a server. Calling this object lists them."""

    def __init__(self, host: RemoteHost) -> None:
        self._host = host

    async def __call__(self, **wanted: Any) -> list[RunRecord]:
        """The runs that the token may see, the newest first; filter by tool, status, who, thread, parent, batch, path,
        host, since, is_open, before, limit."""
        found = wanted_runs(wanted)
        for name in ("key", "workspace"):
            if getattr(found, name) is not None:
                raise not_remote(f"runs(…, {name}=…)", "a service on a server lists the runs of its workspace")
        names = ("tool", "status", "who", "thread", "parent", "batch", "path", "host", "since")
        query = {name: value for name in names if (value := getattr(found, name)) is not None}
        if found.is_open is not None:
            query["open"] = "true" if found.is_open else "false"
        cursor, left, runs = found.before, found.limit, list["RunRecord"]()
        while left > 0:
            page = {**query, "limit": min(left, _MOST_ON_A_PAGE), **({} if cursor is None else {"cursor": cursor})}
            answer = await self._host.ask("GET", "/runs", query=page)
            runs += [record_from(each) for each in answer["runs"]]
            cursor, left = answer["next"], found.limit - len(runs)
            if cursor is None:
                break
        return runs

    find = __call__

    def live(self, run: str) -> RemoteRun | None:
        """The run with this id, if this service started it and does not know yet that it has ended."""
        found = self._host.started.get(RunId(run))
        return None if found is None or found.has_ended else found

    async def get(self, run: str) -> RemoteRun | RunRecord:
        """The run with this id: a run to await if it has not ended, else its stored record."""
        live = self.live(run)
        if live is not None:
            with contextlib.suppress(UnknownRun):  # The server may not know it yet.
                await live.refresh()
            return live
        record = record_from(await self._host.ask("GET", f"/runs/{await self.whole_id(run)}"))
        if not record.is_open:
            return record
        made = RemoteRun(self._host.context, record.id, record.tool, status=record.status, is_own=False)
        made.follow()
        self._host.followed.add(made)
        return made

    one = get

    async def whole_id(self, name: str) -> str:
        """The id of the run that begins with `name`. Raises `UnknownRun`, or `AmbiguousRun` if there are several."""
        if RUN_ID.fullmatch(name):
            return name
        highest = name.ljust(26, "f")
        if not RUN_ID.fullmatch(highest):
            raise UnknownRun(name)
        answer = await self._host.ask("GET", "/runs", query={"cursor": highest, "limit": 6})
        found = [each for each in answer["runs"] if each["id"].startswith(name)]
        if len(found) > 1:
            raise AmbiguousRun(name, [f"{each['id']} ({each['tool']}, {each['startedAt']})" for each in found])
        if not found:
            raise UnknownRun(name)
        return str(found[0]["id"])

    async def output(self, run: str, offset: int = 0) -> OutputPage:
        """The stored output of a run from byte `offset` on, as much as fits on a page."""
        path = f"/runs/{await self.whole_id(run)}"
        page, record = await asyncio.gather(
            self._host.ask("GET", f"{path}/output", query={"offset": offset}), self._host.ask("GET", path)
        )
        return OutputPage(page["output"], page["next"], page["bytes"], record_from(record))

    async def cancel(self, run: str, *, who: str | Principal | None = None) -> bool:
        """Cancel a run. Returns False if it had already ended."""
        self._host.check_who(who)
        live = self.live(run)
        if live is not None:
            return await live.cancel()
        answer = await self._host.ask("POST", f"/runs/{await self.whole_id(run)}/cancel", is_repeatable=True)
        return bool(answer["cancelled"])


class RemoteChanges:
    """The changes of the runs of a workspace of a server."""

    def __init__(self, host: RemoteHost) -> None:
        self._host = host

    def undo(
        self, *runs: str, thread: str | None = None, force: bool = False, who: str | Principal | None = None
    ) -> RemoteRun:
        """Undo the changes of runs: see `ToolService.undo`. What the server refuses is raised when the run is
        awaited."""
        self._host.check_who(who)
        return self._reverse("undo", runs, thread=thread, force=force)

    def redo(self, *runs: str, force: bool = False, who: str | Principal | None = None) -> RemoteRun:
        """Redo the changes of runs that were undone."""
        self._host.check_who(who)
        return self._reverse("redo", runs, thread=None, force=force)

    def _reverse(self, direction: Direction, runs: Sequence[str], *, thread: str | None, force: bool) -> RemoteRun:
        async def start(run: RemoteRun) -> None:
            body = await self._body(runs, thread, force=force)
            await self._settle(run, f"/{direction}", body, "undo")

        return self._host.begin(RemoteRun(self._host.context, None, direction), start)

    async def _body(self, runs: Sequence[str], thread: str | None, *, force: bool) -> dict[str, Any]:
        whole = [name if name.startswith("b_") else await self._host.runs.whole_id(name) for name in runs]
        return {"runs": whole, "force": force, **({} if thread is None else {"thread": thread})}

    def apply(self, run: str, *, paths: Sequence[str] = (), who: str | Principal | None = None) -> RemoteRun:
        """Apply the held changes of a run; with `paths`, only those of these paths and of everything below them."""
        return self._settled("apply", run, {"paths": list(paths)}, who)

    def drop(self, run: str, *, who: str | Principal | None = None) -> RemoteRun:
        """Drop the held changes of a run."""
        return self._settled("drop", run, {}, who)

    def _settled(self, verb: str, name: str, body: dict[str, Any], who: str | Principal | None) -> RemoteRun:
        self._host.check_who(who)

        async def start(run: RemoteRun) -> None:
            whole = await self._host.runs.whole_id(name)
            await self._settle(run, f"/runs/{whole}/{verb}", body, "settledBy")

        return self._host.begin(RemoteRun(self._host.context, None, verb), start)

    async def _settle(self, run: RemoteRun, path: str, body: dict[str, Any], told_as: str) -> None:
        body = {**body, "wait": _WAIT_SECONDS}
        answer = await self._host.ask("POST", path, body=body, key=new_run_id(), waits=_WAIT_SECONDS)
        run.know(RunId(answer[told_as]))
        if answer["ended"]:
            record = record_from(await self._host.ask("GET", f"/runs/{run.id}"))
            run.finish(outcome_from(record.outcome))
        else:
            run.follow()

    async def plan(
        self, direction: Direction, *runs: str, thread: str | None = None, force: bool = False
    ) -> ReversalResult:
        """What an undo or redo would do, without doing it."""
        body = {**await self._body(runs, thread, force=force), "plan": True}
        return reversal_from(await self._host.ask("POST", f"/{direction}", body=body, is_repeatable=True))

    async def diff(self, run: str) -> str:
        """The changes of a run as a patch. Raises `BadUsage` if the run changed nothing."""
        whole = await self._host.runs.whole_id(run)
        answer = await self._host.ask("GET", f"/runs/{whole}/diff")
        if not answer["files"]:
            raise BadUsage(f"there is nothing to show in {whole}: it changed nothing")
        return "".join(each["diff"] or "" for each in answer["files"])

    def merge(self, run: str) -> NoReturn:
        """Not for a service on a server."""
        raise not_remote("changes.merge", "`haft changes apply RUN --merge` does it on the server's machine")

    apply_merge = merge


class RemoteTools:
    """The tools of a workspace of a server. Calling this object lists them."""

    def __init__(self, host: RemoteHost) -> None:
        self._host = host

    async def __call__(self, *, all: bool = False, thread: str | None = None) -> list[Listing]:  # noqa: A002  as `--all`
        """The tools that the token may call. With `all`, also the tools that cannot be called, each with the reason."""
        query = {"all": "true" if all else "false", **self._host.in_thread(thread)}
        return [listing_from(each) for each in (await self._host.ask("GET", "/tools", query=query))["tools"]]

    async def as_form(self, form: str, *, thread: str | None = None) -> list[dict[str, Any]]:
        """The definitions of the tools for the API of a model provider."""
        query = {"form": form, **self._host.in_thread(thread)}
        found: list[dict[str, Any]] = (await self._host.ask("GET", "/definitions", query=query))["definitions"]
        return found

    async def look_again(self, name: str) -> Listing | None:
        """The tool with this name if it can be called now, else None. The server itself notices tools that change."""
        try:
            found = listing_from(await self._host.ask("GET", f"/tools/{part(name)}"))
        except UnknownTool:
            return None
        return found if found.enabled else None

    async def watch(self) -> AsyncIterator[list[Listing]]:
        """Yield the list of tools now, and again after every change."""
        last: list[Listing] | None = None
        async for _ in self._host.feed.changes("tools"):
            found = await self()
            if found != last:
                last = found
                yield found

    def add(self, tool: object) -> NoReturn:
        """Not for a service on a server."""
        raise not_remote(
            "add",
            "Python tools run where the server is: put the tool there, or offer it from here as an MCP server, which"
            " the server's configuration names in [providers]",
        )

    def remove(self, name: str) -> NoReturn:
        """Not for a service on a server."""
        raise not_remote("remove", "`tools.disable` in the server's configuration disables a tool")

    def load(self, path: str, **_options: Any) -> NoReturn:
        """Not for a service on a server."""
        raise not_remote("load", "put the tool into a toolbox of the server")


class RemoteBatches:
    """The batches of a workspace of a server."""

    def __init__(self, host: RemoteHost) -> None:
        self._host = host

    def start(self, calls: Iterable[Any], **options: Any) -> RemoteBatch:
        """Make the calls of a batch: see `ToolService.batch`."""
        read = read_calls(calls)
        for call in read:
            self._host.check(call.tool, call.arguments, {**options, "timeout": call.timeout or options.get("timeout")})
        body = self._host.how(options)
        runs = [RemoteRun(self._host.context, self._host.new_id(), call.tool) for call in read]
        batch = RemoteBatch(read, runs)
        default = options.get("timeout")
        body |= {"calls": [_call_json(call, default) for call in read], "runIds": [run.id for run in runs]}
        answer: asyncio.Future[dict[str, Any]] = asyncio.ensure_future(self._host.post("/batches", body, runs[0].id))

        async def start(run: RemoteRun) -> None:
            found = await asyncio.shield(answer)
            batch.know(found["batch"])
            run.take(next(each for each in found["outcomes"] if each["run"] == run.id))

        for run in runs:
            self._host.begin(run, start)
        return batch

    async def plan(self, calls: Iterable[Any], *, thread: str | None = None, cwd: str | None = None) -> BatchPlan:
        """The order in which the calls of a batch would run. Calls no tool, and asks nobody."""
        read = read_calls(calls)
        if not read:
            return BatchPlan(())
        body = {"calls": [_call_json(call, None) for call in read], **self._host.in_thread(thread)}
        answer = await self._host.ask("POST", "/batch-plans", body={**body, "cwd": cwd}, is_repeatable=True)
        return plan_from(answer, read)

    async def cancel(self, batch: str, *, who: str | Principal | None = None) -> bool:
        """Cancel a batch. Returns False if all its calls had ended."""
        self._host.check_who(who)
        answer = await self._host.ask("POST", f"/batches/{part(batch)}/cancel", is_repeatable=True)
        return bool(answer["cancelled"])


def _call_json(call: Any, timeout: float | None) -> dict[str, Any]:
    shape = {"tool": call.tool, "args": call.arguments, "id": call.id, "after": list(call.after)}
    seconds = timeout if call.timeout is None else call.timeout
    return shape if seconds is None else {**shape, "timeout": seconds}


class RemoteAudit:
    """The audit log of a server."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def verify(self, *, since_checkpoint: bool = False) -> Verdict:
        """Check every entry. With `since_checkpoint`, check only the entries after the last one that an earlier check
        found intact."""
        body = {"sinceCheckpoint": since_checkpoint}
        form = await self._connection.ask("POST", "/audit/verify", body=body, is_repeatable=True)
        return Verdict(**{**form, "torn": tuple(form["torn"])})

    async def last(self, limit: int = 50) -> list[dict[str, Any]]:
        """The last entries, the newest first."""
        entries: list[dict[str, Any]] = []
        query: dict[str, Any] = {}
        while len(entries) < limit:
            query["limit"] = min(limit - len(entries), 1000)
            page = await self._connection.ask("GET", "/audit", query=query)
            entries += page["entries"]
            if page["next"] is None:
                break
            query["cursor"] = page["next"]
        return entries

    async def entries(self) -> AsyncIterator[dict[str, Any]]:
        """All entries, the oldest first."""
        async with self._connection.lines("/audit/export") as lines:
            async for line in lines:
                if line:
                    yield orjson.loads(line)
