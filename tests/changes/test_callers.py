"""Calls of several callers at once: what they lose (nothing), and who waits for whom."""

import asyncio
import sys
from pathlib import Path

import pytest

from haft import Context, ToolService, tool

sys.path.insert(0, str(Path(__file__).parent))
from held_views import HeldLine

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays"),
]


@pytest.fixture
def base(outside_tmp):
    outside_tmp.chmod(0o755)
    (outside_tmp / "workspace").mkdir()
    return outside_tmp


async def yes(_request):
    return True


def run_with(base, body, tools=(), **options):
    async def main():
        async with ToolService.open(
            base / "workspace", home=base / "home", tools=tools, installed=False, **{"approver": yes, **options}
        ) as service:
            return await body(service)

    return asyncio.run(main())


def shell(service, command, **options):
    return service.call("shell", {"command": command}, **options)


SWAP = ("cat y > x", "cat x > y")


def furnish_swap(base):
    (base / "workspace" / "x").write_text("X")
    (base / "workspace" / "y").write_text("Y")


def swapped(base):
    return [(base / "workspace" / name).read_text() for name in "xy"]


def test_two_calls_of_a_batch_that_copy_two_files_over_each_other_keep_the_order_of_the_batch(base):
    furnish_swap(base)

    async def body(service):
        outcomes = await service.batch([("shell", {"command": line}) for line in SWAP])
        assert [outcome.status for outcome in outcomes] == ["done", "done"]

    run_with(base, body)
    assert swapped(base) == ["Y", "Y"]


@pytest.mark.parametrize("isolation", ["snapshot", "serial"])
def test_two_callers_that_copy_two_files_over_each_other(base, isolation):
    furnish_swap(base)

    async def body(service):
        lines = [
            await HeldLine(service, base, "true", line, isolation=isolation).begin()
            for line in ("eval 'cat y > x'", "eval 'cat x > y'")
        ]
        outcomes = [await line.end() for line in lines]
        codes = [outcome.error and outcome.error.code for outcome in outcomes]
        assert codes == ([None, None] if isolation == "snapshot" else [None, "conflict"])
        if isolation == "serial":
            assert outcomes[1].changes.state == "held"

    run_with(base, body)
    assert swapped(base) == (["Y", "X"] if isolation == "snapshot" else ["Y", "Y"])


def test_two_callers_whose_command_lines_may_write_anything_run_at_once(base):
    """Each of the two begins before the other one ends."""

    async def body(service):
        lines = [await HeldLine(service, base, "true", f"eval 'echo {name} > {name}'").begin() for name in "ab"]
        assert [line.run.status for line in lines] == ["in-progress", "in-progress"]
        assert [(await line.end()).status for line in lines] == ["done", "done"]

    run_with(base, body)
    assert sorted(path.name for path in (base / "workspace").iterdir()) == ["a", "b"]


def test_fifty_calls_that_append_to_three_files_lose_nothing(base):
    for number in range(3):
        (base / "workspace" / f"f{number}").write_text("end\n")

    async def body(service):
        runs = []
        for number in range(50):
            path, tag = f"f{number % 3}", f"tag{number}"
            if number % 2:
                runs.append(shell(service, f"echo {tag} >> {path}"))
            else:
                words = {"path": path, "old_string": "end\n", "new_string": f"end\n{tag}\n"}
                runs.append(service.call("edit_file", words))
        events = asyncio.gather(*(times(run) for run in runs))
        outcomes = await asyncio.gather(*runs)
        assert [outcome.error for outcome in outcomes] == [None] * 50
        spans = await events
        overlapping = [
            (one, other)
            for one in range(50)
            for other in range(one)
            if one % 3 != other % 3 and spans[one][0] < spans[other][1] and spans[other][0] < spans[one][1]
        ]
        assert overlapping, "calls on different files ran one after another"

    async def times(run):
        began = None
        async for event in run:
            if event.status == "in-progress" and began is None:
                began = event.at
            last = event.at
        return began, last

    run_with(base, body)
    found = [line for n in range(3) for line in (base / "workspace" / f"f{n}").read_text().split()]
    assert sorted(found) == sorted(["end"] * 3 + [f"tag{number}" for number in range(50)])


@pytest.mark.parametrize("kind", ["idempotent", "asked", "plain", "network"])
def test_a_conflict_is_tried_again_only_where_nobody_can_tell(base, kind):
    """The tool writes a file that somebody else commits while it runs."""
    ran, begun, committed = [], asyncio.Event(), asyncio.Event()

    async def overwrite(context: Context) -> str:
        """Read a file, and write it after somebody else did."""
        ran.append(1)
        with context.workspace.open("a") as file:
            was = file.read()
        begun.set()
        await committed.wait()
        context.workspace.replace("a", was + b"mine\n")
        return "done"

    (base / "workspace" / "a").write_text("a\n")
    made = tool(overwrite, idempotent=kind != "plain", network=kind == "network")
    settings = {} if kind == "asked" else {"permissions": [{"tool": "overwrite", "action": "allow"}]}

    async def body(service):
        run = service.call("overwrite")
        await begun.wait()
        other = await shell(service, "eval 'echo other >> a'")
        assert other.changes.state == "committed"
        committed.set()
        attempts = [event.facts["attempt"] async for event in run if "attempt" in event.facts]
        outcome = await run
        if kind in ("idempotent", "asked"):
            assert (outcome.status, attempts, len(ran)) == ("done", [2], 2), outcome.error
            assert any("ran once more" in note for note in outcome.notes)
        else:
            assert (outcome.error.code, attempts, len(ran)) == ("conflict", [], 1)
            assert outcome.changes.state == "held"

    run_with(base, body, tools=[made], settings=settings)
    text = (base / "workspace" / "a").read_text()
    assert text == ("a\nother\nmine\n" if kind in ("idempotent", "asked") else "a\nother\n")


@pytest.mark.parametrize("engine", ["overlay", "snapshot"])
def test_a_call_that_writes_more_than_it_declares_cannot_break_the_order_of_its_batch(base, engine):
    """The read is the later call of the two, and has read the older version when the first call writes it."""
    begun, is_read = asyncio.Event(), asyncio.Event()
    (base / "workspace" / "other").write_text("old")

    @tool(writes=["path"], reads=[])
    async def lie(path: str, context: Context) -> str:
        """Write a file that is not declared."""
        begun.set()
        await is_read.wait()
        context.workspace.replace("other", b"new")
        return path

    async def body(service):
        # With the snapshot engine, the first call has the workspace alone.
        batch = service.batch([("lie", {"path": "declared"}), ("read_file", {"path": "other"})])
        await begun.wait()
        if engine == "snapshot":
            is_read.set()
        read = await batch.runs[1]
        is_read.set()
        written = await batch.runs[0]
        if read.output == "old":
            assert (written.error.code, written.changes.state) == ("conflict", "held")
        else:
            assert (written.status, read.output) == ("done", "new")
        return read.output

    seen = run_with(base, body, tools=[lie], settings={"changes.engine": engine})
    assert (base / "workspace" / "other").read_text() == seen


def test_with_the_snapshot_engine_writers_of_several_callers_wait_for_each_other_and_tear_no_view(base):
    async def body(service):
        runs = [
            shell(service, f"eval 'echo {number} > s{number}'")
            if number % 2
            else service.call("write_file", {"path": f"w{number}", "content": "x"})
            for number in range(8)
        ]
        outcomes = await asyncio.gather(*runs)
        assert [(outcome.status, outcome.notes) for outcome in outcomes] == [("done", ())] * 8

    run_with(base, body, settings={"changes.engine": "snapshot"})
    assert len([*(base / "workspace").iterdir()]) == 8
