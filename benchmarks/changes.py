"""A call that changes three files, committed and undone, compared with a bare spawn and with a shadow git repository.

It is a program of its own, so that other benchmarks do not enlarge its heap. It prints one JSON object, by number of
files in the workspace; arguments give other numbers of files. Every round measures everything once, in turns; restoring
the workspace after a round is not timed.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TypeVar

from haft import ApprovalRequest, Outcome, ToolService

SIZES = (1_000, 10_000, 100_000)
ROUNDS, SLOW_ROUNDS = 30, 5
"""The slow ones are measured only in every sixth round."""
CALLS = 1_000
"""How many calls the disk usage is shown for."""
COMMAND = "echo x >> a/1; echo y > a/new; rm a/2"
PLACE = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None
"""On a disk: `/tmp` may be in memory, where nobody keeps a workspace."""
PLAIN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
PERSON = {f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

T = TypeVar("T")


async def yes(_request: ApprovalRequest) -> bool:
    return True


def git(directory: str, *words: str, **env: str) -> None:
    subprocess.run(["git", *words], cwd=directory, env={**os.environ, **PLAIN, **env}, check=True, capture_output=True)


class Workspace:
    """A repository with `files` small files, all committed, and beside it the homes of the services that work in it."""

    def __init__(self, base: str, files: int) -> None:
        self.base, self.path = base, os.path.join(base, "workspace")
        for number in range(files):
            directory = os.path.join(self.path, "a" if number < 100 else f"d{number // 10_000}/{number // 100}")
            if number % 100 == 0:
                os.makedirs(directory)
            with open(os.path.join(directory, str(number % 100)), "w") as file:
                file.write(f"content {number % 50}\n" * 10)
        git(self.path, "init", "-q")
        git(self.path, "add", "-A")
        git(self.path, "-c", "gc.auto=0", "commit", "-q", "-m", "all", **PERSON)
        self._before = {name: self._read(name) for name in ("1", "2")}

    def _read(self, name: str) -> bytes | None:
        try:
            with open(os.path.join(self.path, "a", name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def is_changed(self) -> bool:
        one = self._before["1"]
        assert one is not None
        return (self._read("1"), self._read("2"), self._read("new")) == (one + b"x\n", None, b"y\n")

    def is_as_before(self) -> bool:
        return {name: self._read(name) for name in ("1", "2")} == self._before and self._read("new") is None

    def put_back(self) -> None:
        for name, data in self._before.items():
            if data is not None and self._read(name) != data:
                with open(os.path.join(self.path, "a", name), "wb") as file:
                    file.write(data)
        if self._read("new") is not None:
            os.unlink(os.path.join(self.path, "a", "new"))

    def service(self, name: str, settings: Mapping[str, object] | None = None) -> ToolService:
        home = os.path.join(self.base, name)
        return ToolService.open(self.path, approver=yes, home=home, installed=False, settings=settings)


class ShadowGit:
    """What other programs do: a second repository over the same files, with a tree written before and after."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._env = {"GIT_DIR": os.path.join(workspace.base, "shadow"), "GIT_WORK_TREE": workspace.path}
        git(workspace.path, "init", "-q", "--bare", self._env["GIT_DIR"])
        self._snapshot()  # the first one stores everything, and is not measured

    def _snapshot(self) -> None:
        git(self._workspace.path, "-c", "gc.auto=0", "add", "-A", **self._env)
        git(self._workspace.path, "write-tree", **self._env)

    async def run(self) -> None:
        self._snapshot()
        await bare(self._workspace)
        self._snapshot()


async def bare(workspace: Workspace) -> None:
    subprocess.run(["/bin/sh", "-c", COMMAND], cwd=workspace.path, check=True)


async def committed(service: ToolService) -> Outcome:
    outcome = await service.call("shell", {"command": COMMAND})
    assert outcome.ok, outcome
    assert (outcome.changes.state, len(outcome.changes.files)) == ("committed", 3), outcome.changes
    return outcome


async def timed(taken: list[float], work: Callable[[], Awaitable[T]]) -> T:
    begin = time.perf_counter()
    found = await work()
    taken.append(time.perf_counter() - begin)
    return found


async def call_and_undo(workspace: Workspace, service: ToolService, call: list[float], undo: list[float]) -> None:
    outcome = await timed(call, lambda: committed(service))
    assert workspace.is_changed()
    undone = await timed(undo, lambda: service.undo(outcome.run_id))
    assert undone.ok, undone
    assert workspace.is_as_before()


async def compare(files: int) -> dict[str, float]:
    """Seconds for each way: medians of the rounds."""
    names = ("bare", "call", "undo", "shadow", "snapshot", "snapshot_undo")
    taken: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory(dir=PLACE) as base:
        workspace = Workspace(base, files)
        async with AsyncExitStack() as open_ones:
            service = await open_ones.enter_async_context(workspace.service("home"))
            slow = workspace.service("home of snapshots", {"changes.engine": "snapshot"})
            slow = await open_ones.enter_async_context(slow)
            shadow = ShadowGit(workspace)
            first: list[float] = []
            await call_and_undo(workspace, slow, first, [])
            for _ in range(3):
                await call_and_undo(workspace, service, [], [])
            for number in range(ROUNDS):
                await timed(taken["bare"], lambda: bare(workspace))
                assert workspace.is_changed()
                workspace.put_back()
                await call_and_undo(workspace, service, taken["call"], taken["undo"])
                if number % (ROUNDS // SLOW_ROUNDS) == 0:
                    await timed(taken["shadow"], shadow.run)
                    workspace.put_back()
                    await call_and_undo(workspace, slow, taken["snapshot"], taken["snapshot_undo"])
    return {"first_snapshot": first[0], **{name: statistics.median(taken[name]) for name in names}}


def disk_use(path: str) -> int:
    """Disk usage as `du` counts it: blocks, and a file with two names once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for directory, _, names in os.walk(path):
        for place in (directory, *(os.path.join(directory, name) for name in names)):
            status = os.lstat(place)
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                total += status.st_blocks * 512
    return total


async def disk() -> dict[str, float]:
    """The disk space that the calls leave beside the workspace, when the service is closed."""
    with tempfile.TemporaryDirectory(dir=PLACE) as base:
        workspace = Workspace(base, SIZES[0])
        async with workspace.service("home") as service:
            await committed(service)
        before = disk_use(base) - disk_use(workspace.path)
        async with workspace.service("home") as service:
            for _ in range(CALLS):
                workspace.put_back()
                await committed(service)
        return {"calls": CALLS, "bytes": disk_use(base) - disk_use(workspace.path) - before}


async def measure(sizes: tuple[int, ...]) -> dict[str, dict[str, float]]:
    found = {str(files): await compare(files) for files in sizes}
    return {**found, "disk": await disk()}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(tuple(map(int, sys.argv[1:])) or SIZES))))
