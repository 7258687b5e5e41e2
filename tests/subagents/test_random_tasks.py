"""Random tasks in layers, one after another and side by side: what their calls see and leave is what the same calls see
and leave in a plain directory. Applied, dropped, and undone."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haft import ToolService
from sampling import IS_AGAIN, MORE, SEED

sys.path.insert(0, str(Path(__file__).parents[1] / "changes"))
from layered_calls import Caller, shell, write

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays"),
]

PATHS = ("a", "b", "d/x", "d/y", "e/z", "n/m/f")
LOOK = 'find . -type f | LC_ALL=C sort | while read -r f; do echo "$f=$(cat "$f")"; done'


def drawn_call(chance, tag):
    one, other = chance.sample(PATHS, 2)
    parents = f"mkdir -p $(dirname {one}) $(dirname {other})"
    line = chance.choice([
        f"echo {tag} >> {one}", f"rm -rf {one}", f"mv {one} {other}", f"cp {one} {other}", "rm -rf d", "mv d D",
        "mv D d", f"chmod 600 {one}", f"rm -rf e; mkdir e; echo {tag} > e/z", f"echo {tag} > {one}; exit 3",
        "rm -rf n; echo f > n",
    ])  # fmt: skip
    return write(one, f"{tag}\n") if chance.random() < 0.25 else shell(f"exec 2>/dev/null; {parents}; {line}; {LOOK}")


def done_plainly(call, place):
    """What a call answers in a plain directory; None if it is an error there."""
    if call[0] == "write_file":
        file = place / call[1]["path"]
        if file.is_dir() or any(above.is_file() for above in file.parents):
            return None
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(call[1]["content"])
        return ""
    done = subprocess.run(["bash", "-c", call[1]["command"]], cwd=place, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def tree(place):
    found = {}
    for path in sorted(place.rglob("*")):
        name, mode = str(path.relative_to(place)), path.stat().st_mode
        found[name] = (mode, path.read_text() if path.is_file() else None)
    return found


def changed(before, after):
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}


class Schedule:
    def __init__(self, service, base, seed):
        self.service, self.base, self.chance = service, base, random.Random(f"{SEED} tasks {seed}")
        self.seed, self.workspace = seed, base / "workspace"

    async def task(self, number):
        """A task with random calls, which the same calls in a plain directory prove. Its run, and the tree in the
        end."""
        model = self.base / f"model-{self.seed}-{number}"
        shutil.copytree(self.workspace, model)
        calls = [drawn_call(self.chance, f"{self.seed}.{number}.{n}") for n in range(self.chance.randrange(1, 6))]
        expected = [done_plainly(call, model) for call in calls]
        outcome = await self.service.call("caller", {"calls": calls, "layer": True})
        assert outcome.error is None
        for call, was, said in zip(calls, expected, outcome.result, strict=True):
            if was is None:
                assert said.startswith(("tool-failed", "invalid-arguments")), (self.seed, call, said)
            elif call[0] == "shell":
                assert said == was, (self.seed, call)
        after = tree(model)
        shutil.rmtree(model)
        return outcome, after

    async def carry_out(self):
        for number in range(3):
            before = tree(self.workspace)
            tasks = await asyncio.gather(*(self.task(f"{number}-{one}") for one in range(self.chance.choice([1, 2]))))
            assert tree(self.workspace) == before
            applied, now = [], before
            for outcome, after in tasks:
                mine = changed(before, after)
                assert (outcome.changes.state == "held") == bool(mine), (self.seed, mine, outcome.changes)
                if not mine:
                    continue
                if self.chance.random() < 0.25:
                    assert (await self.service.drop(outcome.run_id)).error is None
                    continue
                settled = await self.service.changes.apply(outcome.run_id)
                if settled.error is None:
                    then, now = now, {path: state for path, state in now.items() if path not in mine}
                    now |= {path: state for path, state in after.items() if path in mine}
                    assert not mine & changed(before, then) or then == before, (self.seed, mine)
                    applied.append((outcome.run_id, then))
                else:
                    assert settled.error.code == "conflict" and applied, (self.seed, settled.error)
                    assert (await self.service.drop(outcome.run_id)).error is None
                assert tree(self.workspace) == now, self.seed
            for run, then in reversed(applied):
                if self.chance.random() < 0.5:
                    break
                assert (await self.service.undo(run)).error is None
                assert tree(self.workspace) == then, self.seed


def test_tasks_in_layers_leave_what_their_calls_leave_in_a_plain_directory(outside_tmp):
    outside_tmp.chmod(0o755)
    workspace = outside_tmp / "workspace"
    for path in PATHS[:-1]:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(f"{path}\n")

    async def main():
        caller = Caller()
        async with ToolService.open(workspace, home=outside_tmp / "home", tools=[caller], installed=False) as service:
            caller.service = service
            for seed in range(1 if IS_AGAIN else 2 * MORE):
                await Schedule(service, outside_tmp, seed).carry_out()

    os.umask(0o022)
    asyncio.run(main())
