"""Several at work on one workspace: runs one after the other and at once, other processes, people, and links that lead
out. Undo keeps what others did, a conflict is said and nothing is overwritten, and nothing outside is ever touched.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from haft import Context, tool
from haft.audit import verify
from haft.service import ToolService
from haft.storage.sqlite.audit_log import FileLog
from sampling import SELDOM

sys.path.insert(0, str(Path(__file__).parent))
import nasty
from fingerprint import difference, fingerprint

pytestmark = [
    pytest.mark.every_user(share=SELDOM),
    pytest.mark.skipif(sys.platform != "linux", reason="calls work above the workspace only on Linux"),
]


GATES = ("go", "go2")
"""What calls wait for: they go on when something is written there."""


def seen(directory):
    """Everything there, gates aside."""
    return {path: found for path, found in fingerprint(directory).items() if os.fsdecode(path) not in GATES}


async def yes(_request):
    return True


@pytest.fixture
def place(tmp_path):
    (tmp_path / "workspace" / "d").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("not ours\n")
    for name in ("a", "b", "c", "d/x", "d/y"):
        (tmp_path / "workspace" / name).write_text(f"{name}\n")
    for gate in GATES:
        (tmp_path / "workspace" / gate).touch()
    yield tmp_path
    nasty.erase(os.fsencode(tmp_path))
    tmp_path.mkdir()


@contextlib.asynccontextmanager
async def opened(place, **settings):
    async with ToolService.open(
        place / "workspace", approver=yes, home=place / "home", installed=False, settings=settings
    ) as service:
        yield service


def with_service(place, go, **settings):
    async def main():
        async with opened(place, **settings) as service:
            return await go(service, place / "workspace")

    found = asyncio.run(main())
    assert verify(FileLog(str(place / "home" / "audit"))).intact
    live = list((place / "home" / "changes").glob("*/live/*/*"))
    assert live == []
    return found


async def shell(service, command, **options):
    return await service.call("shell", {"command": command}, **options)


async def good(run):
    outcome = await run
    assert outcome.status == "done", outcome.error
    return outcome


def ledger(service):
    return {row.run: row.state for row in service._transactions.ledger.all()}


# One after the other.


def test_undo_of_one_run_keeps_those_before_and_after(place):
    async def go(service, workspace):
        await shell(service, "echo A >> a")
        between = seen(workspace)
        b = await shell(service, "echo B >> b; rm c; mkdir n; echo n > n/n; mv d/x d/z")
        await shell(service, "echo C >> d/y; echo new > new")
        after = seen(workspace)
        await good(service.undo(b.run_id))
        now = seen(workspace)
        assert (workspace / "a").read_text() == "a\nA\n"
        assert (workspace / "d/y").read_text() == "d/y\nC\n"
        assert (workspace / "new").read_text() == "new\n"
        mine = {b"b", b"c", b"n", b"n/n", b"d/x", b"d/z"}
        assert {path: now.get(path) for path in mine} == {path: between.get(path) for path in mine}
        await good(service.redo(b.run_id))
        assert difference(after, seen(workspace)) == []

    with_service(place, go)


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
def test_undo_of_what_a_later_run_changed_refuses_and_names_it(place, engine):
    async def go(service, workspace):
        b = await shell(service, "echo B >> b; echo B > mine")
        c = await shell(service, "echo C >> b")
        before = seen(workspace)
        ahead = service.look_ahead("undo", b.run_id)
        assert [(each.path, each.by) for each in ahead.conflicts] == [("b", c.run_id)]
        outcome = await service.undo(b.run_id)
        assert (outcome.status, outcome.error.code) == ("error", "conflict")
        assert c.run_id in outcome.error.message
        assert "`b`" in outcome.error.message
        assert difference(before, seen(workspace)) == []
        assert ledger(service)[b.run_id] == "committed"
        await good(service.undo(c.run_id))
        await good(service.undo(b.run_id))
        assert (workspace / "b").read_text() == "b\n"

    with_service(place, go, **{"changes.engine": engine})


def test_undo_of_what_a_person_changed_refuses_and_says_so(place):
    async def go(service, workspace):
        b = await shell(service, "echo B >> b; echo x > mine")
        (workspace / "b").write_text("a person's\n")
        before = seen(workspace)
        outcome = await service.undo(b.run_id)
        assert outcome.error.code == "conflict"
        assert "outside" in outcome.error.message
        assert difference(before, seen(workspace)) == []

    with_service(place, go)


def test_force_takes_it_back_and_keeps_what_it_replaces(place, eventually):
    kept_small = []

    async def go(service, workspace):
        b = await shell(service, "echo B >> b; echo x > mine")
        service._transactions.run_later(lambda: kept_small.append(True))
        await asyncio.to_thread(eventually, lambda: kept_small)
        (workspace / "b").write_text("a person's\n")
        replaced = seen(workspace)
        undo = await good(service.undo(b.run_id, force=True))
        assert (workspace / "b").read_text() == "b\n"
        assert not (workspace / "mine").exists()
        kept = [path.read_text() for path in (place / "home" / "changes").glob(f"*/kept/{undo.run_id}/out/*")]
        assert "a person's\n" in kept
        assert "a person's" in service.diff(undo.run_id)
        await good(service.redo(b.run_id))
        assert (workspace / "b").read_text() == "b\nB\n"
        assert (workspace / "mine").read_text() == "x\n"
        assert replaced.keys() == seen(workspace).keys()

    with_service(place, go)


def test_a_set_of_runs_and_the_children_of_one_are_undone_as_one(place):
    async def go(service, workspace):
        before = seen(workspace)
        first = await shell(service, "echo 1 >> a; mkdir n; echo 1 > n/one")
        second = await shell(service, "echo 2 >> a; echo 2 > n/two")
        await good(service.undo(first.run_id, second.run_id))
        assert difference(before, seen(workspace)) == []
        assert ledger(service)[first.run_id] == ledger(service)[second.run_id] == "undone"
        await good(service.redo(first.run_id, second.run_id))
        assert (workspace / "a").read_text() == "a\n1\n2\n"
        await good(service.undo(second.run_id, first.run_id))
        children = []

        @tool
        async def makes_three(context: Context) -> None:
            """Call the shell three times."""
            for n in range(3):
                command = f"echo {n} >> b; echo {n} > child{n}"
                children.append(await context.call("shell", {"command": command}))

        service.add(makes_three)
        parent = await good(service.call("makes_three"))
        other = await shell(service, "echo other > other")
        await good(service.undo(parent.run_id))
        assert (workspace / "b").read_text() == "b\n"
        assert sorted(path.name for path in workspace.glob("child*")) == []
        assert (workspace / "other").exists()
        assert {ledger(service)[child.run_id] for child in children} == {"undone"}
        assert ledger(service)[other.run_id] == "committed"

    with_service(place, go)


def test_one_of_a_set_that_cannot_be_undone_keeps_all_of_it(place):
    async def go(service, workspace):
        first = await shell(service, "echo 1 >> a")
        second = await shell(service, "echo 2 >> b")
        (workspace / "a").write_text("a person's\n")
        before = seen(workspace)
        outcome = await service.undo(first.run_id, second.run_id)
        assert outcome.error.code == "conflict"
        assert difference(before, seen(workspace)) == []
        assert ledger(service)[second.run_id] == "committed"

    with_service(place, go)


def test_a_directory_that_a_later_run_uses_stays_when_its_maker_is_undone(place):
    async def go(service, workspace):
        first = await shell(service, "mkdir -p n/m; echo 1 > n/m/one; echo 1 > n/one")
        await shell(service, "echo 2 > n/m/two")
        await good(service.undo(first.run_id))
        assert sorted(os.listdir(workspace / "n")) == ["m"]
        assert os.listdir(workspace / "n/m") == ["two"]
        await good(service.redo(first.run_id))
        assert sorted(os.listdir(workspace / "n/m")) == ["one", "two"]

    with_service(place, go)


# At once.


def let_on(place, gate="go"):
    """Written in place: a call sees the workspace as it was, and of what is new there only what its files hold."""
    (place / "workspace" / gate).write_text("now")


async def begun(service, place, before, after=""):
    """A call that has done `before`, and waits to be let through."""
    command = f"{before}; echo ready; until grep -q now go; do sleep 0.01; done; {after or 'true'}"
    run = service.call("shell", {"command": command})
    async for event in run:
        if "ready" in event.text:
            return run
    raise AssertionError((await run).output)


def test_two_calls_at_once_that_write_different_files_are_both_committed(place):
    async def go(service, workspace):
        runs = [await begun(service, place, f"echo {name} >> {name}; echo {name} > d/new-{name}") for name in "ab"]
        assert (workspace / "a").read_text() == "a\n"
        let_on(place)
        outcomes = [await run for run in runs]
        assert [outcome.changes.state for outcome in outcomes] == ["committed"] * 2
        assert (workspace / "a").read_text() == "a\na\n"
        assert (workspace / "b").read_text() == "b\nb\n"
        await good(service.undo(outcomes[0].run_id))
        assert (workspace / "a").read_text() == "a\n"
        assert (workspace / "b").read_text() == "b\nb\n"
        assert sorted(os.listdir(workspace / "d")) == ["new-b", "x", "y"]

    with_service(place, go)


def test_the_same_file_is_a_conflict_for_the_later_call(place):
    async def go(service, workspace):
        # haft does not know what the line writes, because of the variable. So the other call does not wait for it.
        later = await begun(service, place, 'name=a; echo later >> "$name"; echo later > mine')
        first = await shell(service, "echo first >> a")
        assert first.changes.state == "committed"
        let_on(place)
        outcome = await later
        assert (outcome.status, outcome.error.code, outcome.changes.state) == ("error", "conflict", "held")
        assert [(each.path, each.by) for each in outcome.changes.conflicts] == [("a", first.run_id)]
        assert (workspace / "a").read_text() == "a\nfirst\n"
        assert not (workspace / "mine").exists()
        # Seen, and against what is there now.
        again = await service.apply(outcome.run_id)
        if again.status == "error":
            assert again.error.code == "conflict"
            again = await service.apply(outcome.run_id)
        assert again.status == "done", again.error
        assert (workspace / "a").read_text() == "a\nlater\n"
        assert (workspace / "mine").read_text() == "later\n"
        await good(service.undo(outcome.run_id))
        assert (workspace / "a").read_text() == "a\nfirst\n"
        assert not (workspace / "mine").exists()

    with_service(place, go)


@pytest.mark.parametrize("how", ["in place", "by another file", "removed"])
def test_what_a_person_edits_meanwhile_is_not_overwritten(place, how):
    async def go(service, workspace):
        run = await begun(service, place, "echo call >> a; echo call > mine")
        if how == "in place":
            (workspace / "a").write_text("person\n")
        elif how == "removed":
            (workspace / "a").unlink()
        else:
            (workspace / "a.tmp").write_text("person\n")
            (workspace / "a.tmp").rename(workspace / "a")
        before = seen(workspace)
        let_on(place)
        outcome = await run
        assert (outcome.error.code, outcome.changes.state) == ("conflict", "held")
        assert difference(before, seen(workspace)) == []
        assert "call" in service.diff(outcome.run_id)
        # It changed again after anyone looked: refused once, and then it works.
        (workspace / "a").write_text("person again\n")
        before = seen(workspace)
        refused = await service.apply(outcome.run_id)
        assert refused.error.code == "conflict"
        assert difference(before, seen(workspace)) == []
        await good(service.apply(outcome.run_id))
        assert (workspace / "a").read_text() == "a\ncall\n"
        await good(service.undo(outcome.run_id))
        assert difference(before, seen(workspace)) == []

    with_service(place, go)


def test_what_is_dropped_leaves_nothing(place):
    async def go(service, workspace):
        run = await begun(service, place, "echo call >> a")
        (workspace / "a").write_text("person\n")
        let_on(place)
        outcome = await run
        before = seen(workspace)
        await good(service.drop(outcome.run_id))
        assert difference(before, seen(workspace)) == []
        assert ledger(service)[outcome.run_id] == "discarded"
        for again in (service.apply, service.drop, service.undo):
            outcome_again = await again(outcome.run_id)
            assert outcome_again.status == "error"
            assert outcome_again.error.code in ("bad-usage", "tool-failed")
        assert list((place / "home" / "changes").glob("*/held/*")) == []

    with_service(place, go)


def test_a_directory_into_which_another_put_something_is_neither_deleted_nor_replaced(place):
    for command in ("rm -r d", "rm -r d; echo file > d", "rm -r d; mkdir d; echo other > d/x"):
        (place / "workspace" / "go").write_text("")

        async def go(service, workspace, command=command):
            run = await begun(service, place, command)
            (workspace / "d" / "person").write_text("person\n")
            before = seen(workspace)
            let_on(place)
            outcome = await run
            assert (outcome.error.code, outcome.changes.state) == ("conflict", "held"), command
            assert difference(before, seen(workspace)) == []
            await good(service.drop(outcome.run_id))
            (workspace / "d" / "person").unlink()

        with_service(place, go)


def test_a_call_that_has_the_workspace_alone_makes_others_wait(place):
    async def go(service, workspace):
        alone = await begun(service, place, "echo alone >> a")
        waiting = service.call("write_file", {"path": "b", "content": "waited\n"})
        waiting_too = service.call("shell", {"command": "cat a; echo too >> c"})
        assert (workspace / "b").read_text() == "b\n"
        let_on(place)
        outcomes = [await run for run in (alone, waiting, waiting_too)]
        assert [outcome.changes.state for outcome in outcomes] == ["committed"] * 3
        assert [change.path for change in outcomes[0].changes.files] == ["a", "go"]
        assert outcomes[2].output == "a\nalone\n"
        assert [change.path for change in outcomes[2].changes.files] == ["c"]

    with_service(place, go, **{"changes.engine": "snapshot"})


def test_what_outlives_the_call_writes_nothing_into_the_workspace(place, mark, left_of, eventually):
    async def go(service, workspace):
        late = "while :; do echo late >> a; echo late > late; sleep 0.01; done"
        command = f"setsid sh -c '{late}' >/dev/null 2>&1 & until [ -e late ]; do sleep 0.01; done"
        outcome = await service.call("shell", {"command": command, "env": {"MARK": mark}})
        assert outcome.status == "done"
        taken = seen(workspace)
        eventually(lambda: not left_of(mark))
        await shell(service, "echo another > another")
        now = seen(workspace)
        del now[b"another"]
        assert difference(taken, now) == []

    with_service(place, go)


# Links that lead out.


def test_a_directory_swapped_for_a_link_between_call_and_commit_leads_nowhere(place):
    async def go(service, workspace):
        run = await begun(service, place, "echo call >> d/x; echo call > d/file; rm d/y")
        (workspace / "d").rename(workspace / "was-d")
        (workspace / "d").symlink_to(place / "outside")
        before, outside = seen(workspace), seen(place / "outside")
        let_on(place)
        outcome = await run
        assert outcome.changes.state == "held"
        assert outcome.error.code == "conflict"
        assert difference(outside, seen(place / "outside")) == []
        assert difference(before, seen(workspace)) == []
        for _ in range(2):
            await service.apply(outcome.run_id)
            assert difference(outside, seen(place / "outside")) == []

    with_service(place, go)


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
def test_a_directory_swapped_for_a_link_between_run_and_undo_leads_nowhere(place, engine):
    async def go(service, workspace):
        run = await shell(service, "echo call >> d/x; echo call > d/file; rm d/y")
        (workspace / "d").rename(workspace / "was-d")
        (workspace / "d").symlink_to(place / "outside")
        before, outside = seen(workspace), seen(place / "outside")
        for force in (False, True):
            outcome = await service.undo(run.run_id, force=force)
            assert difference(outside, seen(place / "outside")) == []
            if not force:
                assert outcome.error.code == "conflict"
                assert difference(before, seen(workspace)) == []

    with_service(place, go, **{"changes.engine": engine})


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
def test_links_planted_before_and_during_a_call_are_changed_themselves(place, engine):
    (place / "workspace" / "before").symlink_to(place / "outside")
    (place / "workspace" / "to-file").symlink_to(place / "outside" / "file")

    async def go(service, workspace):
        before, outside = seen(workspace), seen(place / "outside")
        run = await shell(
            service,
            f"echo x > before/new; echo x > before/file; rm to-file; echo mine > to-file; rm before; mkdir before; "
            f"echo f > before/file; rm -r d; ln -s {place}/outside d; echo x > d/file; "
            f"ln -s {place}/outside/file l; true",
        )
        assert run.changes.state == "committed", run.error
        assert difference(outside, seen(place / "outside")) == []
        after = seen(workspace)
        await good(service.undo(run.run_id))
        assert difference(before, seen(workspace)) == []
        await good(service.redo(run.run_id))
        assert difference(after, seen(workspace)) == []
        assert difference(outside, seen(place / "outside")) == []
        written = await service.call("write_file", {"path": "d/file", "content": "x"})
        assert written.status == "error"
        assert difference(outside, seen(place / "outside")) == []

    with_service(place, go, **{"changes.engine": engine})


# From other processes.


OTHER = """
import asyncio, json, os, sys
from haft.service import ToolService

async def yes(request):
    return True

async def main():
    async with ToolService.open(sys.argv[1], approver=yes, home=sys.argv[2], installed=False) as service:
        async def told(run):
            outcome = await run
            return [outcome.run_id, outcome.status, outcome.error and outcome.error.code, outcome.changes.state]
        print(json.dumps("open"), flush=True)
        for line in sys.stdin:
            verb, *words = json.loads(line)
            if verb == "shell":
                found = await told(service.call("shell", {"command": words[0]}))
            elif verb == "list":
                found = [[row.run, row.state] for row in service._transactions.ledger.all()]
            else:
                try:
                    found = await told(getattr(service, verb)(*words))
                except Exception as error:
                    found = [None, "raised", getattr(error, "code", type(error).__name__), None]
            print(json.dumps(found), flush=True)

asyncio.run(main())
"""


class Other:
    """Another process with a service on the same workspace."""

    def __init__(self, place):
        self._process = subprocess.Popen(
            [sys.executable, "-c", OTHER, place / "workspace", place / "home"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.answer() == "open"

    def ask(self, *words):
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def answer(self):
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        assert self._process.wait(60) == 0
        self._process.stdout.close()

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


@pytest.fixture
def others(place):
    made = []

    def other():
        made.append(Other(place))
        return made[-1]

    yield other
    for each in made:
        if each._process.poll() is None:
            each.close()


def test_two_processes_write_the_same_and_different_files(place, others):
    one, two = others(), others()
    for other, name in ((one, "a"), (two, "b")):
        other.ask("shell", f"echo {name} >> {name}; until grep -q now go; do sleep 0.01; done")
    let_on(place)
    assert [one.answer()[3], two.answer()[3]] == ["committed"] * 2
    for other, name in ((one, "a"), (two, "b")):
        other.ask("shell", f"echo {name} >> c; until grep -q now go2; do sleep 0.01; done")
    let_on(place, "go2")
    ends = sorted([one.answer()[1:], two.answer()[1:]])
    # Whether the second had begun when the first was committed is not told by anything here.
    assert ends in ([["done", None, "committed"], ["error", "conflict", "held"]], [["done", None, "committed"]] * 2)


def test_two_processes_that_undo_or_apply_the_same_run_at_once(place, others):
    one, two = others(), others()
    one.ask("shell", "echo 1 >> a; rm b; mkdir n; echo n > n/n")
    run = one.answer()[0]
    before = seen(place / "workspace")
    for verb in ("undo", "redo"):
        for other in (one, two):
            other.ask(verb, run)
        ends = sorted([one.answer()[1:3], two.answer()[1:3]], key=str)
        assert ends == [["done", None], ["error", "bad-usage"]], verb
    assert difference(before, seen(place / "workspace")) == []
    one.ask("shell", "mkdir -p .git/hooks; echo x > .git/hooks/post-commit; echo held >> a")
    held = one.answer()
    assert held[3] == "held"
    for other in (one, two):
        other.ask("apply", held[0])
    ends = sorted([one.answer()[1:3], two.answer()[1:3]], key=str)
    assert ends == [["done", None], ["error", "bad-usage"]]
    assert (place / "workspace" / "a").read_text() == "a\n1\nheld\n"


def test_others_list_undo_and_apply_at_every_step_of_a_commit(place, others):
    """The first stops at every single step of its commit; what a second does meanwhile waits, and then works."""
    other = others()
    ahead = others()
    ahead.ask("shell", "echo early > early")
    early = ahead.answer()[0]
    ahead.close()

    async def go(service, workspace):
        from haft.changes.commit.steps import StepRunner

        steps, real = [], StepRunner.apply

        def apply(runner, step):
            real(runner, step)
            steps.append(step.path)
            if len(steps) == 1:
                other.ask("undo", early)
            # It lists without waiting for anyone: the runs, and nothing half done.
            found = {row.run: row.state for row in service._transactions.ledger.all()}
            assert found == {early: "committed"}
            assert (workspace / "early").exists()

        StepRunner.apply = apply
        try:
            outcome = await shell(service, "for n in $(seq 30); do echo $n > f$n; done; rm -r d; echo more >> a")
        finally:
            StepRunner.apply = real
        assert outcome.changes.state == "committed", outcome.error
        assert len(steps) >= 32
        assert other.answer()[1] == "done"
        assert not (workspace / "early").exists()
        assert len(list(workspace.glob("f*"))) == 30
        await good(service.undo(outcome.run_id))
        assert sorted(os.listdir(workspace)) == ["a", "b", "c", "d", *GATES]

    with_service(place, go)


def test_a_commit_that_a_dead_host_left_is_recovered_before_anyone_else_changes_the_workspace(place, others):
    """Who was open already when the other died does not work above half of a commit."""
    survivor = others()
    survivor.ask("list")
    assert survivor.answer() == []
    script = textwrap.dedent(
        """
        import os, signal, sys
        from haft.changes.commit.steps import StepRunner
        real, steps = StepRunner.apply, []
        def apply(runner, step):
            real(runner, step)
            steps.append(step)
            if len(steps) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
        StepRunner.apply = apply
        """
    )
    dying = subprocess.run(
        [sys.executable, "-c", script + OTHER, place / "workspace", place / "home"],
        input=json.dumps(["shell", "for n in 1 2 3 4 5 6; do echo $n > f$n; done"]) + "\n",
        capture_output=True, text=True,
    )  # fmt: skip
    assert dying.returncode == -9, dying.stderr
    workspace = place / "workspace"
    assert len(list(workspace.glob("f*"))) == 3
    survivor.ask("shell", "ls f* | wc -l; echo mine > mine")
    assert survivor.answer()[3] == "committed"
    assert len(list(workspace.glob("f*"))) in (0, 6)
    survivor.ask("list")
    assert [state for _run, state in survivor.answer()] == ["committed"] * 2
