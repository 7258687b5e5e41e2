"""A run: one call in the pipeline, as the code that made the call and any number of observers see it.

`Pipeline.call` makes a run, the stages report its progress (`set_status`, `output`, `emit`), and `finish` ends the run
once. A run makes no decisions and writes nothing to disk: it tells its recorder, the `record` stage, about every step
before it tells the observers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from haft.contracts import (
    TERMINAL,
    Call,
    Changes,
    Confinement,
    Decision,
    EndedChild,
    Event,
    EventType,
    Outcome,
    Principal,
    RunId,
    Status,
    Stream,
    Tool,
    Workspace,
    evolve,
)
from haft.pipeline.observer import Observer, RunObserver
from haft.pipeline.pauses import Pausing
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.changes import PersonMark, Transaction, View
    from haft.pipeline.batch import Batch
    from haft.pipeline.connections import RunConnections
    from haft.pipeline.deadline import Deadline
    from haft.pipeline.output_buffer import OutputBuffer
    from haft.pipeline.pauses import Pause
    from haft.pipeline.run_watcher import Step
    from haft.schedule import Hold, Slot

MAX_NOTES: Final = 20
MAX_NOTE_LENGTH: Final = 1000


@dataclass(frozen=True, slots=True)
class ProgramLog:
    """What a program that outlives its calls wrote to its own log during one of them."""

    text: str
    is_shared: bool
    """Whether some of it may be about other calls."""


@dataclass(frozen=True, slots=True)
class ApprovedCall:
    """A call as a person approved it."""

    call: Call
    """The call when the person was asked, with the arguments that the person approved."""
    shown: Mapping[str, Any]
    """The request that was shown: see `request_content`."""


class RunRecorder(Protocol):
    """Is told about every step of a run, before the observers are told."""

    def on_status(self, run: Run) -> None: ...

    def on_event(self, run: Run, event: Event) -> None: ...

    def save(self, run: Run) -> None: ...


class _NoRecorder:
    """The recorder of a draft (see `Run.draft`): it ignores everything."""

    def on_status(self, run: Run) -> None: ...

    def on_event(self, run: Run, event: Event) -> None: ...

    def save(self, run: Run) -> None: ...


_NO_RECORDER: Final = _NoRecorder()
_new: Final = object.__new__


class Run:
    """One call in the pipeline: await it for the outcome, iterate over it for events, cancel it at any time."""

    __slots__ = (
        "_cancel_requested", "_child_lock", "_facts", "_next_seq", "_observers", "_on_activity", "_outcome",
        "_recorder", "_task", "_task_has_started", "_waiters", "approved", "batch", "cache_facts", "call",
        "cancelled_by", "changes", "children", "connections", "deadline", "descendants", "ended_children",
        "has_waited", "hold", "is_saved", "make_output_buffer", "notes", "output_buffer", "parent", "pausing",
        "person_mark", "place", "program_log", "questions", "resolved_confinement", "started_at", "states", "status",
        "steps", "tool_has_ended", "transaction", "unanswerable", "unsaved_events", "view", "workspace",
    )  # fmt: skip

    def __init__(self, call: Call, recorder: RunRecorder, parent: Run | None = None) -> None:
        self.call = call
        """The current state of the call. Nothing else holds a copy; `revise` replaces it."""
        self.status: Status = "queued"
        self.started_at = time.time()
        self.states: list[tuple[int, float, Status]] = [(0, self.started_at, "queued")]
        """Every status so far, with its sequence number and its time."""
        self.steps: list[Step] = []
        """How long the run waited for what; stays empty if nobody watches the runs: see `run_watcher`."""
        self.output_buffer: OutputBuffer | None = None
        """Collects the tool's output; None before the tool writes something."""
        self.make_output_buffer: Callable[[Run], OutputBuffer] | None = None
        """Makes `output_buffer`; set while the tool may write."""
        self.resolved_confinement: tuple[object, Confinement] | None = None
        """The confinement, and the values from which it was resolved: see `Confinements`."""
        self.changes: Changes | None = None
        """The change set of the run, once it is known."""
        self.workspace: Workspace | None = None
        """The workspace as only this run sees it; None if it sees the workspace of the host."""
        self.ended_children: list[EndedChild] = []
        """Processes, not runs, that still ran when the call ended, and were ended with it."""
        self.connections: RunConnections | None = None
        """The network connections; None if no command has started, or the tool starts none."""
        self.program_log: ProgramLog | None = None
        """What the program of a failed call wrote to its own log; None if that is not known."""
        self.questions = 0
        """How many questions the tool has asked."""
        self.unanswerable: set[str] = set()
        """The kinds of questions that the tool asked although nobody could answer them."""
        self.parent = parent
        """The run that made this one, if there is one. `nesting` maintains this field and the next three."""
        self.children: dict[RunId, Run] = {}
        """The runs that this one made and that have not ended."""
        self.descendants: list[RunId] = []
        """The runs below this one that have ended: those that it made, and those that they made."""
        self.batch: Batch | None = None if parent is None else parent.batch
        """The batch that the run belongs to, itself or as a part of its caller; None for most runs."""
        self.pausing: Pausing | None = None
        """Set if requests for approval of this run go to the program that made the call; see `pauses`."""
        if parent is not None and parent.pausing is not None:
            self.pausing = Pausing(parent.pausing.pauses, call)
        self.approved: ApprovedCall | None = None
        """For a call of a batch that a person approved: what the person saw."""
        self.cache_facts: dict[str, Any] = {}
        """Why the call was or was not answered from the cache; empty if answers of its tool are never kept."""
        self.tool_has_ended = False
        """Whether the tool has ended, so that the run can make no more calls."""
        self.place: Slot | None = None
        self.hold: Hold | None = None
        """What the run has claimed for itself; None if it has claimed nothing."""
        self.person_mark: PersonMark | None = None
        """Says to other processes whether the run waits for a person; None if it has no view of the workspace."""
        self.has_waited = False
        """Whether the run has waited for its turn, so that it is not refused because too many calls wait."""
        self.deadline: Deadline | None = None
        self.transaction: Transaction | None = None
        self.view: View | None = None
        """The committed state of the workspace that the call sees; None before the call begins."""
        self._child_lock: asyncio.Lock | None = None
        self.notes: list[str] = []
        """Texts for the person, which go into the outcome: see `add_note`."""
        self.is_saved = False
        """For the recorder: whether anything of the run is on disk."""
        self.unsaved_events: list[Event] = []
        """For the recorder: events that are not on disk yet."""
        self._facts: dict[str, Any] = {}
        """The facts that belong to the current status."""
        self._next_seq = 1
        self._recorder = recorder
        self._observers: list[RunObserver] = []
        self._waiters: list[asyncio.Future[Outcome]] = []
        self._outcome: Outcome | None = None
        self._task: asyncio.Task[None] | None = None
        self.cancelled_by: Principal | None = None
        """The principal who cancelled the run; None if nobody did, or it is not known who."""
        self._cancel_requested = False
        self._task_has_started = False
        self._on_activity: Callable[[], None] | None = None

    @property
    def id(self) -> RunId:
        return self.call.run

    @property
    def tool(self) -> Tool:
        """The tool that is called; known from the stage `resolve` on."""
        assert self.call.tool is not None
        return self.call.tool

    @property
    def decision(self) -> Decision:
        """The decision about the call; known from the stage `decide` on."""
        assert self.call.decision is not None
        return self.call.decision

    @property
    def outcome(self) -> Outcome | None:
        """The outcome; None until the run has ended."""
        return self._outcome

    @property
    def cancel_requested(self) -> bool:
        return self._cancel_requested

    # Methods for the caller.

    def __await__(self) -> Generator[Any, None, Outcome]:
        """Wait for the outcome. Cancelling the waiting task does not cancel the run."""
        if self._outcome is not None:
            return self._outcome
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return (yield from waiter.__await__())

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events from now on: the current status first, the outcome last."""
        last = self.states[-1]
        observer = Observer(Event(self.id, last[0], last[1], "status", last[2], self._facts))
        if self._outcome is None:
            self._observers.append(observer)
        else:
            observer.put(self._outcome_event(self._outcome))
            observer.end()
        return observer.events(self.forget)

    def observe(self, observer: RunObserver) -> None:
        """Tell this observer all events from now on. It is told nothing more about a run that has ended."""
        if self._outcome is None:
            self._observers.append(observer)

    def forget(self, observer: RunObserver) -> None:
        """Tell this observer nothing more."""
        if observer in self._observers:
            self._observers.remove(observer)

    @property
    def last_seq(self) -> int:
        """The number of the latest event, except for the outcome, which has the next number."""
        return self._next_seq - 1

    def cancel(self, by: Principal | None = None) -> bool:
        """Cancel the run, which goes to `cancellation-requested`. Returns False if the run had already ended. The audit
        log names the principal `by`."""
        if self._outcome is not None or (self.pausing is not None and self.pausing.stays_open):
            return False
        if not self._cancel_requested:
            self._cancel_requested = True
            self.cancelled_by = by
            if self._task_has_started and self._task is not None:
                self._task.cancel()
            # A task that has not started is not cancelled: it would run no code at all, so that nothing would be
            # recorded.
            self.set_status("cancellation-requested")
        return True

    def save(self) -> None:
        """Save the run as it is now, because somebody gets its id and may ask another process for it. Raises
        `StorageFailed`."""
        if self._outcome is None:
            self._recorder.save(self)

    async def pause_or_outcome(self) -> Pause | Outcome:
        """Wait until the call, or a call below it, needs approval, or until the run has ended. Only for a call that was
        made with `pauses=True`; others never pause."""
        return await self if self.pausing is None else await self.pausing.pauses.next(self)

    # Methods for the pipeline.

    def restore(self, started_at: float, states: Sequence[tuple[int, float, Status]]) -> None:
        """Go on with the history that the run had in an earlier host."""
        self.started_at = started_at
        self._next_seq = states[-1][0] + 1_000_000  # After every event of that host.
        self.states = [*states, (self._next_seq, time.time(), "queued")]
        self._next_seq += 1
        self.is_saved = True

    def leave_open(self) -> None:
        """End the work of this host on the run, which another host goes on with."""
        assert self.pausing is not None
        self.pausing.stays_open = True
        if self._task is not None and self._task_has_started:
            self._task.cancel()

    def attach_task(self, task: asyncio.Task[None]) -> None:
        """Remember the task that executes the run."""
        self._task = task

    def task_started(self) -> None:
        """Note that the task executes its first step."""
        self._task_has_started = True

    @property
    def child_lock(self) -> asyncio.Lock:
        """A lock for the calls that this run made. It is used if only one of these calls may work at a time."""
        self._child_lock = self._child_lock or asyncio.Lock()
        return self._child_lock

    def revise(self, **changes: Any) -> None:
        """Replace the call with a copy that has other values in some fields."""
        copy = _new(Call)  # The body of `evolve`, written out to save one function call.
        fields = copy.__dict__
        fields.update(self.call.__dict__)
        fields.update(changes)
        self.call = copy

    def draft(self, **changes: Any) -> Run:
        """A draft: a new run of the same call, with the values in `changes`. The policy can decide about these values
        before the call itself gets them. A draft is not observed and not recorded."""
        return Run(evolve(self.call, **changes), _NO_RECORDER, self.parent)

    def tell_waiting(self, holder: str | None, *, is_person: bool) -> None:
        """Say for which run this one waits, if that is known, and whether that run waits for a person."""
        facts = {} if holder is None else {"waitsFor": holder}
        self.set_status("queued", {**facts, **({"blockedOn": "person"} if is_person else {})})

    def set_status(self, status: Status, facts: dict[str, Any] | None = None) -> None:
        """Change the status. Observers, also those in other processes, get the `facts` together with the status."""
        if self._cancel_requested and status not in TERMINAL and status != "cancellation-requested":
            return  # A stage has not noticed the cancellation yet. The status stays `cancellation-requested`.
        self.status = status
        seq, at = self._next_seq, time.time()
        self._next_seq = seq + 1
        self.states.append((seq, at, status))
        self._facts = self.call.secrets.masked(facts) if facts else {}
        if facts:
            self._recorder.on_event(self, Event(self.call.run, seq, at, "status", status, self._facts))
        if status not in TERMINAL:
            self._recorder.on_status(self)
        if self._observers:
            self._publish(Event(self.call.run, seq, at, "status", status, self._facts))

    def on_activity(self, callback: Callable[[], None]) -> None:
        """Set the function that is called whenever the tool shows a sign of life."""
        self._on_activity = callback

    def emit(self, type_: EventType, facts: dict[str, Any]) -> None:
        """Emit an event that is neither a status nor output: progress, news of a child run, or a connection."""
        if self._on_activity is not None:
            self._on_activity()
        facts = self.call.secrets.masked(facts)
        event = Event(self.id, self._next_seq, time.time(), type_, self.status, facts)
        self._next_seq += 1
        self._recorder.on_event(self, event)
        if self._observers:
            self._publish(event)

    def output(self, stream: Stream, data: bytes) -> None:
        """Add output of the tool."""
        if self.output_buffer is None:
            if self.make_output_buffer is None or not data:
                return
            self.output_buffer = self.make_output_buffer(self)
        if self._on_activity is not None:
            self._on_activity()
        seq, at = self._next_seq, time.time()
        self._next_seq = seq + 1
        text = self.output_buffer.add(seq, at, stream, data, decode=bool(self._observers))
        if text:
            self._publish(Event(self.id, seq, at, stream, self.status, {"text": text}))

    def end_output(self) -> None:
        """Close the output. Show the bytes that were kept back because they could have been the start of a secret."""
        for stream, text in () if self.output_buffer is None else self.output_buffer.end(self._next_seq, time.time()):
            self._publish(Event(self.id, self._next_seq, time.time(), stream, self.status, {"text": text}))
            self._next_seq += 1

    def stderr_only(self, data: bytes, stream: Stream) -> None:
        """Add output that goes into the outcome's `stderr` and not into its `output`. `stream` is where the tool wrote
        it."""
        if self.output_buffer is None:
            if self.make_output_buffer is None or not data:
                return
            self.output_buffer = self.make_output_buffer(self)
        if self._on_activity is not None:
            self._on_activity()
        seq = self._next_seq
        self._next_seq = seq + 1
        self.output_buffer.add_stderr_only(seq, time.time(), data, stream)

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        """Remember the processes that had to be ended together with the call."""
        self.ended_children.extend(children)

    def add_note(self, text: str) -> None:
        """Add a text for the person to the outcome's `notes`. Repeated texts, and all texts after the first
        `MAX_NOTES`, are dropped."""
        if text not in self.notes and len(self.notes) < MAX_NOTES:
            self.notes.append(text[:MAX_NOTE_LENGTH])

    def finish(self, outcome: Outcome) -> None:
        """End the run. Called once, after the end of the run was recorded."""
        assert self._outcome is None
        self._outcome = outcome
        if self._observers:
            seq, at, status = self.states[-1]
            self._publish(Event(self.id, seq, at, "status", status))
            self._publish(self._outcome_event(outcome))
            for observer in self._observers:
                observer.end()
            self._observers.clear()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(outcome)
        self._waiters.clear()

    def append_last_status(self, status: Status) -> None:
        """Add the last status to `states`. Observers see it when `finish` is called."""
        self.status, self._facts = status, {}
        self.states.append((self._next_seq, time.time(), status))
        self._next_seq += 1

    def _outcome_event(self, outcome: Outcome) -> Event:
        return Event(
            self.id, self._next_seq, self.states[-1][1], "outcome", outcome.status, {"outcome": outcome.to_json()}
        )

    def _publish(self, event: Event) -> None:
        for observer in self._observers:
            observer.put(event)

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.call.name} {self.status}>"
