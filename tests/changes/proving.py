"""Chains of nasty runs through a real service, each proven: told exactly, taken back exactly, brought back exactly.

Also a program, for machines that lack something: `proving.py FIRST COUNT BASE [CAPABILITIES]` proves some chains and
prints a line of JSON for each; where it is root it keeps no other capabilities than those (a mask in hexadecimal).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import json
import os
import random
import shutil
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import nasty
from fingerprint import Found, difference, fingerprint

from haft.service import ToolService

PYTHON = next(path for path in ("/usr/bin/python3", sys.executable) if os.access(path, os.X_OK))
LACKING = () if shutil.which("git") else ("make_repository", "make_repository_with_commit")
HEAVY = ("make_ten_thousand_files",)
SIZES = (1, 3, 8, 20)
"""How many mutations a run makes."""
LENGTH = 10 if "HAFT_MORE" in os.environ else 7
"""How many runs a chain has."""
PR_CAPBSET_DROP = 24

Tree = dict[bytes, Found]
Told = dict[bytes, tuple[Any, ...]]


class Wrong(AssertionError):
    """Something is not what it must be."""


@dataclass
class Proven:
    """What a chain showed."""

    seed: int
    runs: int = 0
    changed: int = 0
    """Paths, in all runs together."""
    held: int = 0
    reversed: int = 0
    """Runs that were taken back out of order."""
    refused: int = 0
    """Those that could not be, with nothing touched."""
    engines: list[str] = field(default_factory=list)
    reasons: list[str | None] = field(default_factory=list)
    wrong: str | None = None


def told(changes: Any) -> Told:
    """What a run says that it changed."""
    return {
        os.fsencode(each.path): (
            each.type, each.kind, each.before, each.after,
            None if each.mode_before is None else stat.S_IMODE(each.mode_before),
            None if each.mode_after is None else stat.S_IMODE(each.mode_after),
        )
        for each in changes.files
    }  # fmt: skip


def to_be_told(before: Tree, after: Tree) -> Told:
    """What it must say, from two looks at the tree."""
    found = {}
    for path in before.keys() | after.keys():
        was, now = before.get(path), after.get(path)
        shown = now or was
        assert shown is not None
        if was is not None and now is not None and was._replace(names=()) == now._replace(names=()):
            continue
        found[path] = (
            "create" if was is None else "delete" if now is None else "modify",
            shown.kind if shown.kind in ("file", "directory", "link") else "other",
            was.content if was is not None and was.kind == "file" else None,
            now.content if now is not None and now.kind == "file" else None,
            None if was is None or was.kind == "link" else was.mode,
            None if now is None or now.kind == "link" else now.mode,
        )
    return found


class Prover:
    """A service over a workspace, and what must hold at every step. With `links`, which names are one file too."""

    def __init__(self, tree: Path, service: ToolService, *, links: bool) -> None:
        self.tree = tree
        self.service = service
        self._links = links
        self._output = ""

    def look(self) -> Tree:
        found = fingerprint(self.tree, links=self._links)
        # Another name that lies elsewhere is none of the tree's: a layer that is not swept up yet.
        return {path: each if len(each.names) > 1 else each._replace(names=()) for path, each in found.items()}

    def must_be(self, wanted: Tree, when: str) -> None:
        if lines := difference(wanted, self.look(), most=12):
            raise Wrong("\n".join([f"{when}, the tree is not what it must be:", *lines, self._output]))

    async def run(self, command: str) -> tuple[Any, Tree]:
        """One call, and the tree after it. What is held is looked at and applied."""
        before = self.look()
        outcome = await self.service.call("shell", {"command": command})
        self._output = outcome.output
        held = outcome.changes.state == "held"
        if held:
            self.must_be(before, "after a call whose changes are held")
            applied = await self.service.apply(outcome.run_id)
            if applied.error is not None:
                raise Wrong(f"what is held ({outcome.error}) could not be applied: {applied.error}")
        elif outcome.status != "done":
            raise Wrong(f"the call ended {outcome.status}: {outcome.error}\n{outcome.output}")
        after = self.look()
        says, must = told(outcome.changes), to_be_told(before, after)
        if says != must or outcome.changes.state != ("held" if held else "committed" if must else "none"):
            lines = [f"{path!a}: {says.get(path)}, not {must.get(path)}" for path in {*says, *must}]
            lines = [line for line in lines if len(set(line.split(": ", 1)[1].split(", not "))) == 2]
            raise Wrong("\n".join([f"it is {outcome.changes.state}, and says of itself:", *lines[:12], self._output]))
        return outcome, after

    async def reverse(self, verb: str, run: str, wanted: Tree) -> None:
        done = await (self.service.undo(run) if verb == "undo" else self.service.redo(run))
        if done.error is not None:
            raise Wrong(f"{verb} failed: {done.error}\n{self._output}")
        self.must_be(wanted, f"after {verb}")

    async def try_to_undo(self, run: str) -> bool:
        """Out of order: done, or refused with nothing touched."""
        before = self.look()
        done = await self.service.undo(run)
        if done.error is None:
            return True
        if done.error.code != "conflict":
            raise Wrong(f"undo out of order failed: {done.error}\n{self._output}")
        self.must_be(before, "after an undo that was refused")
        return False


@contextlib.asynccontextmanager
async def proving(base: Path, settings: dict[str, Any], *, links: bool = False):
    """A prover over a new, empty workspace, all of which is gone afterwards."""
    tree = base / "workspace"
    tree.mkdir(parents=True)
    service = ToolService.open(
        tree, home=base / "home", approver=lambda _request: True, settings=settings, installed=False
    )
    try:
        async with service:
            yield Prover(tree, service, links=links)
    finally:
        nasty.erase(os.fsencode(base))


async def prove_chain(seed: int, base: Path, settings: dict[str, Any], *, links: bool = False) -> Proven:
    """A tree and some runs over it, each taken back and brought back; then all of them; then some in any order."""
    proven, chance = Proven(seed), random.Random(f"{seed} chain")
    async with proving(base, settings, links=links) as prover:
        nasty.sequence(seed, 0, without=LACKING).populate(prover.tree)
        try:
            await _prove(prover, proven, chance)
        except Wrong as wrong:
            proven.wrong = f"chain {seed}, run {proven.runs}: {wrong}"
    return proven


async def _prove(prover: Prover, proven: Proven, chance: random.Random) -> None:
    states, runs = [prover.look()], []
    for number in range(LENGTH):
        script = nasty.sequence(1000 * proven.seed + number, chance.choice(SIZES), without=(*LACKING, *HEAVY))
        proven.runs += 1
        outcome, after = await prover.run(script.command(PYTHON))
        changes = outcome.changes
        proven.changed += len(changes.files)
        proven.held += changes.state == "held"
        proven.engines.append(changes.engine)
        proven.reasons.append(changes.reason)
        if changes.state == "none":
            continue
        for verb, wanted in (("undo", states[-1]), ("redo", after)):
            await prover.reverse(verb, outcome.run_id, wanted)
        runs.append(outcome.run_id)
        states.append(after)
    for at in reversed(range(len(runs))):
        await prover.reverse("undo", runs[at], states[at])
    for at, run in enumerate(runs):
        await prover.reverse("redo", run, states[at + 1])
    await _prove_out_of_order(prover, proven, chance.sample(runs, len(runs)), states[-1])


async def _prove_out_of_order(prover: Prover, proven: Proven, runs: list[str], end: Tree) -> None:
    """Whatever was taken back in whatever order, bringing it back the other way round leads to where it began."""
    undone: list[tuple[str, Tree]] = []
    for run in runs:
        before = prover.look()
        if await prover.try_to_undo(run):
            undone.append((run, before))
    for run, before in reversed(undone):
        await prover.reverse("redo", run, before)
    prover.must_be(end, "after all was brought back")
    proven.reversed += len(undone)
    proven.refused += len(runs) - len(undone)


def main() -> None:
    first, count, base, *capabilities = sys.argv[1:]
    if capabilities and os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for number in range(64):
            if not int(capabilities[0], 16) >> number & 1:
                libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
        os.execv(
            sys.executable, [sys.executable, __file__, first, count, base]
        )  # What was dropped is gone from here on.
    for seed in range(int(first), int(first) + int(count)):
        proven = asyncio.run(prove_chain(seed, Path(base) / f"chain{seed}", {}))
        print(json.dumps(dataclasses.asdict(proven)), flush=True)


if __name__ == "__main__":
    main()
