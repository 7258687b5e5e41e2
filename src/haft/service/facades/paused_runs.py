"""Paused runs as one host resumes them: its own, and those whose host has ended, which it takes over."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

from haft.contracts import ApprovalAnswer, BadUsage, RunId, UnknownRequest
from haft.pipeline import Pause, Resumed, Run
from haft.policy import Inbox, Waiting
from haft.runs import Filter, History, RunRecord, asked_by, call_from
from haft.service.assembly import Host
from haft.service.inbox import to_json
from haft.service.paused_runs import cannot_resume, end_waiting, is_waiting, open_tree, root_of
from haft.service.recovery import recover_into
from haft.storage import open_stores
from haft.values import dataclass

_ALL: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class AskedNow:
    """What a paused run asks a person."""

    waiting: Waiting
    is_only: bool
    """Whether nothing else has been asked for the outermost run before."""

    def to_json(self) -> dict[str, Any]:
        """The request as `haft inbox --json` prints it."""
        return to_json(self.waiting)


class HostPausedRuns:
    """The paused runs of a state home, for one host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._endings: set[asyncio.Task[None]] = set()

    async def find(self, key: str) -> Run | RunRecord | None:
        """The latest run whose caller gave it this key: live in this host, or its record; None if there is none."""
        live = [run for run in self._host.running().live.values() if run.call.key == key]
        if live:
            return live[-1]
        return next(iter(await self._host.with_history(lambda history: history.runs(Filter(key=key, limit=1)))), None)

    async def has_paused(self, record: RunRecord) -> bool:
        """Whether a run, or a run below it, has asked a person."""

        def has_paused(history: History) -> bool:
            tree = (record, *(history.find(name) for name in history.made_by(record.id)))
            return any(event.status == "blocked-on-user" for each in tree for event in each.states())

        return await self._host.with_history(has_paused)

    async def asked(self, run: str) -> AskedNow | None:
        """What a run, or the first run below it, asks a person now, whether or not its host is alive; None if nothing
        waits for an answer."""
        return await self._host.with_history(lambda history: self._asked(history, run))

    def _asked(self, history: History, run: str) -> AskedNow | None:
        record = history.find(run)
        below = [history.find(name) for name in history.made_by(record.id)]
        times = sum(event.status == "blocked-on-user" for each in (record, *below) for event in each.states()[:2])
        with contextlib.closing(open_stores(self._host.home).connect()) as connection:
            inbox = Inbox(connection)
            for each in (record, *below):
                asked = asked_by(each) if each.is_open else None
                # A host may be killed after it has stored the run, and before the request is in the inbox.
                with contextlib.suppress(UnknownRequest):
                    if asked is not None and (waiting := inbox.find(asked.request)).state == "open":
                        return AskedNow(waiting, is_only=times == 1)
        return None

    async def resume_all(self, key: str) -> list[Run]:
        """Go on with all paused runs of this workspace whose callers gave them this key, and whose host has ended. They
        ask again, unless somebody has answered meanwhile."""
        found = await self._host.with_history(
            lambda history: history.runs(
                Filter(key=key, workspace=self._host.workspace, status="blocked-on-user", is_open=True, limit=_ALL)
            )
        )
        resumed = []
        for record in reversed(found):
            if record.parent is None and await asyncio.to_thread(is_waiting, self._host.home, record):
                with contextlib.suppress(BadUsage):  # Another process has taken it over meanwhile.
                    resumed.append(await self.resume(record.id))
        return resumed

    async def resume(self, name: str, answer: ApprovalAnswer | None = None, request: str | None = None) -> Run:
        """Go on with a paused run: see `ToolService.resume`."""
        pipeline = self._host.running()
        if answer is not None and answer.approved and pipeline.within() is not None:
            self._host.acting(None).must_be_person("approve")  # The code of a tool has the rights of its caller.
        live = pipeline.live.get(RunId(name))
        if live is not None:
            return self._answered(live, answer, request)
        root, below = await asyncio.to_thread(self._take_over, name, answer, request)
        for record, resumed in below:
            pipeline.take_over(record, resumed)
        pipeline.take_over(*root)
        run = pipeline.call(call_from(root[0], self._host.known()), pauses=True)
        if below:
            self._endings.add(ending := asyncio.ensure_future(self._end_left_over(run, [each for each, _ in below])))
            ending.add_done_callback(self._endings.discard)
        return run

    def _answered(self, run: Run, answer: ApprovalAnswer | None, request: str | None) -> Run:
        """The outermost run of a live run, after the request that waits was answered."""
        if run.pausing is None:
            raise BadUsage(f"{run.id} cannot be resumed: its call was not made with `pauses=True`")
        pauses = run.pausing.pauses
        root = self._host.running().live.get(pauses.root, run)
        if answer is not None:
            fitting = (each for each in pauses.open if run.id in (each.run, root.id))
            _one([each for each in fitting if request in (None, each.request.id)], root.id, answer)
        return root

    def _take_over(
        self, name: str, answer: ApprovalAnswer | None, request: str | None
    ) -> tuple[tuple[RunRecord, Resumed | None], list[tuple[RunRecord, Resumed | None]]]:
        """Take over a run, all runs above it, and all runs below them that have not ended: the outermost one and the
        others, each with the answer that it got. Raises `BadUsage` if another process has them."""
        host = self._host
        recover_into(host.home, host.lease, lambda: host.trail)
        with contextlib.closing(History(host.home)) as history:
            record = history.find(name)
            root = root_of(history, record)
            tree = open_tree(history, root)
        if not is_waiting(host.home, record):
            raise cannot_resume(record, record.id)
        if record.record["workspace"] != host.root.root:
            raise BadUsage(
                f"{record.id} belongs to the workspace {record.record['workspace']}", hint="open a service there"
            )
        asking = {each.id: asked for each in tree if (asked := asked_by(each)) is not None}
        fitting = [each for each in asking if record.id in (each, root.id)]
        if request is not None:
            fitting = [each for each in fitting if asking[each].request == request]
        elif answer is not None and len(fitting) != 1:
            raise BadUsage(_several(root.id, fitting))
        with contextlib.closing(open_stores(host.home).connect(host.lease)) as connection:
            if not connection.runs.take_over([each.id for each in tree], root.host, host.lease.host):
                raise cannot_resume(root, record.id)
            inbox = Inbox(connection)
            resumed: dict[RunId, Resumed] = {}
            for each, asked in asking.items():
                known = None if inbox.end(asked.request) else inbox.answer_to(asked.request)
                inbox.end(asked.request, "taken")
                resumed[each] = Resumed(asked, answer if [each] == fitting else None, known)
        return (tree[0], resumed.get(tree[0].id)), [(each, resumed.get(each.id)) for each in tree[1:]]

    async def _end_left_over(self, run: Run, below: list[RunRecord]) -> None:
        """When a run that was taken over has ended, end those below it that it did not go on with."""
        outcome = await run
        left = self._host.forget_taken_over(each.id for each in below)
        if outcome.status != "blocked-on-user":  # Then this host ends, and another one goes on with all of them.
            for record in left:
                own = RunRecord(record.record, {**record.rest, "host": self._host.lease.host})
                await asyncio.to_thread(end_waiting, self._host.home, own, "cancelled", self._host.principal)


def _one(pauses: list[Pause], root: RunId, answer: ApprovalAnswer) -> None:
    """Give an answer to the only pause that waits. If none waits, somebody has answered it before."""
    if len(pauses) > 1:
        raise BadUsage(_several(root, [each.run for each in pauses]))
    if pauses:
        pauses[0].answer(answer)


def _several(root: RunId, runs: list[RunId]) -> str:
    if not runs:
        return f"{root} asks nothing that could be answered"
    return f"{len(runs)} runs below {root} wait for an answer: resume one of {', '.join(runs)}"
