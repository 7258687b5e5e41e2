"""Watches: outermost, so that refusals and crashes are recorded too. Turns whatever happens inside into one outcome.

Nothing is acknowledged before it is on disk. A call that may change something is in the audit log before it acts, and
its end before it is answered. A call that only reads is put down when it ends, or when it has lasted long enough that
someone might want to see or cancel it; the audit log has it a moment later, also when this process is killed meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Literal

from haft.audit import Trail
from haft.contracts import Bug, Event, HaftError, HostId, Outcome, RunId, StorageFailed, evolve
from haft.pipeline.chain import Proceed
from haft.pipeline.ended import broken, cancelled, ended, failed
from haft.pipeline.masking import masked_outcome
from haft.pipeline.run import Run
from haft.runs import Scribe, entry_of

Durability = Literal["group", "full"]

PULSE_SECONDS = 0.05
MOST_NOTED = 256
"""Progress that waits for the pulse; of more, the newest is kept."""


class Record:
    """The first stage, and the keeper of every run."""

    def __init__(
        self,
        live: Mapping[RunId, Run],
        scribe: Scribe,
        trail: Trail,
        host: HostId,
        durability: Durability,
    ) -> None:
        self._live = live
        self._scribe = scribe
        self._trail = trail
        self._host = host
        self._durability = durability
        self._pulse: asyncio.TimerHandle | None = None

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if self._pulse is None:
            self._pulse = asyncio.get_running_loop().call_later(PULSE_SECONDS, self._beat)
        try:
            outcome = cancelled(run) if run.cancel_requested else await proceed(run)
        except asyncio.CancelledError:
            outcome = cancelled(run)
        except HaftError as error:
            outcome = failed(run, error)
        except KeyboardInterrupt:
            run.finish(self._close(run, cancelled(run)))  # The host is being ended: who waits must still hear of it.
            raise
        except BaseException as error:
            outcome = broken(run, error)
        outcome = self._close(run, outcome)
        if self._durability == "full":
            await self._synced()
        return outcome

    async def _synced(self) -> None:
        syncing = asyncio.ensure_future(asyncio.to_thread(self._scribe.sync))
        while not syncing.done():
            try:
                await asyncio.shield(syncing)
            except asyncio.CancelledError:
                continue  # The run is over; only its safety is waited for.

    # As keeper.

    def turned(self, run: Run) -> None:
        """Called at every status that is not the last, before observers see it."""
        match run.status:
            case "blocked-on-user":
                self._put_down(run, None)
            case "in-progress":
                if _may_change_something(run):
                    self._put_down(run, None, record_now=True)
            case "cancellation-requested" | "queued":
                if run.cancelled_by is not None:
                    with contextlib.suppress(StorageFailed):
                        self._trail.tell_act("cancel", run.cancelled_by, run.id, run.call.name)
                if run.is_put_down:
                    with contextlib.suppress(StorageFailed):  # A full disk must not keep anyone from cancelling.
                        self._put_down(run, None)
            case _:
                pass

    def heard(self, run: Run, event: Event) -> None:
        """Called at every event that is neither status nor output."""
        if len(run.noted) >= MOST_NOTED:
            del run.noted[0]
        run.noted.append(event)

    def close(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
            self._pulse = None

    def _beat(self) -> None:
        """Now and then while anything runs: what has lasted a while becomes visible to other processes."""
        self._pulse = None
        if not self._live:
            return
        self._pulse = asyncio.get_running_loop().call_later(PULSE_SECONDS, self._beat)
        since = time.time() - PULSE_SECONDS
        for run in self._live.values():
            if run.outcome is None and run.started_at <= since and (not run.is_put_down or run.noted):
                try:
                    self._put_down(run, None)
                except StorageFailed:
                    return  # The end of the run says so; until then it is only less visible.

    def _close(self, run: Run, outcome: Outcome) -> Outcome:
        """The end: on disk first, then it is true."""
        if run.shown is not None:
            run.shown.close()
        run.close_states(outcome.status)
        outcome = evolve(
            outcome,
            started_at=run.started_at,
            duration=run.states[-1][1] - run.started_at,
            ended_children=tuple(run.ended_children),
            notes=tuple(run.notes),
        )
        if run.call.secrets.values:
            outcome = masked_outcome(outcome, run.call.secrets)
        try:
            self._put_down(run, outcome, record_now=_may_change_something(run))
        except StorageFailed as error:
            if outcome.status != "error":
                run.close_states("error")
            outcome = evolve(outcome, status="error", error=error.failure())
        except Exception as error:
            # Whatever it is, the run must end: who waits for it would wait for ever.
            outcome = evolve(outcome, status="error", error=Bug(error).failure())
        return outcome

    def _put_down(self, run: Run, outcome: Outcome | None, *, record_now: bool = False) -> None:
        """The run as it now stands, to the disk; `outcome` when it has ended."""
        at = run.states[-1][1]
        known = outcome if outcome is not None else ended(run, run.status, None)
        record, apart = self._trail.entry(run.call, known, at, is_end=outcome is not None)
        if record_now and outcome is None:
            self._trail.append([record])
        rest = {
            "host": self._host,
            "startedAt": run.started_at,
            "endedAt": None if outcome is None else at,
            **apart,
            "states": run.states,
            "noted": [(event.seq, event.at, event.type, event.status, event.facts) for event in run.noted]
            if run.noted
            else (),
            "recorded": record_now,
        }
        self._scribe.write(entry_of(run.id, record, rest, self._trail.redactor, run.call.secrets))
        run.is_put_down = True
        run.noted.clear()
        if record_now and outcome is not None:
            # After the journal: were this process killed in between, recovery would find the end there and add it.
            try:
                self._trail.append([record])
            except StorageFailed:
                self._scribe.tell_later(record)
                raise


def _may_change_something(run: Run) -> bool:
    """Whether the call had a tool that does not only read, and came to the point of using it."""
    tool = run.call.tool
    return tool is not None and not tool.spec.effects.readonly and run.call.limits is not None
