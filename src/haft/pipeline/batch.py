"""A batch: several calls that were made at once, and that have the effects and outcomes of their order in the list.

Each call is a run of its own, and goes through the pipeline like any other. All start at once; the stage `keep_order`
lets a run wait here for the earlier ones that it depends on. Footprints decide about that, and footprints may be
wrong: a tool may write more than it declares. So the commit of each run asks `check_commit` whether its changes fit
into the order, and a run that does not fit ends in a conflict.

Calls that a run of the batch makes belong to the batch, as a part of that run.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Final

from haft.contracts import UNKNOWN, BatchId, Conflict, DependencyFailed, Footprint, Outcome, meeting_path, new_batch_id
from haft.pipeline.batch_plan import why_after
from haft.pipeline.batch_question import BatchQuestion
from haft.pipeline.batched_calls import BatchedCall
from haft.pipeline.run import Run
from haft.values import dataclass, field

HINT: Final = "call it again: nothing of it was committed"


@dataclass(slots=True, eq=False)
class Member:
    """One call of the batch, and what is known of its run."""

    call: BatchedCall
    index: int
    run: Run | None = None
    footprint: Footprint | None = None
    """None until the call was decided, or has failed before."""
    outcome: Outcome | None = None
    is_asking: bool = False
    """Whether the call waits for a person, together with the other calls of the batch."""
    has_arrived: bool = False
    """Whether the call was decided and approved, so that only the order of the batch holds it up."""
    has_started: bool = False
    """Whether the call has taken its view of the workspace."""
    is_final: bool = False
    """Whether the end of the call can no longer be changed into a conflict."""
    conflict: str | None = None
    """Why the call must end in a conflict; None if it need not."""
    written: list[str] = field(default_factory=list)
    """The paths that the call, or calls that it made, have committed."""
    seen: int = 0
    """How many commits of the batch there had been when the call was decided last."""
    known: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        """The call's id, with the id of its run."""
        return self.call.id if self.run is None else f"{self.call.id} ({self.run.id})"

    def meets(self, paths: tuple[str, ...]) -> str | None:
        """A path at which these paths meet what the call may read or write; None if there is none."""
        footprint = self.footprint or UNKNOWN
        return meeting_path(paths, footprint.reads) or meeting_path(paths, footprint.writes)


class Batch:
    """The calls of one batch, and their order. Methods are for the event loop, unless they say something else."""

    def __init__(self, calls: Sequence[BatchedCall], footprint_of: Callable[[Run], Awaitable[Footprint]]) -> None:
        self.id: BatchId = new_batch_id()
        self.members = tuple(Member(call, index) for index, call in enumerate(calls))
        self.question = BatchQuestion(self._asked_about)
        self._footprint_of = footprint_of
        self._by_run: dict[Run, Member] = {}
        self._commits: list[str] = []
        """The paths of all commits of the batch, in their order."""
        self._footprints_version = 0
        self._lock = threading.Lock()
        """Protects the fields of members that `check_commit` reads and writes."""

    def add(self, member: Member, run: Run) -> None:
        """Make a new run, which has not executed a step yet, the run of a call."""
        member.run = run
        self._by_run[run] = member
        run.batch = self
        run.revise(batch=self.id)

    def __contains__(self, run: Run) -> bool:
        """Whether the run is one of the batch's own, and not one that these made."""
        return run in self._by_run

    def member(self, run: Run) -> Member:
        """The call of the batch that a run belongs to: the run itself, or the run that made it. Any thread may use
        this."""
        at: Run | None = run
        while at is not None and at not in self._by_run:
            at = at.parent
        assert at is not None, f"{run.id} does not belong to {self.id}"
        return self._by_run[at]

    # Before a call's turn.

    async def learn(self, run: Run) -> None:
        """Note what the call may touch, as its arguments say now. Raises `Conflict` if a later call has already changed
        some of it: the call came to touch it only when a person edited the arguments."""
        member = self.member(run)
        footprint = await self._footprint_of(run)
        with self._lock:
            member.footprint = footprint
            self._footprints_version += 1
            later = [each for each in self.members[member.index + 1 :] if each.written]
            found = next(((each, path) for each in later if (path := member.meets(tuple(each.written)))), None)
        self._make_known(member)
        if found is not None:
            raise Conflict(
                f"`{run.call.name}` was not called: {found[0].name}, which comes later in its batch, has changed "
                f"{found[1]} already",
                hint=HINT,
            )

    def learn_nothing(self, run: Run) -> None:
        """Note that the call cannot be decided yet, so that it may touch anything."""
        member = self.member(run)
        with self._lock:
            member.footprint = UNKNOWN
        self._make_known(member)

    def _make_known(self, member: Member) -> None:
        member.known.set()
        self.question.look_again()

    async def wait_until_all_known(self, run: Run) -> int:
        """Wait until each call of the batch was decided, or has failed. Returns how many of them need an answer of a
        person now, with this one."""
        self.member(run).is_asking = True
        for each in self.members:
            await each.known.wait()
        return sum(each.is_asking for each in self.members)

    def stop_asking(self, run: Run) -> None:
        """Note that the call has its answer."""
        self.member(run).is_asking = False
        self.question.look_again()

    def _asked_about(self) -> Collection[Run] | None:
        """The runs that need an answer of a person together; None while some calls were not decided yet."""
        if not all(each.known.is_set() for each in self.members):
            return None
        return [each.run for each in self.members if each.is_asking and each.run is not None]

    async def wait_for_earlier(self, run: Run) -> None:
        """Wait until all earlier calls have ended."""
        for each in self.members[: self.member(run).index]:
            await each.ended.wait()

    async def wait_for_turn(self, run: Run) -> None:
        """Wait until each earlier call that this call depends on has ended. Meanwhile the run's status says which run
        it waits for. Raises `DependencyFailed` if a call that `after` names did not succeed."""
        member = self.member(run)
        version = -1
        while version != self._footprints_version:
            for each in self.members[: member.index]:
                await each.known.wait()
            version = self._footprints_version
            for each, reason in self._blockers(member):
                if not each.ended.is_set():
                    assert each.run is not None
                    run.set_status("queued", {"waitsFor": each.run.id, "reason": reason})
                    await each.ended.wait()
                if each.call.id in member.call.after:
                    _check_success(run, each)

    def _blockers(self, member: Member) -> Iterator[tuple[Member, str]]:
        """The earlier calls that a call must wait for, each with the reason."""
        mine = member.footprint or UNKNOWN
        for each in self.members[: member.index]:
            if each.ended.is_set() and each.call.id not in member.call.after:
                continue
            reason = why_after(each.call, each.footprint or UNKNOWN, member.call, mine)
            if reason is not None:
                yield each, reason

    def committed_since(self, seen: int) -> tuple[str, ...]:
        """The paths that calls of the batch have changed since there were `seen` commits."""
        return tuple(self._commits[seen:])

    @property
    def commits(self) -> int:
        """How many paths calls of the batch have changed so far."""
        return len(self._commits)

    # While a call runs.

    def started(self, run: Run) -> None:
        """Note that a call takes its view of the workspace now. Any thread may call this."""
        member = self.member(run)
        with self._lock:
            member.has_started = True
            if member.run is run and not member.written:  # If it starts once more, it sees what made it a conflict.
                member.is_final, member.conflict = False, None

    def check_commit(self, run: Run, changed: Collection[str]) -> str | None:
        """Why a commit of these paths would break the order of the batch; None if it would not. The commit thread calls
        this under the lock of the workspace, before it commits anything."""
        paths = tuple(changed)
        with self._lock:
            member = self.member(run)
            why_not = self._why_no_commit(member, paths) if paths else member.conflict
            if why_not is None and (outer := self._outer(member)) is not None:
                why_not = outer[0].check_commit(outer[1], paths)
            if why_not is None:
                member.written += paths
                self._commits += paths
        return why_not

    def _why_no_commit(self, member: Member, paths: tuple[str, ...]) -> str | None:
        if member.conflict is not None:
            return member.conflict
        for each in self.members[: member.index]:
            if not (each.is_final or each.outcome is not None) and (path := each.meets(paths)) is not None:
                return f"it changed {path}, and call {each.name}, which comes earlier and may use it, has not ended"
        doomed: list[tuple[Member, str]] = []
        for each in self.members[member.index + 1 :]:
            # What the later call has written counts even if it had declared less.
            path = (each.meets(paths) or meeting_path(paths, tuple(each.written))) if each.has_started else None
            if path is None:
                continue
            if each.is_final or each.written or each.outcome is not None:
                later = f"call {each.name}, which comes later in the batch,"
                return f"it changed {path}, and {later} had used the older version"
            doomed.append((each, path))
        for each, path in doomed:
            each.conflict = f"call {member.name}, which comes earlier in the batch, changed {path} after it had started"
        return None

    @staticmethod
    def _outer(member: Member) -> tuple[Batch, Run] | None:
        """The batch in which this batch was made, and the run there that made it; None if there is none."""
        caller = None if member.run is None else member.run.parent
        return None if caller is None or caller.batch is None else (caller.batch, caller)

    def check_end(self, run: Run) -> str | None:
        """Why a call that committed nothing must end in a conflict; None if it need not. From then on the call counts
        as ended for the commits of others."""
        with self._lock:
            member = self.member(run)
            why = None if member.is_final else member.conflict
            member.is_final = True
        return why

    def end(self, run: Run, outcome: Outcome) -> None:
        """Note that a run has ended, before anyone gets its outcome."""
        member = self.member(run)
        if outcome.changes.state == "committed":
            self._note(member, [each.path for each in outcome.changes.files])
        with self._lock:
            if member.run is run:
                member.outcome = outcome
        if member.run is run:
            member.is_asking = False
            member.ended.set()
            self._make_known(member)

    def _note(self, member: Member, paths: Sequence[str]) -> None:
        """Note the paths that a run of this call has committed, in this batch and in those around it."""
        with self._lock:
            new = [path for path in paths if path not in member.written]
            member.written += new
            self._commits += new
        if (outer := self._outer(member)) is not None:
            outer[0]._note(outer[0].member(outer[1]), paths)


def _check_success(run: Run, earlier: Member) -> None:
    outcome = earlier.outcome
    if outcome is not None and not outcome.ok:
        code = "" if outcome.error is None else f" ({outcome.error.code})"
        raise DependencyFailed(
            f"`{run.call.name}` was not called: its `after` names {earlier.name}, which ended `{outcome.status}`{code}",
            hint="leave `after` out if the call should run in any case: the order of the list holds without it",
        )
