"""A stage that watches a call: it records every run. It is the outermost stage, so that it also records rejections and
crashes. It turns everything that happens in the other stages into one outcome.

Whoever made a call gets its outcome only after the outcome is on disk. A call that may change something is in the audit
log before it starts to act, and its end is in the audit log before the outcome is returned. A call that only reads is
saved when it ends, or when it has lasted so long that someone might want to see or cancel it. Such a call is in the
audit log a moment later, even if this process is killed in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from haft.audit import Trail
from haft.contracts import Bug, Event, HaftError, HostId, Outcome, RunId, StorageFailed, evolve
from haft.pipeline.chain import Proceed
from haft.pipeline.connections import RunConnections
from haft.pipeline.failure_outcomes import bug_outcome, cancelled_outcome, failed_outcome, outcome_so_far
from haft.pipeline.masking import masked_outcome
from haft.pipeline.pauses import Pausing
from haft.pipeline.run import Run
from haft.runs import RunWriter, call_facts, entry_of

Durability = Literal["group", "full"]

SAVE_SECONDS = 0.05
MAX_UNSAVED_EVENTS = 256
"""How many events of a run may wait until they are saved. If there are more, the newest are kept."""


class Record:
    """The first stage, and the recorder of every run."""

    def __init__(
        self,
        live: Mapping[RunId, Run],
        run_writer: RunWriter,
        trail: Trail,
        host: HostId,
        durability: Durability,
        how_to_connect: Callable[[Run, str], str],
    ) -> None:
        """`how_to_connect` returns the text that says how to grant a host and port to a run."""
        self._how_to_connect = how_to_connect
        self._live = live
        self._run_writer = run_writer
        self._trail = trail
        self._host = host
        self._durability = durability
        self._save_timer: asyncio.TimerHandle | None = None

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if self._save_timer is None:
            self._save_timer = asyncio.get_running_loop().call_later(SAVE_SECONDS, self._save_long_runs)
        try:
            outcome = cancelled_outcome(run) if run.cancel_requested else await proceed(run)
        except asyncio.CancelledError:
            outcome = cancelled_outcome(run)
        except HaftError as error:
            outcome = failed_outcome(run, error)
        except KeyboardInterrupt:
            # The host is about to end, but tasks that wait for the run must still get its outcome.
            run.finish(self._close(run, cancelled_outcome(run)))
            raise
        except BaseException as error:
            outcome = bug_outcome(run, error)
        if run.pausing is not None and run.pausing.stays_open and outcome.status == "cancelled":
            return self._leave_open(run)
        outcome = self._close(run, outcome)
        if self._durability == "full":
            await self._wait_for_sync()
        return outcome

    async def _wait_for_sync(self) -> None:
        syncing = asyncio.ensure_future(asyncio.to_thread(self._run_writer.sync))
        while not syncing.done():
            try:
                await asyncio.shield(syncing)
            except asyncio.CancelledError:
                continue  # The run has ended; only the sync to disk is left to wait for.

    # Methods of the recorder of runs.

    def on_status(self, run: Run) -> None:
        """Called for every status but the last, before observers see it."""
        match run.status:
            case "blocked-on-user":
                self._save(run, None)
            case "in-progress":
                if _may_change_something(run):
                    self._save(run, None, record_now=True)
                elif run.is_saved:  # Whoever reads the stored run must not believe that it still waits for its turn.
                    with contextlib.suppress(StorageFailed):
                        self._save(run, None)
            case "cancellation-requested" | "queued":
                if run.cancelled_by is not None:
                    with contextlib.suppress(StorageFailed):
                        self._trail.record_act("cancel", run.cancelled_by, run.id, run.call.name)
                if run.is_saved:
                    with contextlib.suppress(StorageFailed):  # Cancelling must work even if the disk is full.
                        self._save(run, None)
            case _:
                pass

    def on_event(self, run: Run, event: Event) -> None:
        """Called for each new status for which `Run.set_status` got `facts`, and for each event of `Run.emit`."""
        if len(run.unsaved_events) >= MAX_UNSAVED_EVENTS:
            del run.unsaved_events[0]
        run.unsaved_events.append(event)

    def save(self, run: Run) -> None:
        """Save a run that has not ended, if nothing of it is on disk yet."""
        if not run.is_saved:
            self._save(run, None)

    def close(self) -> None:
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None

    def _save_long_runs(self) -> None:
        """Save the runs that have lasted a while, so that other processes see them. Repeats this while there are
        runs."""
        self._save_timer = None
        if not self._live:
            return
        self._save_timer = asyncio.get_running_loop().call_later(SAVE_SECONDS, self._save_long_runs)
        since = time.time() - SAVE_SECONDS
        for run in self._live.values():
            if run.outcome is None and run.started_at <= since and (not run.is_saved or run.unsaved_events):
                try:
                    self._save(run, None)
                except StorageFailed:
                    return  # The end of the run reports the error; until then other processes do not see the run.

    def _leave_open(self, run: Run) -> Outcome:
        """Save a run with which another host goes on, and return what its callers get in this host."""
        if run.output_buffer is not None:
            run.output_buffer.close()
        if run.status != "blocked-on-user":  # It waits for a run below it.
            run.append_last_status("blocked-on-user")
        with contextlib.suppress(StorageFailed):  # The next host finds the run as it was saved before.
            self._save(run, None)
        self._run_writer.leave_open(run.id)
        return outcome_so_far(run, "blocked-on-user", None)

    def _close(self, run: Run, outcome: Outcome) -> Outcome:
        """Save the end of a run, and return its final outcome."""
        if run.output_buffer is not None:
            run.output_buffer.close()
        run.append_last_status(outcome.status)
        if run.connections is not None and run.connections.has_any:
            outcome = self._with_connections(run, run.connections, outcome)
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
            self._save(run, outcome, record_now=_may_change_something(run))
        except StorageFailed as error:
            if outcome.status != "error":
                run.append_last_status("error")
            outcome = evolve(outcome, status="error", error=error.failure())
        except Exception as error:
            # The run must end whatever happens, or the tasks that wait for it would wait for ever.
            outcome = evolve(outcome, status="error", error=Bug(error).failure())
        return outcome

    def _with_connections(self, run: Run, connections: RunConnections, outcome: Outcome) -> Outcome:
        """The outcome with the connections of the run, and the run with notes about those that were refused."""
        connections.end()
        error = outcome.error
        explained = "" if error is None else f"{error.message} {error.hint or ''}"
        for note in connections.notes(lambda grant: self._how_to_connect(run, grant), explained):
            run.add_note(note)
        return evolve(outcome, connections=connections.records)

    def _save(self, run: Run, outcome: Outcome | None, *, record_now: bool = False) -> None:
        """Save the current state of a run. `outcome` is None if the run has not ended. With `record_now`, the audit log
        has the run when this returns."""
        at = run.states[-1][1]
        known = outcome if outcome is not None else outcome_so_far(run, run.status, None)
        record, apart = self._trail.entry(run.call, known, at, is_end=outcome is not None)
        if record_now and outcome is None:
            self._trail.append([record])
        rest: dict[str, Any] = {
            "host": self._host,
            "startedAt": run.started_at,
            "endedAt": None if outcome is None else at,
            **apart,
            "states": run.states,
            "noted": [(event.seq, event.at, event.type, event.status, event.facts) for event in run.unsaved_events]
            if run.unsaved_events
            else (),
            "recorded": record_now,
        }
        if run.call.key is not None:
            rest["key"] = run.call.key
        if run.pausing is not None and outcome is None:
            self._add_paused_facts(run, run.pausing, rest)
        self._run_writer.write(entry_of(run.id, record, rest, self._trail.redactor, run.call.secrets))
        run.is_saved = True
        run.unsaved_events.clear()
        if record_now and outcome is not None:
            # Written after the journal: if this process is killed in between, recovery finds the end of the run in the
            # journal and adds it to the audit log.
            try:
                self._trail.append([record])
            except StorageFailed:
                self._run_writer.log_later(record)
                raise

    def _add_paused_facts(self, run: Run, pausing: Pausing, rest: dict[str, Any]) -> None:
        """Add what another host needs to go on with the run, if it can: the run waits for a person, or its tool can go
        on; and the call has nothing that haft does not store."""
        decision, tool = run.call.decision, run.call.tool
        is_layered = decision is not None and decision.action == "try"  # Its layer ends with the host.
        resumes = tool is not None and tool.spec.resumes and not is_layered
        facts = None
        if pausing.asked is not None or resumes:
            facts = call_facts(evolve(pausing.made, secrets=run.call.secrets), pausing.asked, self._trail.redactor)
        pausing.outlives_host = facts is not None
        if facts is not None:
            rest["paused"] = facts


def _may_change_something(run: Run) -> bool:
    """Whether the tool may do more than read, and the call has reached the stage `limit`, just before the tool runs."""
    tool = run.call.tool
    return tool is not None and not tool.spec.effects.readonly and run.call.limits is not None
