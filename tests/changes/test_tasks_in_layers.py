"""Tools in this process whose calls work in one layer: what the calls see, and what becomes of their changes."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from haft import ToolService

sys.path.insert(0, str(Path(__file__).parent))
from fingerprint import difference, fingerprint
from layered_calls import Caller, edit, read, shell, write

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays"),
]


@pytest.fixture
def base(outside_tmp):
    outside_tmp.chmod(0o755)
    workspace = outside_tmp / "workspace"
    (workspace / "d").mkdir(parents=True)
    for name in ("a", "b", "d/x"):
        (workspace / name).write_text(f"{name}\n")
    return outside_tmp


@asynccontextmanager
async def opened(base, approver=None, **settings):
    caller = Caller()
    settings = {name.replace("__", "."): value for name, value in settings.items()}
    async with ToolService.open(
        base / "workspace", home=base / "home", tools=[caller], approver=approver, installed=False, settings=settings
    ) as service:
        caller.service = service
        service.caller = caller
        yield service


def states(service, runs):
    return [service._transactions.ledger.get(run).state for run in runs]


WORK = [
    shell("echo more >> a; mkdir new; echo 1 > new/one"),
    read("a"),
    edit("a", "more", "edited"),
    [write("new/two", "2\n"), shell("rm b"), ["list_directory", {"path": "."}]],
    shell("cat a new/one new/two; ls b; mv d e; chmod 700 new"),
    ["look", {"path": "e/x"}],
]


def test_calls_of_a_trial_run_see_each_other_and_none_of_them_reaches_the_workspace(base):
    workspace = base / "workspace"

    async def main():
        before = fingerprint(workspace)
        async with opened(base) as service:
            outcome = await service.call("caller", {"calls": WORK}, trial=True)
            assert outcome.error is None
            assert (outcome.decision.action, outcome.changes.state, outcome.changes.engine) == (
                "try",
                "held",
                "overlay",
            )
            said = outcome.result
            assert "a\nmore\n" in said[1]
            assert said[5].startswith("new/\n") or "new" in said[5]
            assert said[6].startswith("a\nedited\n1\n2\n")
            assert said[7] == "d/x\n"
            assert not difference(before, fingerprint(workspace))
            children = service.runs(parent=outcome.run_id)
            assert {child.outcome["decision"]["action"] for child in children} == {"try", "allow"}
            applied = await service.changes.apply(outcome.run_id)
            assert applied.error is None
            assert (workspace / "a").read_text() == "a\nedited\n"
            assert sorted(os.listdir(workspace)) == ["a", "e", "new"]
            assert (workspace / "new").stat().st_mode & 0o777 == 0o700
            after = fingerprint(workspace)
            assert (await service.undo(outcome.run_id)).error is None
            assert not difference(before, fingerprint(workspace))
            assert (await service.redo(outcome.run_id)).error is None
            assert not difference(after, fingerprint(workspace))

    asyncio.run(main())


@pytest.mark.parametrize("answer", [True, False])
def test_a_person_reviews_the_whole_diff_once_at_the_end(base, answer):
    workspace, asked = base / "workspace", []

    async def review(request):
        asked.append(request)
        return answer

    async def main():
        before = fingerprint(workspace)
        async with opened(base, review) as service:
            calls = [shell("echo 1 >> a"), edit("a", "1", "2"), write("c", "new\n")]
            outcome = await service.call("caller", {"calls": calls, "layer": True})
            (request,) = asked
            assert request.tool == "caller"
            assert "+2\n" in request.diff and "+new\n" in request.diff and "+1\n" not in request.diff
            assert outcome.status == ("done" if answer else "rejected-by-user")
            assert outcome.changes.state == ("committed" if answer else "discarded")
            assert bool(difference(before, fingerprint(workspace))) == answer
            runs = [child.id for child in service.runs(parent=outcome.run_id)]
            assert states(service, runs) == ["committed" if answer else "discarded"] * 3

    asyncio.run(main())


def test_one_call_can_be_undone_alone_and_the_task_with_the_rest(base):
    workspace = base / "workspace"

    async def main():
        before = fingerprint(workspace)
        async with opened(base) as service:
            outcome = await service.call("caller", {"calls": [shell("rm b"), write("c", "new\n")], "layer": True})
            assert (await service.changes.apply(outcome.run_id)).error is None
            removing = next(run.id for run in service.runs(parent=outcome.run_id) if run.tool == "shell")
            assert (await service.undo(removing)).error is None
            assert sorted(os.listdir(workspace)) == ["a", "b", "c", "d"]
            assert (await service.undo(outcome.run_id)).error is None
            assert not difference(before, fingerprint(workspace))

    asyncio.run(main())


@pytest.mark.parametrize("engine", ["snapshot", "off"])
@pytest.mark.parametrize("how", ["trial", "layer"])
def test_where_no_layer_is_possible_the_call_is_refused_and_makes_no_call(base, engine, how):
    async def yes(_request):
        return True

    async def main():
        before = fingerprint(base / "workspace")
        async with opened(base, yes, changes__engine=engine) as service:
            arguments = {"calls": [write("c", "new\n")], "layer": how == "layer"}
            outcome = await service.call("caller", arguments, trial=how == "trial")
            assert (outcome.status, outcome.error.code) == ("error", "bad-usage")
            assert f"`changes.engine` is `{engine}`" in outcome.error.message
            assert not service.runs(parent=outcome.run_id)
            assert not difference(before, fingerprint(base / "workspace"))

    asyncio.run(main())


def waiting(service, *names):
    for name in names:
        service.caller.doors[name] = asyncio.Event(), asyncio.Event()


async def begun(service, name):
    await service.caller.doors[name][0].wait()


def open_door(service, name):
    service.caller.doors[name][1].set()


def test_what_another_call_commits_meanwhile_is_a_conflict_also_after_a_nested_call(base):
    """A nested call must not let the caller's layer pass for newer than it is."""
    workspace = base / "workspace"

    async def yes(_request):
        return True

    async def main():
        async with opened(base, yes) as service:
            waiting(service, "other")
            calls = [read("a"), ["wait", {"for": "other"}], read("b"), shell("echo task >> a; echo 1 > c")]
            task = service.call("caller", {"calls": calls, "layer": True})
            await begun(service, "other")
            assert (await service.call("shell", {"command": "echo other >> a"})).error is None
            open_door(service, "other")
            outcome = await task
            assert (outcome.changes.state, outcome.error.code) == ("held", "conflict")
            assert [each.path for each in outcome.changes.conflicts] == ["a"]
            assert (workspace / "a").read_text() == "a\nother\n"
            assert not (workspace / "c").exists()

    asyncio.run(main())


def nested(*calls, layer=False):
    return ["caller", {"calls": [*calls], "layer": layer}]


@pytest.mark.parametrize("inner", ["layer", "plain"])
def test_a_task_in_a_task_works_in_the_layer_of_the_outer_one(base, inner):
    """With a layer of its own, or without: the outer one sees its changes, and holds all of them."""
    workspace = base / "workspace"

    async def main():
        before = fingerprint(workspace)
        async with opened(base) as service:
            within = nested(shell("cat a; echo inner >> a"), edit("a", "inner", "edited"), layer=inner == "layer")
            calls = [shell("echo outer >> a"), within, read("a"), shell("rm b")]
            outcome = await service.call("caller", {"calls": calls}, trial=True)
            assert (outcome.error, outcome.changes.state) == (None, "held")
            assert outcome.result[1].startswith("a\nouter\n")
            assert "outer\nedited" in outcome.result[2]
            assert not difference(before, fingerprint(workspace))
            assert (await service.changes.apply(outcome.run_id)).error is None
            assert (workspace / "a").read_text() == "a\nouter\nedited\n" and not (workspace / "b").exists()
            child = next(run.id for run in service.runs(parent=outcome.run_id) if run.tool == "caller")
            assert (await service.undo(child)).error is None
            assert (workspace / "a").read_text() == "a\nouter\n" and not (workspace / "b").exists()
            assert (await service.undo(outcome.run_id)).error is None
            assert not difference(before, fingerprint(workspace))

    asyncio.run(main())


def test_two_tasks_side_by_side_in_a_task_do_not_see_each_other_and_the_second_conflict_is_an_error(base):
    async def main():
        async with opened(base) as service:
            pair = [nested(shell("cat a; echo 1 >> a"), layer=True), nested(shell("cat a; echo 2 >> a"), layer=True)]
            outcome = await service.call("caller", {"calls": [pair, read("a")], "layer": True})
            assert outcome.result[0] == "a\n"
            second = service.runs(parent=outcome.run_id)[-2:]
            assert {run.outcome["error"] and run.outcome["error"]["code"] for run in second} <= {None, "conflict"}

    asyncio.run(main())


def test_a_task_that_wants_a_layer_below_a_process_in_a_layer_is_refused(base):
    """The changes of the process are committed without a review, so nothing in its layer can be held."""

    async def yes(_request):
        return True

    async def main():
        async with opened(base, yes) as service:
            fifo = base / "fifo"
            os.mkfifo(fifo, 0o666)
            line = f"echo begun; read -r _ < {fifo}"
            outer = service.call("shell", {"command": line}, grants={"read": [str(fifo)]})
            async for event in outer:
                if event.type == "stdout" and "begun" in event.text:
                    break
            refused = await service.call("caller", {"calls": [shell("rm a")], "layer": True}, parent=outer.id)
            assert refused.error.code == "bad-usage" and outer.id in refused.error.message
            await asyncio.to_thread(fifo.write_text, "on\n")
            assert (await outer).changes.state == "none"

    asyncio.run(main())


def test_a_call_with_network_needs_approval_also_in_a_trial_run(base):
    """It may run what an earlier call wrote, which nobody has seen."""
    asked = []

    async def no(request):
        asked.append(request.arguments)
        return False

    async def main():
        async with opened(base, no) as service:
            online = [*shell("true; sh a"), {"grants": {"network": True}}]
            outcome = await service.call("caller", {"calls": [shell("echo evil > a"), online], "layer": True})
            assert asked[0] == online[1] and len(asked) == 2
            assert outcome.result[1].startswith("rejected")

    asyncio.run(main())


def test_a_cancelled_task_leaves_nothing(base):
    workspace = base / "workspace"

    async def main():
        before = fingerprint(workspace)
        async with opened(base) as service:
            calls = [shell("rm a; echo 1 > c"), [shell("echo 2 > d2; sleep 60")]]
            task = service.call("caller", {"calls": calls, "layer": True})
            while "in-progress" not in (run.status for run in task.children.values() if run.call.name == "shell"):
                await asyncio.sleep(0.01)
            while [run.call.arguments for run in task.children.values()] != [calls[1][0][1]]:
                await asyncio.sleep(0.01)
            (last,) = task.children.values()
            task.cancel()
            outcome = await task
            assert (outcome.status, outcome.changes.state) == ("cancelled", "discarded")
            assert not difference(before, fingerprint(workspace))
            assert (await last).status == "cancelled"
            live = service._transactions.live
        assert not [name for name in os.listdir(os.path.dirname(live)) if name.endswith(".layer")]

    asyncio.run(main())


KILLED = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[1])
from layered_calls import Caller, shell, write
from haft import ToolService

async def main():
    caller = Caller()
    caller.doors["death"] = asyncio.Event(), asyncio.Event()
    async with ToolService.open(sys.argv[2] + "/workspace", home=sys.argv[2] + "/home", tools=[caller],
                                installed=False) as service:
        caller.service = service
        calls = [shell("rm a; echo 1 > c"), write("d/x", "new"), ["wait", {"for": "death"}]]
        task = service.call("caller", {"calls": calls, "layer": True})
        await caller.doors["death"][0].wait()
        print(task.id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_the_death_of_the_host_leaves_nothing_half_done(base):
    workspace = base / "workspace"
    before = fingerprint(workspace)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, Path(__file__).parent, base], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    task = killed.stdout.strip()

    async def main():
        async with opened(base) as service:
            assert not difference(before, fingerprint(workspace))
            (found,) = (run for run in service.runs() if run.id == task)
            assert (found.status, found.outcome["changes"]["files"]) == ("error", [])
            assert not (await service.call("list_directory", {"path": "."})).error
            area = Path(service._transactions.area.path)
        assert not [path for path in area.rglob("*.layer") if path.is_dir()]
        assert not difference(before, fingerprint(workspace))

    asyncio.run(main())
