"""Random trees of nested calls: some are cancelled, some fail, some are denied, some wait for a person, some are
batches, and some lock what others lock, so that they would wait for each other in a circle.

A tree is plain JSON that says what each call does; the same seed makes the same one. Every tree works in a directory of
its own, and the locks are the same for all trees; two hosts share them. `python nested_trees.py FIRST COUNT` proves
that many.
"""

import asyncio
import contextlib
import os
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from haft import Context, ToolService, tool
from haft.contracts import BadUsage, UnknownRun

sys.path.insert(0, str(Path(__file__).parents[1] / "changes"))
from fingerprint import difference, fingerprint

DEEPEST = 4
PLACES = 3
LOCKS = "xyz"
SERVICES = {}
"""The service that works on each tree, by the tree's directory."""


def plan(seed, place, *, isolated=True, threads=True):
    """What the outermost call of a tree does. A thread cannot be stopped: where it writes into the workspace itself,
    nothing is said of a tree with `threads`."""
    chance = random.Random(f"{seed} tree")
    left = [chance.randrange(3, 14), 2 if isolated and chance.random() < 0.15 else 0, threads]
    return _node(chance, place, 0, left)


def _node(chance, place, depth, left):
    steps = []
    for _ in range(chance.randrange(1, 5)):
        path = f"{place}/{chance.choice('abcd')}"
        kind = chance.choices(
            ["write", "builtin", "edit", "call", "together", "ask", "denied", "unknown", "fail", "hang", "shell"],
            [3, 4, 2, 8 if depth < DEEPEST else 0, 4 if depth < DEEPEST else 0, 2, 1, 1, 1, 1, 1],
        )[0]
        if kind in ("call", "together"):
            if left[0] <= 0:
                continue
            left[0] -= 1
            count = 1 if kind == "call" else chance.randrange(2, 4)
            nodes = [_node(chance, f"{place}/{n}" if count > 1 else place, depth + 1, left) for n in range(count)]
            is_batch = kind == "together" and chance.random() < 0.4
            steps.append({"do": "batch" if is_batch else "call", "nodes": nodes, "place": place})
        elif kind == "hang":
            steps.append({"do": "hang", "above": chance.randrange(3)})
        else:
            steps.append({"do": kind, "path": path, "text": f"{chance.random()}\n"})
    name = chance.choice(["node", "node", "thread_node" if left[2] else "node"])
    if left[1] and depth:
        left[1] -= 1
        name = "isolated_node"
    if chance.random() < 0.3:
        return {"tool": "locked_node", "steps": steps, "locks": chance.sample(LOCKS, chance.randrange(1, 3))}
    return {"tool": name, "steps": steps}


def node_call(one):
    """The tool and the arguments of a node."""
    return one["tool"], {name: value for name, value in one.items() if name != "tool"}


def step_call(step):
    """The tool and the arguments of a step that is a call."""
    path, text = step["path"], step["text"]
    return {
        "builtin": ("write_file", {"path": path, "content": text}),
        "edit": ("edit_file", {"path": path, "old_string": "0", "new_string": "o", "replace_all": True}),
        "ask": ("write_file", {"path": f"{path}.asked", "content": text}),
        "denied": ("write_file", {"path": f"{path}.denied", "content": text}),
        "unknown": ("nothing_like_it", {}),
        "shell": ("shell", {"command": f"mkdir -p $(dirname {path}); echo sh >> {path}; rm -f {path}.gone"}),
    }[step["do"]]


async def act(steps, context):
    """Do what a node says, asynchronously."""
    for step in steps:
        match step["do"]:
            case "call":
                await asyncio.gather(*(context.call(*node_call(one)) for one in step["nodes"]))
            case "batch":
                await SERVICES[step["place"].partition("/")[0]].batch([node_call(one) for one in step["nodes"]])
            case "write":
                context.workspace.replace(step["path"], step["text"].encode())
            case "fail":
                raise ValueError("as planned")
            case "hang":
                await context.call("hang", {"above": step["above"]})
            case _:
                await context.call(*step_call(step))


@tool
async def node(steps: list[dict], context: Context) -> None:
    """One call of a tree."""
    await act(steps, context)


@tool(writes=["locks"], reads=[])
async def locked_node(steps: list[dict], locks: list[str], context: Context) -> None:
    """The same, while nobody else has these locks."""
    await act(steps, context)


@tool
def thread_node(steps: list[dict], context: Context) -> None:
    """The same in a thread, one after another."""
    blocking(steps, context, lambda path, text: context.workspace.replace(path, text.encode()))


@tool(isolated=True)
def isolated_node(steps: list[dict], context: Context) -> None:
    """The same in a process of its own."""
    blocking(steps, context, write)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def blocking(steps, context, write):
    for step in steps:
        match step["do"]:
            case "call" | "batch":
                for one in step["nodes"]:
                    context.call(*node_call(one))
            case "write":
                write(step["path"], step["text"])
            case "fail":
                raise ValueError("as planned")
            case "hang":
                context.call("hang", {"above": step["above"]})
            case _:
                context.call(*step_call(step))


@dataclass
class Prover:
    """Carries trees out in one service, and looks at what is left."""

    base: Path
    engine: str = "auto"
    hanging: asyncio.Queue = field(default_factory=asyncio.Queue)
    waiting: asyncio.Queue = field(default_factory=asyncio.Queue)
    deadlocks: int = 0
    """How many calls were refused because they would have closed a circle."""

    async def prove(self, seeds, isolated=True):
        """`AssertionError` where something is not as it should be."""
        prover, chance = self, random.Random(f"{seeds[0]} answers")

        @tool(readonly=True)
        async def hang(above: int, context: Context) -> None:
            """Wait for ever."""
            prover.hanging.put_nowait((*context.chain[above : above + 1], context.run)[0])
            await asyncio.Event().wait()

        async def approver(request):
            path = str(request.arguments.get("path", ""))
            if not path.endswith(".asked"):
                return not path.endswith(".denied")
            answer = asyncio.get_running_loop().create_future()
            prover.waiting.put_nowait(answer)
            return await answer

        workspace = self.base / "workspace"
        plans = {
            f"t{seed}": plan(seed, f"t{seed}", isolated=isolated, threads=self.engine != "snapshot") for seed in seeds
        }
        _populate(workspace, seeds, plans)
        before = fingerprint(workspace)
        settings = {"changes.engine": self.engine, "limits.max_concurrent": PLACES, "limits.max_seconds": 300}
        settings["changes.flush_seconds"] = 0.05  # Calls that wait for a person delay the others no longer.
        async with contextlib.AsyncExitStack() as stack:
            hosts = [
                await stack.enter_async_context(
                    ToolService.open(
                        workspace,
                        home=self.base / "home",
                        tools=[node, thread_node, locked_node, isolated_node, hang],
                        approver=approver,
                        installed=False,
                        settings=settings,
                    )
                )
                for _ in range(2)
            ]
            people = [asyncio.create_task(self._cancels(hosts)), asyncio.create_task(self._answers(chance))]
            SERVICES.update({tree: hosts[number % 2] for number, tree in enumerate(plans)})
            roots = [SERVICES[tree].call(*node_call(one)) for tree, one in plans.items()]
            outcomes = [await asyncio.wait_for(asyncio.shield(_outcome(run)), 60) for run in roots]
            for task in people:
                task.cancel()
            for service in hosts:
                await self._no_place_is_lost(service)
            ended = {run.id: run for run in service.runs(limit=100_000)}
            assert {run.status for run in ended.values()} <= {"done", "error", "rejected-by-user", "cancelled"}
            refused = [run.outcome for run in ended.values() if (run.outcome["error"] or {}).get("code") == "deadlock"]
            assert all(each["error"]["retryable"] and each["changes"]["files"] == [] for each in refused)
            for outcome in reversed(outcomes):
                await self._undone(service, outcome)
            left = difference(before, fingerprint(workspace))
            assert left == [], left
            self.deadlocks = len(refused)
            return len(ended)

    async def _cancels(self, hosts):
        while True:
            run = await self.hanging.get()
            for service in hosts:
                with contextlib.suppress(UnknownRun):  # The other host does not know it yet.
                    service.cancel(run)

    async def _answers(self, chance):
        while True:
            answer = await self.waiting.get()
            await asyncio.sleep(0)  # Others go on meanwhile.
            if not answer.done():
                answer.set_result(chance.random() < 0.6)

    async def _no_place_is_lost(self, service):
        """As many calls run at once as there are places."""
        barrier = asyncio.Barrier(PLACES)

        @tool(readonly=True)
        async def meet() -> None:
            """Wait for the others."""
            await barrier.wait()

        service.add(meet)
        outcomes = await asyncio.gather(*(service.call("meet", timeout=30) for _ in range(PLACES)))
        assert [one.status for one in outcomes] == ["done"] * PLACES

    async def _undone(self, service, outcome):
        for run in service.runs(limit=100_000):
            if run.outcome["changes"]["state"] == "held":
                with contextlib.suppress(BadUsage):
                    await service.drop(run.id)
        with contextlib.suppress(BadUsage):  # Nothing of it is there to undo.
            undone = await service.undo(outcome.run_id)
            assert undone.ok, (undone.error, undone.result)


async def _outcome(run):
    return await run


def _populate(workspace, seeds, plans):
    workspace.mkdir(parents=True)
    for one in plans.values():
        _make_shared(workspace, one)
    for seed in seeds:
        chance = random.Random(f"{seed} files")
        (workspace / f"t{seed}").mkdir(exist_ok=True)
        for name in "abcd":
            if chance.random() < 0.5:
                path = workspace / f"t{seed}" / name
                path.write_text(f"{chance.random()}\n" * chance.randrange(3))


def _make_shared(workspace, one):
    """Make the directories in which several calls work: if the call that made one is undone alone, it stays as long as
    another call uses it, and then nobody's undo removes it."""
    for step in one["steps"]:
        for below in step.get("nodes", ()):
            if len(step["nodes"]) > 1:
                (workspace / step["place"]).mkdir(parents=True, exist_ok=True)
            _make_shared(workspace, below)


def prove(seeds, base, engine="auto", *, isolated=True):
    return asyncio.run(Prover(base, engine).prove(seeds, isolated))


if __name__ == "__main__":
    first, count, engine = int(sys.argv[1]), int(sys.argv[2]), (sys.argv[3:] or ["auto"])[0]
    for start in range(first, first + count, 5):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as base:
            prover = Prover(Path(base), engine)
            print(start, asyncio.run(prover.prove(range(start, min(start + 5, first + count)))), prover.deadlocks)
