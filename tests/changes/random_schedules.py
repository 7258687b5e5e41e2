"""Random schedules: callers that read and change a few files at the same time, with batches, calls that make calls,
cancellations, undo and redo. `schedule_oracle` says what must be true of what they saw.

Also a program: `python random_schedules.py FIRST COUNT [ENGINE] [ISOLATION]` proves so many schedules.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from haft import Context, ToolService, tool
from haft.contracts import HaftError

sys.path.insert(0, str(Path(__file__).parent))
from schedule_oracle import FILES, Made, Oracle, Refused, State, Wrong, seen_by

LOOK = f'for f in {" ".join(FILES)}; do echo "$f=$(cat $f 2>/dev/null)"; done'
BODIES: dict[str, Callable[[], Awaitable[None]]] = {}
"""What each call that makes calls does, by its tag."""
DEEPEST = 2
LONGEST = 100
"""What is longer when a schedule begins is removed: `search` does not show long lines whole."""


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


@tool
async def nest(tag: str) -> str:
    """Makes calls."""
    await BODIES[tag]()
    return "made"


@tool(writes=[], reads=[])
async def quiet_nest(tag: str) -> str:
    """Makes calls that write, and declares nothing. They read nothing."""
    await BODIES[tag]()
    return "made"


def draw(chance: random.Random, tag: str, *, is_blind: bool = False) -> tuple[str, dict[str, Any]]:
    """A call: the tool, and the arguments. If it is blind, it reads nothing."""
    one, other = chance.sample(FILES, 2)
    if is_blind:
        kind = chance.choice(["write", "lie"])
        return _file_call(kind, one, other, tag)
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
    return _file_call(kind, one, other, tag)


def _file_call(kind: str, one: str, other: str, tag: str) -> tuple[str, dict[str, Any]]:
    return {
        "read": ("read_file", {"path": one}),
        "grep": ("shell", {"command": f"grep -Hs '' {' '.join(FILES)}"}),
        "search": ("search", {"pattern": "^"}),
        "write": ("write_file", {"path": one, "content": f"{tag},"}),
        "edit": ("edit_file", {"path": one, "old_string": ",", "new_string": f",{tag};", "replace_all": True}),
        "lie": ("lie", {"path": one, "other": other, "text": f"{tag},"}),
        "carry": ("carry", {"path": one, "other": other, "text": f"{tag},"}),
    }[kind]


class Schedule:
    """One schedule in a service, and its proof."""

    def __init__(self, service: ToolService, workspace: Path, seed: int, *, isolation: str, engine: str) -> None:
        self.service = service
        self.workspace = workspace
        self.seed = seed
        self.isolation = isolation
        self.engine = engine
        self.made: list[Made] = []
        self.refused: list[Refused] = []
        self._ledger = service._transactions.ledger
        self._answered: set[str] = set()
        self._count = 0

    async def carry_out(self) -> None:
        for path, text in self.tree().items():
            if len(text) > LONGEST:
                (self.workspace / path).unlink()
        first, start = self._ledger.latest(), self.tree()
        callers = random.Random(f"{self.seed} schedule").choice([1, 2, 3, 4])
        await asyncio.gather(*(self._caller(random.Random(f"{self.seed} {n}")) for n in range(callers)))
        await asyncio.to_thread(self.service._transactions.publisher.settle)
        self._prove(start, first)

    async def _caller(self, chance: random.Random) -> None:
        mine: list[Made] = []
        for _ in range(chance.randrange(2, 5)):
            kind = chance.random()
            if kind < 0.15 and mine:
                await self._reverse(chance, mine)
            else:
                calls = [self._drawn(chance) for _ in range(chance.randrange(2, 5) if kind < 0.4 else 1)]
                self._make(calls, is_batch=kind < 0.4)
                await self._end(chance, calls)
                mine += [leaf for each in calls for leaf in each.leaves()]

    def _drawn(self, chance: random.Random, parent: Made | None = None, depth: int = 0) -> Made:
        """A call that is not made yet."""
        self._count += 1
        tag = f"{self.seed}.{self._count}"
        is_blind = parent is not None and parent.kind == "quiet_nest"
        if depth == DEEPEST or is_blind or chance.random() > 0.12:
            return Made(*draw(chance, tag, is_blind=is_blind), tag, parent)
        made = Made(chance.choice(["nest", "quiet_nest"]), {"tag": tag}, tag, parent)
        calls = [self._drawn(chance, made, depth + 1) for _ in range(chance.randrange(1, 4))]
        how = chance.choice(["in a row", "together", "batch"])

        async def body() -> None:
            for some in [[each] for each in calls] if how == "in a row" else [calls]:
                self._make(some, is_batch=how == "batch")
                made.children += some
                for each in some:
                    await self._ended(each)

        BODIES[tag] = body
        return made

    def _make(self, calls: list[Made], *, is_batch: bool) -> None:
        for made in calls:
            made.acknowledged, made.began = frozenset(self._answered), self._ledger.latest()
        if is_batch:
            runs = [*self.service.batch([(made.kind, made.arguments) for made in calls]).runs]
        else:
            runs = [self.service.call(made.kind, made.arguments) for made in calls]
        for made, run in zip(calls, runs, strict=True):
            made.run, made.batch = run, calls if is_batch else []
            self.made.append(made)

    async def _end(self, chance: random.Random, calls: list[Made]) -> None:
        if chance.random() < 0.12:
            await self._cancel(chance.choice(calls).run, chance.randrange(1, 7))
        for made in calls:
            await self._ended(made)

    async def _ended(self, made: Made) -> None:
        made.outcome = await made.run
        for child in made.children:
            if child.outcome is None:  # Its caller was cancelled.
                await self._ended(child)
        made.ended = self._ledger.latest()
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
        """Undo or redo a few calls."""
        states = {made: row.state for made in mine if (row := self._ledger.get(made.run.id)) is not None}
        done = [made for made, state in states.items() if made.is_committed and state in ("committed", "undone")]
        if not done:
            return
        chosen = chance.choice(done)
        calls = [made for made in done if states[made] == states[chosen] and (made is chosen or chance.random() < 0.3)]
        verbs = ["undo", "redo"] if states[chosen] == "committed" else ["redo", "undo"]
        for verb in verbs[: chance.choice([1, 2])]:
            began = self._ledger.latest()
            outcome = await getattr(self.service, verb)(*(made.run.id for made in calls))
            self._answered.add(outcome.run_id)
            if outcome.status != "done":
                if outcome.error.code != "conflict":
                    raise Wrong(f"{verb} of {[*map(str, calls)]}: {outcome.error}")
                self.refused.append(Refused(verb, calls, began, self._ledger.latest(), outcome.error.message))
                return

    def tree(self) -> State:
        found = {}
        for path in FILES:
            with contextlib.suppress(FileNotFoundError):
                if text := (self.workspace / path).read_text():
                    found[path] = text
        return found

    def _prove(self, start: State, first: int) -> None:
        rows = sorted((row for row in self._ledger.all() if row.seq > first), key=lambda row: row.seq)
        # A call that is held is in the list, too.
        committed = [row for row in rows if row.state in ("committed", "undone")]
        oracle = Oracle(self.made, self.refused, isolation=self.isolation, engine=self.engine)
        try:
            oracle.prove(start, committed, self.tree())
            if (self.workspace / "t").exists():
                raise Wrong("half of a swap is there")
        except Wrong as wrong:
            told = "\n".join(map(str, [*self.made, *rows]))
            raise Wrong(f"schedule {self.seed}: {wrong}\n{told}") from None


TOOLS: list[Any] = [lie, carry, nest, quiet_nest]


async def yes(_request: Any) -> bool:
    return True


async def prove(base: Path, seeds: range, *, engine: str = "auto", isolation: str = "snapshot") -> None:
    """Carry out schedules one after another in one service."""
    workspace = base / "workspace"
    workspace.mkdir()
    (workspace / "d").mkdir()
    settings = {"changes.engine": engine, "changes.flush_seconds": 0, "changes.isolation": isolation}
    async with ToolService.open(
        workspace, home=base / "home", tools=TOOLS, approver=yes, installed=False, settings=settings
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
