"""Random schedules: callers that read and change a few files at the same time, and what must be true of what they saw.

The oracle is the list of commits in their order. A call must have seen one state between two commits, not older than
the commits that had been answered when it was made; what a commit changed must not have changed since that state; and
with `serial`, nothing that a committing call read may have changed since either. A batch has its own order besides.

Also a program: `python random_schedules.py FIRST COUNT [ENGINE] [ISOLATION]` proves so many schedules.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haft import Context, ToolService, tool
from haft.contracts import HaftError

FILES = ("f0", "f1", "d/f2", "d/f3")
LOOK = f'for f in {" ".join(FILES)}; do echo "$f=$(cat $f 2>/dev/null)"; done'
State = dict[str, str]
"""The content of each file that exists."""


class Wrong(AssertionError):
    """Something is not what it must be."""


@dataclass(eq=False)
class Made:
    """One call, and what is known of it."""

    kind: str
    arguments: dict[str, Any]
    tag: str
    acknowledged: frozenset[str] = frozenset()
    """The runs that had been answered when the call was made."""
    run: Any = None
    outcome: Any = None
    seen: State | None = None
    """What it saw; None if it says nothing about it. A file that it did not look at is not in `looked`."""
    looked: tuple[str, ...] = ()
    before: list[Made] = field(default_factory=list)
    """The earlier calls of its batch."""
    parts: dict[str, str] = field(default_factory=dict)
    """What its commit wrote."""
    is_undone: bool = False

    def __str__(self) -> str:
        found = self.outcome
        said = None if found is None else (found.status, found.error and found.error.code, found.changes.state)
        return f"{self.run and self.run.id} {self.kind} {self.arguments} {said} saw {self.seen}"


@tool(writes=["path"], reads=[])
async def lie(path: str, other: str, text: str, *, context: Context) -> str:
    """Writes two files, and declares one. It reads none."""
    context.workspace.replace(path, text.encode())
    await asyncio.sleep(0)
    context.workspace.replace(other, text.encode())
    return "written"


@tool
async def carry(path: str, other: str, text: str, *, context: Context) -> str:
    """Copies a file in this process, and adds to the copy."""
    try:
        with context.workspace.open(path) as file:
            was = file.read().decode()
    except HaftError:
        was = ""
    await asyncio.sleep(0)
    context.workspace.replace(other, f"{was}{text}".encode())
    return f"{path}={was}"


def draw(chance: random.Random, tag: str) -> tuple[str, dict[str, Any]]:
    """A call: the kind, and the arguments."""
    one, other = chance.sample(FILES, 2)
    kind = chance.choices(
        ["read", "look", "grep", "search", "append", "append-more", "copy", "swap", "write", "edit", "remove", "fail",
         "lie", "carry", "write-two"],
        [2, 3, 2, 2, 4, 2, 3, 2, 3, 3, 1, 2, 2, 3, 2],
    )[0]  # fmt: skip
    lines = {
        "look": "true",
        "append": f"printf {tag}, >> {one}",
        "append-more": f"printf {tag}, >> {one}; printf {tag}, >> {other}",
        "copy": f"cp {one} {other} || rm -f {other}",
        "swap": f"touch {one} {other}; mv {one} t; mv {other} {one}; mv t {other}",
        "remove": f"rm -f {one}",
        "fail": f"printf {tag}, >> {one}; exit 3",
        "write-two": f"printf {tag}, > {one}; printf {tag}, > {other}",
    }
    if kind in lines:
        return "shell", {"command": f"{LOOK}; {lines[kind]}"}
    return {
        "read": ("read_file", {"path": one}),
        "grep": ("shell", {"command": f"grep -Hs '' {' '.join(FILES)}"}),
        "search": ("search", {"pattern": "^"}),
        "write": ("write_file", {"path": one, "content": f"{tag},"}),
        "edit": ("edit_file", {"path": one, "old_string": ",", "new_string": f",{tag},", "replace_all": True}),
        "lie": ("lie", {"path": one, "other": other, "text": f"{tag},"}),
        "carry": ("carry", {"path": one, "other": other, "text": f"{tag},"}),
    }[kind]


def seen_by(made: Made) -> tuple[State | None, tuple[str, ...]]:
    """What a call says that it saw, and of which files it says something."""
    outcome, name = made.outcome, made.kind
    if outcome.status == "cancelled" or (outcome.error and outcome.error.code not in ("tool-failed", "conflict")):
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


class Schedule:
    """One schedule in a service, and its proof."""

    def __init__(self, service: ToolService, workspace: Path, seed: int, *, isolation: str, engine: str) -> None:
        self.service = service
        self.workspace = workspace
        self.seed = seed
        self.isolation = isolation
        self.engine = engine
        self.chance = random.Random(f"{seed} schedule")
        self.made: list[Made] = []
        self.reversed: list[tuple[str, str, Any]] = []
        self._answered: set[str] = set()
        self._count = 0

    # Making calls.

    def _tag(self) -> str:
        self._count += 1
        return f"{self.seed}.{self._count}"

    async def carry_out(self) -> None:
        for path in FILES:
            (self.workspace / path).parent.mkdir(exist_ok=True)
        first = self.service._transactions.ledger.latest()
        start = self.tree()
        callers = self.chance.choice([1, 2, 3, 4])
        await asyncio.gather(*(self._caller(random.Random(f"{self.seed} {n}")) for n in range(callers)))
        await asyncio.to_thread(self.service._transactions.publisher.settle)
        self.prove(start, first)

    async def _caller(self, chance: random.Random) -> None:
        mine: list[Made] = []
        for _ in range(chance.randrange(2, 5)):
            kind = chance.random()
            if kind < 0.3:
                mine += await self._batch(chance)
            elif kind < 0.4 and mine:
                await self._reverse(chance, mine)
            else:
                made = self._new(chance)
                made.run = self.service.call(made.kind, made.arguments)
                await self._end(chance, [made])
                mine.append(made)

    def _new(self, chance: random.Random) -> Made:
        tag = self._tag()
        made = Made(*draw(chance, tag), tag, frozenset(self._answered))
        self.made.append(made)
        return made

    async def _batch(self, chance: random.Random) -> list[Made]:
        calls = [self._new(chance) for _ in range(chance.randrange(2, 5))]
        batch = self.service.batch([(each.kind, each.arguments) for each in calls])
        for number, (made, run) in enumerate(zip(calls, batch.runs, strict=True)):
            made.run, made.before = run, calls[:number]
        await self._end(chance, calls)
        return calls

    async def _end(self, chance: random.Random, calls: list[Made]) -> None:
        if chance.random() < 0.12:
            await self._cancel(chance.choice(calls).run, chance.randrange(1, 7))
        for made in calls:
            made.outcome = await made.run
            self._answered.add(made.run.id)
            made.seen, made.looked = seen_by(made)

    @staticmethod
    async def _cancel(run: Any, at: int) -> None:
        """Cancel a call at one of its events."""
        count = 0
        async for _event in run:
            count += 1
            if count == at:
                run.cancel()
                return

    async def _reverse(self, chance: random.Random, mine: list[Made]) -> None:
        done = [each for each in mine if each.outcome.changes.state == "committed"]
        if not done:
            return
        made = chance.choice(done)
        for _ in range(chance.choice([1, 2])):
            verb = "redo" if made.is_undone else "undo"
            outcome = await getattr(self.service, verb)(made.run.id)
            self._answered.add(outcome.run_id)
            if outcome.status != "done":
                if outcome.error.code != "conflict":
                    raise Wrong(f"{verb} of {made}: {outcome.error}")
                return
            made.is_undone = not made.is_undone
            self.reversed.append((verb, outcome.run_id, made))

    # Proving.

    def tree(self) -> State:
        found = {}
        for path in FILES:
            with contextlib.suppress(FileNotFoundError):
                if text := (self.workspace / path).read_text():
                    found[path] = text
        return found

    def prove(self, start: State, first: int) -> None:
        """Raise `Wrong` if something is not as it must be."""
        rows = [row for row in self.service._transactions.ledger.all() if row.seq > first]
        self.order = [row.run for row in sorted(rows, key=lambda row: row.seq)]
        try:
            self._prove(start)
        except Wrong as wrong:
            told = "\n".join(map(str, self.made))
            raise Wrong(
                f"schedule {self.seed}: {wrong}\n{told}\nreversed {self.reversed}\norder {self.order}"
            ) from None

    def _prove(self, start: State) -> None:
        by_run = {made.run.id: made for made in self.made}
        reverses = {run: (verb, made) for verb, run, made in self.reversed}
        states, index = [start], {}
        for run in self.order:
            state = dict(states[-1])
            if run in by_run:
                if by_run[run].outcome.changes.state not in ("committed",):
                    continue
                self._apply(by_run[run], state)
            elif run in reverses:
                verb, made = reverses[run]
                at = index[made.run.id]
                wanted, had = (at - 1, at) if verb == "undo" else (at, at - 1)
                for path in made.parts:
                    if states[-1].get(path, "") != states[had].get(path, ""):
                        raise Wrong(f"{verb} of {made} overwrote {path}")
                    _set(state, path, states[wanted].get(path, ""))
            else:
                continue
            states.append(state)
            index[run] = len(states) - 1
        if self.tree() != states[-1]:
            raise Wrong(f"the files are {self.tree()}, not {states[-1]}")
        for made in self.made:
            self._check(made, states, index)
        if (self.workspace / "t").exists():
            raise Wrong("half of a swap is there")

    def _apply(self, made: Made, state: State) -> None:
        """Add what a committed call wrote, as the call saw its files, to the state. `made.parts` is what it wrote."""
        words, command = made.arguments, made.arguments.get("command", "")
        changed = {each.path for each in made.outcome.changes.files}
        seen = {} if made.seen is None else made.seen
        parts: dict[str, str] = {}
        if made.kind == "shell" and made.seen is None and made.outcome.status != "cancelled":
            raise Wrong(f"no look: {made}: {made.outcome.output}")
        tag = made.tag
        if made.kind == "write_file":
            parts[words["path"]] = words["content"]
        elif made.kind == "edit_file":
            parts[words["path"]] = state.get(words["path"], "").replace(",", f",{tag},")
        elif made.kind == "lie":
            parts = {words["path"]: words["text"], words["other"]: words["text"]}
        elif made.kind == "carry":
            parts[words["other"]] = seen.get(words["path"], "") + words["text"]
        elif "mv " in command:
            one, other = command.split("; touch ")[1].split(";")[0].split()
            parts = {one: seen.get(other, ""), other: seen.get(one, "")}
        elif "; cp " in command:
            one, other = command.split("; cp ")[1].split()[:2]
            parts[other] = seen.get(one, "")
        elif "; rm -f " in command:
            parts[command.split("; rm -f ")[1]] = ""
        else:
            for piece in command.split("; printf ")[1:]:
                _tag, how, path = piece.split(";")[0].split()
                parts[path] = (seen.get(path, "") if how == ">>" else "") + f"{tag},"
        made.parts = parts
        if changed - {*parts, "t"}:
            raise Wrong(f"it changed {changed}: {made}")
        for path, text in parts.items():
            _set(state, path, text)

    def _check(self, made: Made, states: list[State], index: dict[str, int]) -> None:
        outcome = made.outcome
        code = outcome.error.code if outcome.error else None
        if code not in (None, "conflict", "cancelled", "tool-failed"):
            raise Wrong(f"{code} {outcome.error}: {made}")
        if code == "conflict" and outcome.changes.state == "committed":
            raise Wrong(f"a conflict committed: {made}")
        if any("flush_seconds" in note for note in outcome.notes):
            raise Wrong(f"torn: {made}")
        committed = index.get(made.run.id)
        if made.seen is None or code == "conflict":
            return
        low = max((index.get(run, 0) for run in made.acknowledged), default=0)
        high = len(states) - 1 if committed is None else committed - 1
        fit = [
            at for at in range(low, high + 1) if all(made.seen.get(p, "") == states[at].get(p, "") for p in made.looked)
        ]
        if not fit:
            raise Wrong(f"it saw no committed state of {low}..{high}: {made}\n{states}")
        if committed is not None:
            blind = {made.arguments.get("path")} if made.kind in ("write_file", "lie") else set()
            wrote = [path for path in made.parts if path not in blind]
            fit = [at for at in fit if all(states[at].get(p, "") == states[committed - 1].get(p, "") for p in wrote)]
            if not fit:
                raise Wrong(f"it lost an update: {made}\n{states}")
            if self.isolation == "serial" and not any(
                all(states[at].get(p, "") == states[committed - 1].get(p, "") for p in made.looked) for at in fit
            ):
                raise Wrong(f"no serial order: {made}\n{states}")
        self._check_batch(made, fit, states, index)

    def _check_batch(self, made: Made, fit: list[int], states: list[State], index: dict[str, int]) -> None:
        """It saw what the earlier calls of its batch committed, and nothing that later ones did."""
        for earlier in made.before:
            at = index.get(earlier.run.id)
            if earlier.seen is not None and any(made.tag in text.split(",") for text in earlier.seen.values()):
                raise Wrong(f"{earlier} saw what came later: {made}")
            if at is None or any(state >= at for state in fit):
                continue
            touched = [path for path in earlier.parts if path in made.looked]
            if any(states[at].get(path, "") != states[at - 1].get(path, "") for path in touched):
                raise Wrong(f"it did not see {earlier}: {made}\n{states}")


def _set(state: State, path: str, text: str) -> None:
    if text:
        state[path] = text
    else:
        state.pop(path, None)


async def yes(_request: Any) -> bool:
    return True


async def prove(base: Path, seeds: range, *, engine: str = "auto", isolation: str = "snapshot") -> None:
    """Carry out schedules one after another in one service."""
    workspace = base / "workspace"
    workspace.mkdir()
    (workspace / "d").mkdir()
    settings = {"changes.engine": engine, "changes.flush_seconds": 0, "changes.isolation": isolation}
    async with ToolService.open(
        workspace, home=base / "home", tools=[lie, carry], approver=yes, installed=False, settings=settings
    ) as service:
        for seed in seeds:
            async with asyncio.timeout(60):
                await Schedule(service, workspace, seed, isolation=isolation, engine=engine).carry_out()


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:3])
    engine, isolation = (*sys.argv[3:5], *("auto", "snapshot")[len(sys.argv[3:5]) :])
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as directory:
        asyncio.run(prove(Path(directory), range(first, first + count), engine=engine, isolation=isolation))
    print(f"{count} schedules")
