"""How costs grow with many files, change sets, runs and tools. The growth counts, not the seconds.

`make bench-growth` measures everything; `python -m benchmarks.growth undo log` measures parts, and `--scale 0.1` uses a
tenth of the sizes. State homes with many runs are filled through the storage, group by group, without making each run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice, product

from benchmarks.changes import PLACE, timed, yes
from benchmarks.growth_idle import LEAST_SECONDS, idle_seconds
from benchmarks.growth_pages import page_seconds
from benchmarks.growth_sessions import FEW, MANY, MOST, session_call_seconds
from benchmarks.measure import shown
from haft import ToolService, tool
from haft.audit.chain import Chain
from haft.contracts import Listing, ToolName, ToolSpec
from haft.registry import search as find
from haft.storage import Filter, StateHome, open_stores

TIMES = 8
FILES = 3_000
CHANGE_SETS = (1_000, 100_000)
RUNS = (10_000, 1_000_000)
FEWEST_RUNS = 1_000
TOOLS = 3_000
GROUP = 2_000
SEARCHED = (1_000, 10_000)
VERBS = ("list", "get", "create", "update", "delete", "search", "export")
NOUNS = ("invoice", "customer", "issue", "message", "channel", "deployment", "file", "page", "ticket", "event", "order")
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")
COMMANDS = {"log": ["log"], "doctor": ["doctor"], "store show": ["store", "show"], "audit list": ["audit", "list"]}


@dataclass(frozen=True)
class Growth:
    """One line of the table: the cost at two sizes, or compared with something else."""

    what: str
    small: float
    large: float
    against: str
    bar: float

    @property
    def ratio(self) -> float:
        return self.large / max(self.small, 1e-9)

    def line(self) -> str:
        verdict = "kept" if self.ratio <= self.bar else "NOT KEPT"
        cost = f"{shown(self.small):>9} {shown(self.large):>9}"
        return f"{self.what:<44} {cost}   {self.against:<34} {self.ratio:>6.2f}×  ≤ {self.bar:g} {verdict}"


@tool(readonly=True)
async def nothing() -> None:
    """Does nothing."""


def opened(base: str, **settings: object) -> ToolService:
    workspace = os.path.join(base, "workspace")
    os.makedirs(workspace, exist_ok=True)
    home = os.path.join(base, "home")
    return ToolService.open(
        workspace, tools=[nothing], approver=yes, home=home, installed=False, settings=settings or None
    )


# Many files.


async def undone(files: int) -> tuple[float, float]:
    """Seconds for the undo of a deletion of `files` files by the snapshot engine, and for `cp -a` of the same tree."""
    with tempfile.TemporaryDirectory(dir=PLACE) as base:
        tree = os.path.join(base, "workspace", "tree")
        for number in range(files):
            place = os.path.join(tree, f"d{number // 1000}", f"e{number // 20}")
            if number % 20 == 0:
                os.makedirs(place)
            with open(os.path.join(place, str(number)), "w") as file:
                file.write(f"content {number}\n" * 20)
        taken: list[float] = []
        async with opened(base, **{"changes.engine": "snapshot"}) as service:
            gone = await service.call("shell", {"command": "rm -rf tree"}, timeout=3600)
            assert gone.ok, gone.error
            back = await timed(taken, lambda: service.undo(gone.run_id))
            assert back.ok, back.error
        begin = time.perf_counter()
        subprocess.run(["cp", "-a", tree, os.path.join(base, "copy")], check=True)
        return taken[0], time.perf_counter() - begin


async def undo(scale: float) -> list[Growth]:
    small, large = int(FILES * scale), int(FILES * scale) * TIMES
    few, _ = await undone(small)
    many, copy = await undone(large)
    return [
        Growth(f"undo of {large:_} deleted files, packed", few, many, f"the same of {small:_}", 10),
        Growth(f"undo of {large:_} deleted files, packed", copy, many, "cp -a of the same tree", 10),
    ]


# Many change sets.


async def conflicted(sets: int) -> float:
    """Seconds until an undo of one file is refused because a later run changed the file."""
    with tempfile.TemporaryDirectory(dir=PLACE) as base:
        async with opened(base) as service:
            first = await service.call("write_file", {"path": "f", "content": "1"})
            connection = open_stores(StateHome(os.path.join(base, "home"))).connect()
            [known] = connection.ledger.all()
            for number in range(sets):
                row = replace(known, run=f"r_{number:024x}", latest=f"r_{number:024x}")
                connection.ledger.put(row, paths=[f"other/{number}"])
            connection.close()
            await service.call("write_file", {"path": "f", "content": "2"})
            taken: list[float] = []
            for _ in range(5):
                refused = await timed(taken, lambda: service.undo(first.run_id))
                assert refused.error is not None, refused
                assert refused.error.code == "conflict", refused
    return statistics.median(taken)


async def conflict(scale: float) -> list[Growth]:
    few, many = (max(1, int(sets * scale)) for sets in CHANGE_SETS)
    small, large = await conflicted(few), await conflicted(many)
    return [Growth(f"a conflict at {many:_} change sets", small, large, f"the same at {few:_}", 2)]


# Many runs.


async def filled(base: str, runs: int) -> float:
    """Fill a state home with `runs` copies of a real run, in storage and audit log. Returns the database bytes for each
    run."""
    async with opened(base) as service:
        await service.call("nothing")
    home = StateHome(os.path.join(base, "home"))
    stores = open_stores(home)
    connection = stores.connect()
    [document] = connection.runs.select(Filter(limit=1))
    run = document.split('"run":"')[1].split('"')[0]
    log = stores.audit_log()
    size = log.size()
    body = log.read(0, size).splitlines()[-1].split(b" ", 4)[4]
    chain = Chain(log)
    names = [f"r_{int(run[2:], 16) - number - 1:024x}" for number in range(runs)]
    for some in (names[start : start + GROUP] for start in range(0, runs, GROUP)):
        connection.runs.put([document.replace(run, name).encode() for name in some])
        chain.append([body.replace(run.encode(), name.encode()) for name in some])
    chain.close()
    connection.close()
    return os.path.getsize(home.database) / runs


def asked(base: str, words: list[str]) -> float:
    """Seconds for a command: the median of five."""
    env = {**os.environ, "HAFT_HOME": os.path.join(base, "home"), "HOME": base, "XDG_CONFIG_HOME": base}
    taken = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "haft", *words], cwd=os.path.join(base, "workspace"), env=env, capture_output=True
        )
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


async def log(scale: float) -> list[Growth]:
    few, many = (max(1, int(runs * scale)) for runs in RUNS)
    with tempfile.TemporaryDirectory(dir=PLACE) as small, tempfile.TemporaryDirectory(dir=PLACE) as large:
        await filled(small, few)
        each = await filled(large, many)
        print(f"{each:.0f} bytes of database for a run of a trivial tool", flush=True)
        return [
            Growth(f"haft {name} at {many:_} runs", asked(small, words), asked(large, words), f"the same at {few:_}", 2)
            for name, words in COMMANDS.items()
        ]


async def pages(scale: float) -> list[Growth]:
    few, many = FEWEST_RUNS, max(FEWEST_RUNS, int(RUNS[1] * scale))
    with tempfile.TemporaryDirectory(dir=PLACE) as small, tempfile.TemporaryDirectory(dir=PLACE) as large:
        await filled(small, few)
        await filled(large, many)
        before, after = await page_seconds(small), await page_seconds(large)
        return [
            Growth(f"{name} at {many:_} runs", before[name], after[name], f"the same at {few:_}", 2) for name in before
        ]


# Many tools, and a session in a workspace of many files.


async def idle(scale: float) -> list[Growth]:
    many = int(TOOLS * scale)
    none, some = [max(await asyncio.to_thread(idle_seconds, tools), LEAST_SECONDS) for tools in (0, many)]
    return [Growth(f"a minute of rest with {many:_} tools", none, some, "with none", 2)]


async def session(scale: float) -> list[Growth]:
    many = int(MANY * scale)
    small, large = await asyncio.to_thread(session_call_seconds, many=many)
    return [Growth(f"a writing session call beside {many:_} files", small, large, f"beside {FEW}", MOST)]


async def search(scale: float) -> list[Growth]:
    """A search that is the first in its list, as each `haft tools search` is."""

    def seconds(tools: int) -> float:
        listings = [
            Listing(
                ToolSpec(
                    ToolName(f"mcp__server{number % 97}__{verb}_{noun}_{number}"),
                    "mcp",
                    f"[MCP server server{number % 97}] {verb} the {noun} number {number} of {word}{number % 3_001}.",
                    {"type": "object", "properties": {"query": {"description": f"Which {noun}"}, noun: {}}},
                )
            )
            for number, (verb, noun, word) in enumerate(islice(cycle(product(VERBS, NOUNS, WORDS)), tools))
        ]
        taken: list[float] = []
        for _ in range(5):
            copied = [replace(listing, spec=replace(listing.spec)) for listing in listings]
            begin = time.perf_counter()
            find(copied, "create a new invoice of server7", limit=10)
            taken.append(time.perf_counter() - begin)
        return statistics.median(taken)

    few, many = (int(number * scale) for number in SEARCHED)
    return [Growth(f"tools search among {many:_} tools", seconds(few), seconds(many), f"among {few:_}", 15)]


PARTS: dict[str, Callable[[float], object]] = {
    "undo": undo,
    "conflict": conflict,
    "log": log,
    "pages": pages,
    "idle": idle,
    "session": session,
    "search": search,
}


def lines(names: list[str], scale: float) -> Iterator[Growth]:
    for name in names:
        yield from asyncio.run(PARTS[name](scale))  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[*PARTS])
    parser.add_argument("--scale", type=float, default=1.0)
    arguments = parser.parse_args()
    print(f"{'what':<44} {'small':>9} {'large':>9}   {'against':<34} {'ratio':>7}  promised")
    kept = True
    for row in lines(arguments.parts, arguments.scale):
        print(row.line(), flush=True)
        kept = kept and row.ratio <= row.bar
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
