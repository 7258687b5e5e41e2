"""A run: one call on its way, as its caller and any number of observers see it.

Made by `Pipeline.call`, moved by the stages (`turn`, `output`, `progress`), ended once by `finish`. It holds no policy
and writes nothing to disk: its keeper, the `record` stage, is told of every step before observers are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator, Sequence
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
from haft.pipeline.observer import Observer

if TYPE_CHECKING:
    from haft.changes import Transaction
    from haft.pipeline.deadline import Deadline
    from haft.pipeline.output_buffer import OutputBuffer
    from haft.schedule import Place

MOST_NOTES: Final = 20
LONGEST_NOTE: Final = 1000


class Keeper(Protocol):
    """Whoever must know of a step before anyone else does."""

    def turned(self, run: Run) -> None: ...

    def heard(self, run: Run, event: Event) -> None: ...


class _Nobody:
    """The keeper of a draft."""

    def turned(self, run: Run) -> None: ...

    def heard(self, run: Run, event: Event) -> None: ...


_NOBODY: Final = _Nobody()
_new: Final = object.__new__


class Run:
    """Await it for the outcome, iterate it for events, cancel it at any moment."""

    __slots__ = (
        "_alive", "_cancel_told", "_facts", "_is_carried", "_keeper", "_next_seq", "_observers", "_outcome", "_task",
        "_waiters", "call", "cancelled_by", "changes", "children", "clock", "confined", "ended_children", "is_closed",
        "is_put_down", "made", "noted", "notes", "parent", "place", "show", "shown", "started_at", "states", "status",
        "transaction", "turn_of", "workspace",
    )  # fmt: skip

    def __init__(self, call: Call, keeper: Keeper, parent: Run | None = None) -> None:
        self.call = call
        """The call as it now stands, and the only place where it stands: see `evolve`."""
        self.status: Status = "queued"
        self.started_at = time.time()
        self.states: list[tuple[int, float, Status]] = [(0, self.started_at, "queued")]
        """Every status so far, with its number and time."""
        self.shown: OutputBuffer | None = None
        """Where output is gathered; there from the first piece on."""
        self.show: Callable[[Run], OutputBuffer] | None = None
        """Makes `shown`; set while the tool may write."""
        self.confined: tuple[object, Confinement] | None = None
        """What confines it, and what that was resolved from: see `Confinements`."""
        self.changes: Changes | None = None
        """What became of the files it changed, once that is known."""
        self.workspace: Workspace | None = None
        """What the tool reaches files through, where that is its own."""
        self.ended_children: list[EndedChild] = []
        """Processes, not runs."""
        self.parent = parent
        """The run that made this one, if one did. `nesting` looks after this and the next ones."""
        self.children: dict[RunId, Run] = {}
        """The runs that it made and that have not ended."""
        self.made: list[RunId] = []
        """All that ended before it: those that it made, and those that they made."""
        self.is_closed = False
        """Whether its tool has ended: it makes no more calls."""
        self.place: Place | None = None
        self.clock: Deadline | None = None
        self.transaction: Transaction | None = None
        self.turn_of: asyncio.Lock | None = None
        self.notes: list[str] = []
        """Texts for the person that the outcome will hold: see `add_note`."""
        self.is_put_down = False
        """For the keeper: whether it is on disk at all."""
        self.noted: list[Event] = []
        """For the keeper: events that are not on disk yet."""
        self._facts: dict[str, Any] = {}
        """What the status of now says besides its name."""
        self._next_seq = 1
        self._keeper = keeper
        self._observers: list[Observer] = []
        self._waiters: list[asyncio.Future[Outcome]] = []
        self._outcome: Outcome | None = None
        self._task: asyncio.Task[None] | None = None
        self.cancelled_by: Principal | None = None
        """Whoever asked it to end, where somebody did."""
        self._cancel_told = False
        self._is_carried = False
        self._alive: Callable[[], None] | None = None

    @property
    def id(self) -> RunId:
        return self.call.run

    @property
    def tool(self) -> Tool:
        """What is called; known from `resolve` on."""
        assert self.call.tool is not None
        return self.call.tool

    @property
    def decision(self) -> Decision:
        """Whether it may happen; known from `decide` on."""
        assert self.call.decision is not None
        return self.call.decision

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it has not."""
        return self._outcome

    @property
    def cancel_requested(self) -> bool:
        return self._cancel_told

    # For the caller.

    def __await__(self) -> Generator[Any, None, Outcome]:
        """The outcome. Cancelling who waits does not cancel the run."""
        if self._outcome is not None:
            return self._outcome
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return (yield from waiter.__await__())

    def __aiter__(self) -> AsyncIterator[Event]:
        """Events from now on, the current state first, the outcome last."""
        last = self.states[-1]
        observer = Observer(Event(self.id, last[0], last[1], "status", last[2], self._facts))
        if self._outcome is None:
            self._observers.append(observer)
        else:
            observer.put(self._outcome_event(self._outcome))
            observer.end()
        return observer.events(self._forget)

    def cancel(self, by: Principal | None = None) -> bool:
        """Ask it to end. True when it had not ended; it then passes through `cancellation-requested`. The audit
        log names whoever it is asked `by`."""
        if self._outcome is not None:
            return False
        if not self._cancel_told:
            self._cancel_told = True
            self.cancelled_by = by
            if self._is_carried and self._task is not None:
                self._task.cancel()
            # Else its task has not taken a step yet: cancelled now, it never would, and nothing would be recorded.
            self.turn("cancellation-requested")
        return True

    # For the pipeline.

    def begin(self, task: asyncio.Task[None]) -> None:
        """The task that will carry it."""
        self._task = task

    def carried(self) -> None:
        """Its task has taken the first step."""
        self._is_carried = True

    @property
    def turn_of_children(self) -> asyncio.Lock:
        """Held by one of the runs that it made, where these come one after another."""
        self.turn_of = self.turn_of or asyncio.Lock()
        return self.turn_of

    def revise(self, **changes: Any) -> None:
        """Change fields of the call."""
        copy = _new(Call)  # As `evolve` does, without a second call of a function.
        fields = copy.__dict__
        fields.update(self.call.__dict__)
        fields.update(changes)
        self.call = copy

    def draft(self, **changes: Any) -> Run:
        """A run of the same call with other fields, to be judged beside this one: nobody watches it or keeps it."""
        return Run(evolve(self.call, **changes), _NOBODY)

    def turn(self, status: Status, facts: dict[str, Any] | None = None) -> None:
        """Move to another status. `facts` go with it to whoever watches, in other processes too."""
        if self._cancel_told and status not in TERMINAL and status != "cancellation-requested":
            return  # A stage that has not noticed yet: who asked for the end keeps seeing that.
        self.status = status
        seq, at = self._next_seq, time.time()
        self._next_seq = seq + 1
        self.states.append((seq, at, status))
        self._facts = self.call.secrets.masked(facts) if facts else {}
        if facts:
            self._keeper.heard(self, Event(self.call.run, seq, at, "status", status, self._facts))
        if status not in TERMINAL:
            self._keeper.turned(self)
        if self._observers:
            self._publish(Event(self.call.run, seq, at, "status", status, self._facts))

    def signs_of_life(self, alive: Callable[[], None]) -> None:
        """Who wants to know that the tool still works."""
        self._alive = alive

    def note(self, type_: EventType, facts: dict[str, Any]) -> None:
        """Something happened that is neither a status nor output: progress, a child."""
        if self._alive is not None:
            self._alive()
        facts = self.call.secrets.masked(facts)
        event = Event(self.id, self._next_seq, time.time(), type_, self.status, facts)
        self._next_seq += 1
        self._keeper.heard(self, event)
        if self._observers:
            self._publish(event)

    def output(self, stream: Stream, data: bytes) -> None:
        """The tool wrote something."""
        if self.shown is None:
            if self.show is None or not data:
                return
            self.shown = self.show(self)
        if self._alive is not None:
            self._alive()
        seq, at = self._next_seq, time.time()
        self._next_seq = seq + 1
        text = self.shown.add(seq, at, stream, data, decode=bool(self._observers))
        if text:
            self._publish(Event(self.id, seq, at, stream, self.status, {"text": text}))

    def end_output(self) -> None:
        """The tool writes no more: what was held back in case it began a secret is shown."""
        for stream, text in () if self.shown is None else self.shown.end(self._next_seq, time.time()):
            self._publish(Event(self.id, self._next_seq, time.time(), stream, self.status, {"text": text}))
            self._next_seq += 1

    def aside(self, data: bytes, stream: Stream) -> None:
        """The tool wrote to `stream`, and that is kept with stderr, and not shown with its output."""
        if self.shown is None:
            if self.show is None or not data:
                return
            self.shown = self.show(self)
        if self._alive is not None:
            self._alive()
        seq = self._next_seq
        self._next_seq = seq + 1
        self.shown.add_aside(seq, time.time(), data, stream)

    def ended(self, children: Sequence[EndedChild]) -> None:
        """Processes had to be ended with the call."""
        self.ended_children.extend(children)

    def add_note(self, text: str) -> None:
        """Say something to the person in the outcome's `notes`. Any stage may; a text that was said already, and the
        first beyond `MOST_NOTES`, are dropped."""
        if text not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(text[:LONGEST_NOTE])

    def finish(self, outcome: Outcome) -> None:
        """The end: once, after the audit log has it."""
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

    def close_states(self, status: Status) -> None:
        """Write down the last status; observers see it when `finish` is called."""
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

    def _forget(self, observer: Observer) -> None:
        if observer in self._observers:
            self._observers.remove(observer)

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.call.name} {self.status}>"
