"""Paused runs as one host resumes them: its own, and those whose host has ended, which it takes over."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from haft.contracts import ApprovalAnswer, BadUsage, RunId, UnknownRequest
from haft.pipeline import Pause, Resumed, Run
from haft.policy import Inbox
from haft.runs import Filter, History, RunRecord, asked_by, call_from
from haft.service.assembly import Host
from haft.service.inbox import to_json
from haft.service.paused_runs import cannot_resume, end_waiting, is_waiting, open_tree, root_of
from haft.service.recovery import recover_into
from haft.storage import open_stores


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

    async def shown(self, run: str) -> dict[str, Any] | None:
        """What a run that waits for a person asks, as `haft inbox --json` shows it; None if it asks nothing. For the
        outermost of several runs, what the first run below it asks."""
        return await self._host.with_history(lambda history: self._shown(history, run))

    def _shown(self, history: History, run: str) -> dict[str, Any] | None:
        asked = [one for each in open_tree(history, history.find(run)) if (one := asked_by(each)) is not None]
        opened = contextlib.closing(open_stores(self._host.home).connect())
        # A host may be killed after it has stored the run, and before the request is in the inbox.
        with opened as connection, contextlib.suppress(UnknownRequest):
            return to_json(Inbox(connection).find(asked[0].request)) if asked else None
        return None

    async def resume(self, name: str, answer: ApprovalAnswer | None = None) -> Run:
        """Go on with a paused run: see `ToolService.resume`."""
        pipeline = self._host.running()
        live = pipeline.live.get(RunId(name))
        if live is not None:
            return self._answered(live, answer)
        root, below = await asyncio.to_thread(self._take_over, name, answer)
        for record, resumed in below:
            pipeline.take_over(record, resumed)
        pipeline.take_over(*root)
        run = pipeline.call(call_from(root[0], self._host.known()), pauses=True)
        if below:
            self._endings.add(ending := asyncio.ensure_future(self._end_left_over(run, [each for each, _ in below])))
            ending.add_done_callback(self._endings.discard)
        return run

    def _answered(self, run: Run, answer: ApprovalAnswer | None) -> Run:
        """The outermost run of a live run, after the request that waits was answered."""
        if run.pausing is None:
            raise BadUsage(f"{run.id} cannot be resumed: its call was not made with `pauses=True`")
        pauses = run.pausing.pauses
        root = self._host.running().live.get(pauses.root, run)
        if answer is not None:
            _one([each for each in pauses.open if run.id in (each.run, root.id)], root.id, answer)
        return root

    def _take_over(
        self, name: str, answer: ApprovalAnswer | None
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
        asking = [each for each in tree if asked_by(each) is not None]
        answered: RunId | None = None
        if answer is not None:
            asked = [each for each in asking if record.id in (each.id, root.id)]
            if len(asked) != 1:
                raise BadUsage(_several(root.id, [each.id for each in asked]))
            answered = asked[0].id
        with contextlib.closing(open_stores(host.home).connect(host.lease)) as connection:
            if not connection.runs.take_over([each.id for each in tree], root.host, host.lease.host):
                raise cannot_resume(root, record.id)
            inbox = Inbox(connection)
            resumed: dict[RunId, Resumed] = {}
            for each in asking:
                if (asked_now := asked_by(each)) is not None:
                    given = answer if each.id == answered else None
                    known = None if inbox.end(asked_now.request) else inbox.answer_to(asked_now.request)
                    inbox.end(asked_now.request, "taken")
                    resumed[each.id] = Resumed(asked_now, given, known)
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
