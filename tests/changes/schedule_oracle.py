"""The oracle of random schedules: what each call may have seen, and what must have come of it.

The list of commits in their order is known afterwards. From it follow the states between two commits. A call must have
seen one of these states, not older than the commits that had been answered when it was made; what a commit changed must
not have changed since that state; and with `serial`, nothing that a committing call read may have changed since either.
A batch has its own order besides. A conflict, and an undo that is refused, need a reason in what others committed
meanwhile, or in a call of the same batch that wrote more than it had declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from haft.contracts import Failure

FILES = ("f0", "f1", "d/f2", "d/f3")
NESTS = ("nest", "quiet_nest")
State = dict[str, str]
"""The content of each file that exists and is not empty."""


class Wrong(AssertionError):
    """Something is not what it must be."""


@dataclass(eq=False)
class Made:
    """One call, and what is known of it."""

    kind: str
    arguments: dict[str, Any]
    tag: str
    parent: Made | None = None
    """The call that made it."""
    acknowledged: frozenset[str] = frozenset()
    """The runs that had been answered when the call was made."""
    began: int = 0
    """The last change set when it was made."""
    ended: int = 0
    """The last change set when it had ended."""
    run: Any = None
    outcome: Any = None
    seen: State | None = None
    """What it saw; None if it says nothing about it. A file that it did not look at is not in `looked`."""
    looked: tuple[str, ...] = ()
    batch: list[Made] = field(default_factory=list)
    """The calls of its batch, in their order; empty if it is in none."""
    children: list[Made] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    """What its commit wrote."""

    def __str__(self) -> str:
        found = self.outcome
        said = None if found is None else (found.status, found.error, found.changes.state, found.notes)
        within = "" if self.parent is None else f" in {self.parent.run.id}"
        mates = f" batch {[each.run.id for each in self.batch]}" if self.batch else ""
        return (
            f"{self.run and self.run.id}{within}{mates} {self.kind} {self.arguments} {said} saw {self.seen}"
            f" {self.began}..{self.ended}"
        )

    @property
    def code(self) -> str | None:
        error: Failure | None = self.outcome.error
        return error.code if error else None

    @property
    def is_committed(self) -> bool:
        return bool(self.outcome.changes.state == "committed")

    def leaves(self) -> Iterator[Made]:
        """The calls that do something themselves: this one, or those that it made."""
        if self.kind not in NESTS:
            yield self
        for child in self.children:
            yield from child.leaves()

    def earlier(self) -> Iterator[Made]:
        """What comes before it in its batch, and in those around it."""
        for each in self.batch[: self.batch.index(self)] if self.batch else ():
            yield from each.leaves()
        if self.parent is not None:
            yield from self.parent.earlier()

    def mates(self) -> Iterator[Made]:
        """The other calls of its batch and of those around it, and the calls that these made."""
        for each in self.batch:
            if each is not self:
                yield from {each, *each.leaves()}
        if self.parent is not None:
            yield from self.parent.mates()

    def writes(self) -> tuple[str, ...]:
        """What it may write."""
        words, command = self.arguments, self.arguments.get("command", "")
        if self.kind in ("write_file", "edit_file"):
            return (words["path"],)
        if self.kind == "lie":
            return words["path"], words["other"]
        if self.kind == "carry":
            return (words["other"],)
        if "mv " in command:
            return tuple(command.split("; touch ")[1].split(";")[0].split())
        if "; cp " in command:
            return (command.split("; cp ")[1].split()[1],)
        if "; rm -f " in command:
            return (command.split("; rm -f ")[1],)
        return tuple(piece.split(";")[0].split()[2] for piece in command.split("; printf ")[1:])

    def declared(self) -> tuple[str, ...]:
        """What haft knows beforehand that it writes."""
        return (self.arguments["path"],) if self.kind in ("write_file", "edit_file", "lie") else ()

    def reads(self) -> tuple[str, ...]:
        """What haft must assume that it reads. A file that it writes counts too."""
        if self.kind in ("write_file", "edit_file", "lie", "read_file"):
            return (self.arguments["path"],)
        return () if self.kind == "quiet_nest" else FILES

    def lies(self) -> tuple[str, ...]:
        """What it may write, and has not declared although it declares what it writes."""
        if any(each.kind == "quiet_nest" for each in self.callers()):
            return self.writes()
        return (self.arguments["other"],) if self.kind == "lie" else ()

    def is_void(self) -> bool:
        """Whether a call that made it came to nothing, so that what it saw does not count."""
        return any(each.code in ("conflict", "cancelled") for each in self.callers())

    def callers(self) -> Iterator[Made]:
        if self.parent is not None:
            yield self.parent
            yield from self.parent.callers()


@dataclass
class Refused:
    """An undo or redo that was refused."""

    verb: str
    calls: Sequence[Made]
    began: int
    ended: int
    why: str


def seen_by(made: Made) -> tuple[State | None, tuple[str, ...]]:
    """What a call says that it saw, and of which files it says something."""
    outcome, name = made.outcome, made.kind
    if name in NESTS or made.code not in (None, "tool-failed", "conflict"):
        return None, ()
    output = outcome.output or ""
    if name == "shell" and made.arguments["command"].startswith("for"):
        pairs = [line.partition("=") for line in output.splitlines() if "=" in line]
        if len(pairs) != len(FILES):
            return None, ()
        return {path: text for path, _, text in pairs if text}, FILES
    if name == "shell":
        return {line.split(":")[0]: line.split(":", 1)[1] for line in output.splitlines() if ":" in line}, FILES
    if name == "search" and outcome.status == "done":
        found = [line.split(":", 2) for line in output.splitlines() if line.count(":") >= 2]
        return {path: text for path, _number, text in found if path in FILES}, FILES
    if name == "read_file":
        path = made.arguments["path"]
        return ({path: output} if outcome.status == "done" and output else {}), (path,)
    if name == "carry" and outcome.status == "done":
        path, _, text = output.partition("=")
        return ({path: text} if text else {}), (path,)
    return None, ()


@dataclass
class Event:
    """A change set that reached the workspace."""

    seq: int
    run: str
    made: Sequence[Made]
    """The call that committed it, or those that were undone or redone."""
    is_reversal: bool
    touched: dict[str, str] = field(default_factory=dict)


class Oracle:
    """The proof of one schedule."""

    def __init__(self, made: Sequence[Made], refused: Sequence[Refused], *, isolation: str, engine: str) -> None:
        self.made = made
        self.refused = refused
        self.isolation = isolation
        self.engine = engine
        self.states: list[State] = []
        self.index: dict[str, int] = {}
        """By run: the state that it made."""
        self.events: list[Event] = []

    def prove(self, start: State, rows: Sequence[Any], tree: State) -> None:
        """Raise `Wrong` if something is not as it must be. `rows` are the change sets in their order."""
        by_run = {made.run.id: made for made in self.made}
        self.states = [start]
        for row in rows:
            state = dict(self.states[-1])
            if row.run in by_run:
                made = by_run[row.run]
                if not made.is_committed:
                    continue
                self._apply(made, state)
                event = Event(row.seq, row.run, [made], is_reversal=False, touched=made.parts)
            elif row.reverses:
                made_before = [by_run[run] for run in row.reverses]
                event = Event(row.seq, row.run, made_before, is_reversal=True)
                event.touched = {path: "" for made in made_before for path in made.parts}
                self._reverse(row.verb, made_before, state)
            else:
                raise Wrong(f"nobody made {row}")
            self.events.append(event)
            self.states.append(state)
            self.index[row.run] = len(self.states) - 1
        if tree != self.states[-1]:
            raise Wrong(f"the files are {tree}, not {self.states[-1]}")
        for made in self.made:
            self._check(made)
        for refused in self.refused:
            if not self._may_refuse(refused):
                raise Wrong(f"refused for no reason: {refused.verb} of {[*map(str, refused.calls)]}: {refused.why}")

    def _apply(self, made: Made, state: State) -> None:
        """Add what a committed call wrote, as the call saw its files, to the state. `made.parts` is what it wrote."""
        words, command = made.arguments, made.arguments.get("command", "")
        changed = {each.path for each in made.outcome.changes.files}
        if made.kind == "shell" and made.seen is None and made.outcome.status != "cancelled":
            raise Wrong(f"no look: {made}: {made.outcome.output}")
        seen = {} if made.seen is None else made.seen
        parts: dict[str, str] = {}
        tag = made.tag
        if made.kind == "write_file":
            parts[words["path"]] = words["content"]
        elif made.kind == "edit_file":
            parts[words["path"]] = state.get(words["path"], "").replace(",", f",{tag};")
        elif made.kind == "lie":
            parts = {words["path"]: words["text"], words["other"]: words["text"]}
        elif made.kind == "carry":
            parts[words["other"]] = seen.get(words["path"], "") + words["text"]
        elif "mv " in command:
            one, other = made.writes()
            parts = {one: seen.get(other, ""), other: seen.get(one, "")}
        elif "; cp " in command:
            one, other = command.split("; cp ")[1].split()[:2]
            parts[other] = seen.get(one, "")
        elif "; rm -f " in command:
            parts[made.writes()[0]] = ""
        else:
            for piece in command.split("; printf ")[1:]:
                _tag, how, path = piece.split(";")[0].split()
                parts[path] = (seen.get(path, "") if how == ">>" else "") + f"{tag},"
        made.parts = parts
        if changed - {*parts, "t"}:
            raise Wrong(f"it changed {changed}: {made}")
        for path, text in parts.items():
            _set(state, path, text)

    def _reverse(self, verb: str, made: Sequence[Made], state: State) -> None:
        is_undo = verb == "undo"
        for each in sorted(made, key=lambda one: self.index[one.run.id], reverse=is_undo):
            at = self.index[each.run.id]
            had, wanted = (at, at - 1) if is_undo else (at - 1, at)
            for path in each.parts:
                if state.get(path, "") != self.states[had].get(path, ""):
                    raise Wrong(f"{verb} of {each} overwrote {path}")
                _set(state, path, self.states[wanted].get(path, ""))

    def _check(self, made: Made) -> None:
        outcome, code = made.outcome, made.code
        if code not in (None, "conflict", "cancelled", "tool-failed"):
            raise Wrong(f"{code} {outcome.error}: {made}")
        if made.kind in NESTS:
            self._check_nest(made)
            return
        if any("flush_seconds" in note for note in outcome.notes):
            raise Wrong(f"torn: {made}")
        if code == "conflict":
            if made.is_committed:
                raise Wrong(f"a conflict committed: {made}")
            if not self._may_conflict(made):
                raise Wrong(f"a conflict for no reason: {made}")
            return
        committed = self.index.get(made.run.id)
        fit = None if made.seen is None else self._fitting(made, committed)
        self._check_batch(made, committed, fit)

    def _fitting(self, made: Made, committed: int | None) -> list[int]:
        """The committed states that it may have seen."""
        seen, states = made.seen or {}, self.states
        low = max((self.index.get(run, 0) for run in made.acknowledged), default=0)
        high = len(states) - 1 if committed is None else committed - 1

        def same(one: State, other: State, paths: Sequence[str]) -> bool:
            return all(one.get(path, "") == other.get(path, "") for path in paths)

        fit = [at for at in range(low, high + 1) if same(seen, states[at], made.looked)]
        if not fit:
            raise Wrong(f"it saw no committed state of {low}..{high}: {made}\n{states}")
        if committed is not None:
            wrote = [path for path in made.parts if path in made.looked]
            fit = [at for at in fit if same(states[at], states[committed - 1], wrote)]
            if not fit:
                raise Wrong(f"it lost an update: {made}\n{states}")
            is_serial = self.isolation == "serial"
            if is_serial and not any(same(states[at], states[committed - 1], made.looked) for at in fit):
                raise Wrong(f"no serial order: {made}\n{states}")
        return fit

    def _check_batch(self, made: Made, committed: int | None, fit: list[int] | None) -> None:
        """It saw what the earlier calls of its batch committed, and nothing that later ones did, and what they both
        wrote is as the later one wrote it."""
        if made.is_void():
            return
        states = self.states
        for earlier in made.earlier():
            is_void = earlier.code == "conflict" or earlier.is_void()
            if not is_void and any(made.tag in re.split("[,;]", text) for text in (earlier.seen or {}).values()):
                raise Wrong(f"{earlier} saw what came later: {made}")
            at = self.index.get(earlier.run.id)
            if at is None:
                continue
            if committed is not None and committed < at and {*made.parts} & {*earlier.parts}:
                raise Wrong(f"{earlier} overwrote what comes later: {made}")
            if fit is None or any(state >= at for state in fit):
                continue
            touched = [path for path in earlier.parts if path in made.looked]
            if any(states[at].get(path, "") != states[at - 1].get(path, "") for path in touched):
                raise Wrong(f"it did not see {earlier}: {made}\n{states}")

    def _check_nest(self, made: Made) -> None:
        """A call that makes calls changes nothing itself, and what its calls changed is undone if it is cancelled."""
        if made.outcome.changes.files:
            raise Wrong(f"it made changes: {made}")
        if made.code == "conflict":
            if not self._is_used_by_lies(made):
                raise Wrong(f"a conflict for no reason: {made}")
            if any(each.is_committed for each in made.leaves()):
                raise Wrong(f"a conflict committed: {made}")
        if made.outcome.status != "cancelled":
            return
        left = [each for each in made.leaves() if each.is_committed and not self._is_reversed(each)]
        if left and not self._may_refuse(Refused("undo", left, made.began, made.ended, "it was cancelled")):
            raise Wrong(f"it was cancelled, and this stayed for no reason: {[*map(str, left)]}: {made}")

    def _is_reversed(self, made: Made) -> bool:
        return any(event.is_reversal and made in event.made for event in self.events)

    def _between(self, began: int, ended: int) -> Iterator[Event]:
        return (event for event in self.events if began < event.seq <= ended)

    def _may_conflict(self, made: Made) -> bool:
        """Whether somebody outside of its batch committed, since it was made, what it may write or, with `serial`, what
        it may read; or a call of its batch wrote what it had not declared. Calls of which both declared a path wait for
        each other."""
        mates = {*made.mates(), made}
        needs = {*made.writes(), *(made.reads() if self.isolation == "serial" else ())}
        for event in self._between(made.began, made.ended):
            # Calls of a caller that has the workspace alone do not wait.
            waits = not event.is_reversal and (self.engine == "overlay" or event.made[0].parent is None)
            ordered = {*made.declared()} & {*event.made[0].declared()} if waits else set()
            if not mates & {*event.made} and needs & ({*event.touched} - ordered):
                return True
        return self._is_used_by_lies(made)

    @staticmethod
    def _is_used_by_lies(made: Made) -> bool:
        """Whether a call of its batch may write, without having declared it, what another one of the batch may use, and
        this is one of the two, or was made by one of them."""
        mates = [*made.mates()]
        used = {path for each in (made, *made.callers()) for path in (*each.reads(), *each.writes())}
        lies = {*made.lies()}
        return any(used & {*each.lies()} or lies & {*each.reads(), *each.writes()} for each in mates)

    def _may_refuse(self, refused: Refused) -> bool:
        """Whether somebody else changed the same paths since, or a call in which another one waited for the answer of
        a person was in progress."""
        if "waits for a person" in refused.why:
            return any(made.kind in NESTS and made.run.id in refused.why for made in self.made)
        calls = {*refused.calls}
        for made in calls:
            own = [event.seq for event in self.events if made in event.made and event.seq <= refused.began]
            for event in self._between(max(own, default=refused.began), refused.ended):
                if not {*event.made} <= calls and {*event.touched} & {*made.parts}:
                    return True
        return False


def _set(state: State, path: str, text: str) -> None:
    if text:
        state[path] = text
    else:
        state.pop(path, None)
