"""The store of what calls replaced: packed and pruned at any time, it keeps every promise that it still makes, and
names those that it does not."""

import asyncio
import contextlib
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from haft import ToolService
from haft.changes.store import measurement_cache, usage
from haft.changes.store.bounds import Bounds, is_due
from haft.changes.store.store import Store
from haft.runs.old_outputs import Outputs, outputs_in, remove_outputs
from haft.service import load_config
from haft.service.housekeeping import Housekeeping, bounds_of
from haft.service.store import StoreFacade
from haft.storage import StateHome, open_stores
from sampling import IS_AGAIN, IS_WHOLE, SELDOM, steps

sys.path.insert(0, str(Path(__file__).parent))
import nasty
from fingerprint import difference, fingerprint

pytestmark = [
    pytest.mark.every_user(share=SELDOM),
    pytest.mark.skipif(sys.platform != "linux", reason="layers and nasty trees are made as Linux has them"),
]

PYTHON = next(path for path in ("/usr/bin/python3", sys.executable) if os.access(path, os.X_OK))
WITHOUT = (
    "make_ten_thousand_files",
    *(() if shutil.which("git") else ("make_repository", "make_repository_with_commit")),
)
PLENTY = 10**12
TEXT = "a line that is like the others\n" * 5_000


@pytest.fixture
def base(tmp_path):
    (tmp_path / "workspace").mkdir()
    yield tmp_path
    for path in tmp_path.iterdir():
        nasty.erase(os.fsencode(path))


def service_at(base, **settings):
    return ToolService.open(
        base / "workspace", home=base / "home", approver=lambda _request: True, settings=settings, installed=False
    )


@contextlib.contextmanager
def store_at(base, *, budget=PLENTY, days=90.0, rest_days=0.0):
    home = StateHome(str(base / "home"))
    store = Store(home.changes, open_stores(home), home.blobs, Bounds(budget, days, rest_days))
    try:
        yield store
    finally:
        store.close()


def prune(base, **bounds):
    with store_at(base, **bounds) as store:
        return store.prune()


def used(base):
    with store_at(base) as store:
        return store.measure().used


def row_of(base, run):
    ledger = open_stores(StateHome(str(base / "home"))).connect().ledger
    try:
        return ledger.get(run)
    finally:
        ledger.close()


def outs(base):
    return sorted(path for path in (base / "home" / "changes").glob("*/kept/*/out/**/*") if not path.is_dir())


def blobs(base):
    return [path for path in (base / "home" / "blobs").glob("*/*") if path.is_file()]


async def shell(service, command):
    outcome = await service.call("shell", {"command": command})
    if outcome.changes.state == "held":
        assert (await service.apply(outcome.run_id)).error is None
    else:
        assert outcome.status == "done", outcome.error
    return outcome.run_id


class Chain:
    """Runs over a nasty tree, and what the tree was after each."""

    def __init__(self, base, service, seed):
        self.base, self.service, self.seed = base, service, seed
        self.chance = random.Random(f"{seed} store")
        self.tree = base / "workspace"
        self.states = [fingerprint(self.tree)]
        self.runs = []

    def must_be(self, wanted, when):
        assert difference(wanted, fingerprint(self.tree), most=10) == [], f"seed {self.seed}, {when}"

    async def grow(self, runs):
        for number in range(runs):
            script = nasty.sequence(7000 * self.seed + number, self.chance.choice((1, 3, 8)), without=WITHOUT)
            outcome = await self.service.call("shell", {"command": script.command(PYTHON)})
            if outcome.changes.state == "held":
                assert (await self.service.apply(outcome.run_id)).error is None
            after = fingerprint(self.tree)
            if outcome.changes.state == "none":
                continue
            self.runs.append(outcome.run_id)
            self.states.append(after)
            for verb in ("undo", "redo") * self.chance.choice((0, 0, 1, 2)):
                self.maybe_prune(PLENTY)
                assert (await getattr(self.service, verb)(outcome.run_id)).error is None
                self.must_be(self.states[-2] if verb == "undo" else after, f"after {verb} of run {number}")
            self.maybe_prune(PLENTY)

    def maybe_prune(self, budget):
        if self.chance.random() < 0.3:
            assert prune(self.base, budget=budget).runs == []

    async def check(self):
        """Back through all runs, and forth again."""
        undone = []
        at = len(self.runs)
        while at and row_of(self.base, self.runs[at - 1]).kept:
            at -= 1
            done = await self.service.undo(self.runs[at])
            assert done.error is None, (self.seed, at, done.error)
            self.must_be(self.states[at], f"after undo of run {at}")
            undone.append(at)
            self.maybe_prune(PLENTY)
        for older in range(at):
            row = row_of(self.base, self.runs[older])
            if not row.kept:
                done = await self.service.undo(row.run)
                assert "can no longer be undone or redone: pruned on " in done.error.message
                assert self.service.diff(row.run) is not None
        self.must_be(self.states[at], "after all that was refused")
        for at in reversed(undone):
            assert (await self.service.redo(self.runs[at])).error is None
            self.must_be(self.states[at + 1], f"after redo of run {at}")


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
@pytest.mark.parametrize("seed", range(5 if IS_WHOLE else 2))  # The fourth takes a minute.
def test_every_run_that_is_promised_can_be_undone_and_every_other_says_why_not(base, engine, seed):
    async def main():
        nasty.sequence(seed, 0, without=WITHOUT).populate(base / "workspace")
        async with service_at(base, **{"changes.engine": engine}) as service:
            chain = Chain(base, service, seed)
            await chain.grow(6)
            await chain.check()
            for _ in range(2):
                budget = int(used(base) * chain.chance.random())
                done = prune(base, budget=budget)
                kept = [row_of(base, run) for run in chain.runs]
                assert done.after <= budget or not any(row.kept and not is_free(row) for row in kept)
                assert done.after == used(base)
                await chain.check()

    asyncio.run(main())


def is_free(row):
    from haft.changes.commit.manifest import Manifest
    from haft.changes.store.needs import needs_nothing

    return needs_nothing(row, Manifest.read(os.path.join(row.area, row.directory)))


def test_packing_makes_room_and_contents_that_are_the_same_are_kept_once(base):
    tree = base / "workspace"
    (tree / "one").write_text(TEXT)
    (tree / "two").write_text(TEXT)
    (tree / "small-one").write_text("small")
    (tree / "small-two").write_text("small")
    (tree / "d").mkdir()
    (tree / "d" / "three").write_text(TEXT + "different")
    (tree / "d" / "link").symlink_to("three")
    before = fingerprint(tree)

    async def main():
        async with service_at(base) as service:
            runs = [await shell(service, command) for command in ("rm one small-one", "rm two small-two", "rm -r d")]
            full = used(base)
            done = prune(base)
            assert done.packed.files == 5
            assert used(base) == done.after < full / 5
            assert outs(base) == []
            assert len(blobs(base)) == 3
            for run in reversed(runs):
                assert (await service.undo(run)).error is None

    asyncio.run(main())
    assert difference(before, fingerprint(tree)) == []


def test_what_would_not_come_back_the_same_keeps_its_original(base):
    tree = base / "workspace"
    (tree / "linked").write_text(TEXT)
    os.link(tree / "linked", tree / "other-name")
    (tree / "marked").write_text(TEXT + "1")
    (tree / "random").write_bytes(random.Random(1).randbytes(100_000))
    (tree / "d").mkdir()
    (tree / "d" / "in").write_text(TEXT + "2")
    attributes = True
    try:
        os.setxattr(tree / "marked", "user.mark", b"x")
        os.setxattr(tree / "d", "user.mark", b"y")
    except OSError:
        attributes = False
    inodes = {path.name: path.stat().st_ino for path in tree.rglob("*")}

    async def main():
        async with service_at(base) as service:
            run = await shell(service, "rm -r linked other-name marked random d")
            prune(base)
            stayed = {path.stat().st_ino for path in outs(base)}
            names = ["linked", "other-name", "random", *(["marked", "in"] if attributes else [])]
            assert stayed == {inodes[name] for name in names}
            assert (await service.undo(run)).error is None

    asyncio.run(main())
    assert (tree / "linked").stat().st_ino == (tree / "other-name").stat().st_ino == inodes["linked"]
    if attributes:
        assert os.getxattr(tree / "marked", "user.mark") == b"x"
        assert os.getxattr(tree / "d", "user.mark") == b"y"


def test_an_original_that_someone_still_wrote_to_is_not_packed(base):
    tree = base / "workspace"
    (tree / "log").write_text(TEXT)

    async def main():
        with open(tree / "log", "a") as writer:
            async with service_at(base) as service:
                await shell(service, "rm log")
                writer.write("late")
                writer.flush()
                assert prune(base).packed.files == 0
                assert [path.read_text()[-4:] for path in outs(base)] == ["late"]

    asyncio.run(main())


def test_a_damaged_content_never_stands_in_for_an_original(base):
    tree = base / "workspace"
    (tree / "one").write_text(TEXT)
    (tree / "two").write_text(TEXT)
    before = fingerprint(tree)

    async def main():
        async with service_at(base) as service:
            first = await shell(service, "rm one")
            second = await shell(service, "rm two")
            prune(base)
            (content,) = blobs(base)
            whole = content.read_bytes()
            assert (await service.undo(first)).error is None
            third = await shell(service, "rm one")
            content.write_bytes(whole[:-20])
            prune(base)
            assert content.read_bytes() == whole
            for run in (third, second):
                assert (await service.undo(run)).error is None

    asyncio.run(main())
    assert difference(before, fingerprint(tree)) == []


def test_pruning_takes_the_oldest_and_no_more_than_it_must(base):
    tree = base / "workspace"
    for number in range(6):
        (tree / f"f{number}").write_bytes(random.Random(number).randbytes(50_000))

    async def main():
        async with service_at(base) as service:
            made = await shell(service, "echo new > made")
            runs = [await shell(service, f"rm f{number}") for number in range(6)]
            each = used(base) // 6
            with store_at(base, budget=each * 4) as store:
                told = store.preview()
                assert [gone.row.run for gone in told.runs] == runs[:2]
                assert all(row_of(base, run).kept for run in runs)
            done = prune(base, budget=each * 4)
            assert [gone.row.run for gone in done.runs] == runs[:2]
            assert done.after == told.after == used(base) <= each * 4
            assert [row_of(base, run).kept for run in runs] == [False] * 2 + [True] * 4
            # A run that only made things needs nothing to be undone, so it stays, however old.
            assert row_of(base, made).kept
            assert (await service.undo(made)).error is None
            refused = await service.undo(runs[0])
            assert "pruned on " in refused.error.message and "over the budget of" in refused.error.message
            assert "f0" in service.diff(runs[0]) or service.diff(runs[0]) == ""
            assert (await service.undo(runs[2])).error is None
            assert (tree / "f2").read_bytes() == random.Random(2).randbytes(50_000)

    asyncio.run(main())


def test_what_is_too_old_goes_whatever_the_budget(base):
    (base / "workspace" / "f").write_text(TEXT)

    async def main():
        async with service_at(base) as service:
            made = await shell(service, "echo new > made")
            run = await shell(service, "rm f")
            done = prune(base, days=0.0)
            assert {gone.row.run for gone in done.runs} == {made, run}
            assert "older than 0 days" in (await service.undo(run)).error.message
            assert used(base) == 0

    asyncio.run(main())


def test_what_is_held_is_never_pruned(base):
    tree = base / "workspace"
    (tree / "f").write_text(TEXT)

    async def main():
        async with service_at(base) as service:
            outcome = await service.call(
                "shell", {"command": "mkdir -p .git/hooks; echo x > .git/hooks/pre-push; rm f"}
            )
            assert outcome.changes.state == "held"
            done = prune(base, budget=0, days=0.0)
            assert [held.run for held in done.held] == [outcome.run_id]
            with store_at(base) as store:
                assert store.measure().parts()["held"] > 0
            assert "a line" in service.diff(outcome.run_id)
            assert (await service.apply(outcome.run_id)).error is None
            assert not (tree / "f").exists()

    asyncio.run(main())


def test_a_workspace_that_is_at_work_is_left_for_later(base):
    (base / "workspace" / "f").write_text(TEXT)

    async def main():
        async with service_at(base) as service:
            run = await shell(service, "rm f")
            with service._transactions.locked(), store_at(base, budget=0) as store:
                done = store.prune(patience=0.05)
                assert done.busy == [str(base / "workspace")]
                assert done.runs == []
            assert (await service.undo(run)).error is None

    asyncio.run(main())


def test_contents_stay_while_a_workspace_that_needs_them_may_come_back(base):
    """Its lists lie beside it, on a disk that is not there at the moment."""
    tree = base / "workspace"
    (tree / "f").write_text(TEXT)

    async def main():
        async with service_at(base) as service:
            run = await shell(service, "rm f")
        prune(base)
        database = open_stores(StateHome(str(base / "home"))).connect().ledger
        elsewhere = base / "disk" / "area"
        database._connection.database.execute(
            "UPDATE change_sets SET area = ?, workspace = ? WHERE run = ?", [str(elsewhere), str(base / "disk/w"), run]
        )
        database.close()
        count = len(blobs(base))
        done = prune(base, budget=0)
        assert done.missing == [str(base / "disk/w")]
        assert len(blobs(base)) == count

    asyncio.run(main())


def test_snapshots_find_their_memory_again_or_do_without_it(base):
    tree = base / "workspace"
    for number in range(150):
        (tree / f"f{number}").write_bytes(random.Random(number).randbytes(5_000))

    async def main():
        async with service_at(base, **{"changes.engine": "snapshot"}) as service:
            first = await shell(service, "rm f0")
            full = used(base)
            assert full > 150 * 5_000
            prune(base)
            assert used(base) == full
            prune(base, budget=50_000)
            assert used(base) <= 50_000
            assert row_of(base, first).kept
            before = fingerprint(tree)
            second = await shell(service, "rm f1 f2; echo x >> f3")
            assert (await service.undo(second)).error is None
            assert difference(before, fingerprint(tree)) == []

    asyncio.run(main())


KILLED = """
import os, signal, sys
from haft.changes.store import bounds
from haft.changes.store import store
from haft.storage import StateHome, open_stores
from haft.storage.sqlite.change_sets import SqliteLedger
home, at, budget = StateHome(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
count = 0
def counted(function):
    def step(*words, **named):
        global count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*words, **named)
    return step
for name in ("unlink", "rmdir", "rename", "mkdir", "open", "write", "pwrite", "utime"):
    setattr(os, name, counted(getattr(os, name)))
SqliteLedger.forget_images = counted(SqliteLedger.forget_images)
one = store.Store(home.changes, open_stores(home), home.blobs, bounds.Bounds(budget, 90, 0))
one.prune()
one.close()
print(count)
"""


def test_killed_at_any_moment_a_pass_leaves_a_sound_store(base):
    tree = base / "workspace"
    for number in range(4):
        (tree / f"f{number}").write_text(f"{number}" + TEXT)
        (tree / f"r{number}").write_bytes(random.Random(number).randbytes(20_000))
    (tree / "d" / "e").mkdir(parents=True)
    (tree / "d" / "e" / "x").write_text("x" + TEXT)
    states, runs = [fingerprint(tree)], []

    async def grow():
        async with service_at(base) as service:
            for command in ("rm f0 r0", "rm -r d", "rm f1 r1; echo 1 > n1", "rm f2 r2", "rm f3 r3"):
                runs.append(await shell(service, command))
                states.append(fingerprint(tree))

    asyncio.run(grow())
    budget = used(base) * 2 // 5
    (base / "backup").mkdir()
    subprocess.run(["cp", "-a", base / "workspace", base / "home", base / "backup"], check=True)

    def killed(at):
        for name in ("workspace", "home"):
            nasty.erase(os.fsencode(base / name))
            subprocess.run(["cp", "-a", base / "backup" / name, base / name], check=True)
        words = [sys.executable, "-c", KILLED, str(base / "home"), str(at), str(budget)]
        return subprocess.run(words, capture_output=True, text=True)

    async def check(at):
        async with service_at(base) as service:
            number = len(runs)
            for again in (False, True):
                while number and row_of(base, runs[number - 1]).kept:
                    number -= 1
                    done = await service.undo(runs[number])
                    assert done.error is None, (at, number, done.error)
                    assert difference(states[number], fingerprint(tree)) == [], at
                if number:
                    assert "pruned on" in (await service.undo(runs[0])).error.message
                if not again:
                    while number < len(runs):
                        assert (await service.redo(runs[number])).error is None
                        number += 1
                    left = prune(base, budget=budget)
                    assert left.after == used(base) <= budget

    total = int(killed(0).stdout)
    tries = total if IS_WHOLE else 3 if IS_AGAIN else 6
    for at in steps(total, max(1, total // tries), "killed while pruning"):
        assert killed(at).returncode == -9
        asyncio.run(check(at))


def test_calls_and_passes_go_on_side_by_side(base):
    tree = base / "workspace"
    (tree / "f").write_text(TEXT)
    over = threading.Event()
    failures = []

    def passes():
        while not over.is_set():
            try:
                prune(base, budget=PLENTY)
            except BaseException as error:
                failures.append(error)
                raise

    async def main():
        async with service_at(base) as service:
            await shell(service, "true > started")
            thread = threading.Thread(target=passes)
            thread.start()
            try:
                for number in range(12):
                    before = fingerprint(tree)
                    run = await shell(
                        service, f"echo {number} >> f; mkdir -p d/{number}; cp f d/{number}/copy; rm -rf d/3"
                    )
                    after = fingerprint(tree)
                    for verb, wanted in (("undo", before), ("redo", after)):
                        done = await getattr(service, verb)(run)
                        assert done.error is None, done.error
                        assert difference(wanted, fingerprint(tree)) == []
            finally:
                over.set()
                await asyncio.to_thread(thread.join)

    asyncio.run(main())
    assert failures == []


def test_a_host_tidies_up_by_itself(base, caplog, monkeypatch):
    tree = base / "workspace"
    for number in range(4):
        (tree / f"f{number}").write_bytes(random.Random(number).randbytes(900_000))

    async def main():
        async with service_at(base, **{"changes.store_bytes": 2_000_000}) as service:
            return [await shell(service, f"rm f{number}") for number in range(4)]

    monkeypatch.setattr("haft.service.housekeeping.EVERY_COMMITS", 1)
    runs = asyncio.run(main())
    assert used(base) <= 2_000_000
    assert not row_of(base, runs[0]).kept and row_of(base, runs[-1]).kept
    assert "can no longer be undone" in caplog.text and runs[0] in caplog.text


def test_a_pass_is_due_after_many_commits_or_some_time(base):
    async def main():
        async with service_at(base) as service:
            await shell(service, "echo 1 > a")
            ledger = service._transactions.ledger

            def due(commits, seconds):
                return is_due(service.home.changes, ledger, commits, seconds)

            prune(base)
            assert not due(2, 3600) and due(2, 0)
            await shell(service, "echo 1 > b")
            assert not due(2, 3600)
            await shell(service, "echo 1 > c")
            assert due(2, 3600)

    asyncio.run(main())


def test_no_workspace_decides_what_can_be_undone_in_others(base):
    (base / "workspace" / "haft.toml").write_text("[changes]\nstore_bytes = 1_000_000\nstore_days = 1\n")
    config = load_config(str(base / "workspace"), {})
    assert (config.store_bytes, config.store_days) == (1_000_000, 1)
    assert bounds_of(config, {}) == Bounds(10_000_000_000, 90)
    passed = load_config(str(base / "workspace"), {}, {"changes.store_bytes": 5_000_000})
    assert bounds_of(passed, {}) == Bounds(5_000_000, 90)


def test_housekeeping_ends_soon_after_its_host(base):
    async def main():
        async with service_at(base) as service:
            await shell(service, "echo 1 > a")
            keeping = Housekeeping(service.home, Bounds(PLENTY, 90), service._transactions)
            assert not keeping._stopped()
            keeping.stop()
            keeping._end -= 60
            assert keeping._stopped()

    asyncio.run(main())


def test_old_outputs_go_and_new_ones_stay(base):
    async def main():
        async with service_at(base) as service:
            await shell(service, "echo much")
            return service.home.outputs

    outputs = asyncio.run(main())
    assert outputs_in(outputs).files == 1
    assert remove_outputs(outputs, time.time() - 86_400) == Outputs()
    there = outputs_in(outputs)
    old = time.time() - 200 * 86_400
    for path in Path(outputs).rglob("*"):
        os.utime(path, (old, old))
    for path in Path(outputs).iterdir():
        os.utime(path, (old, old))
    assert remove_outputs(outputs, time.time() - 100 * 86_400) == there
    assert list(Path(outputs).iterdir()) == []


def test_a_large_store_is_measured_once_and_then_only_what_came_since(tmp_path, monkeypatch):
    walked = []
    taken = usage.disk_usage
    monkeypatch.setattr(usage, "disk_usage", lambda path: walked.append(path) or taken(path))
    monkeypatch.setattr(measurement_cache, "LARGE", 3)
    workspace = tmp_path / "ws"
    workspace.mkdir()

    async def write(*contents):
        async with ToolService.open(
            workspace, home=tmp_path / "home", approver=lambda _request: True, installed=False
        ) as service:
            runs = [await service.call("write_file", {"path": "f", "content": text * 9000}) for text in contents]
            return [run.run_id for run in runs]

    asyncio.run(write("a", "b", "c", "d"))
    facade = StoreFacade(StateHome(str(tmp_path / "home")), Bounds(10**9, 30))
    facade.prune()
    whole = facade.measure()
    assert (whole.at, whole.undoable) == (None, 4)
    walked.clear()
    again = facade.measure()
    assert (again.at is None, again.used, again.undoable) == (False, whole.used, 4)
    assert not [path for path in walked if "/kept/" in path]
    [later] = asyncio.run(write("e"))
    walked.clear()
    grown = facade.measure()
    assert grown.undoable == 5
    assert grown.used > whole.used
    assert {path.split("/kept/")[1][:26] for path in walked if "/kept/" in path} == {later}
    facade.prune()
    assert facade.measure().at is None
    facade.close()


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"[]",
        b"{}",
        b'{"kept": [[1, 2, 3]]}',
        b'{"seq": "x", "blobs": 0, "contents": 0, "outputs": 0, "at": 1.0, "kept": []}',
        b'{"seq": 1, "blobs": 0, "contents": -5, "outputs": 0, "at": 1.0, "kept": []}',
        b'{"seq": 1, "blobs": 0, "contents": 0, "outputs": 0, "at": "then", "kept": []}',
        b'{"seq": 1, "blobs": 0, "contents": 0, "outputs": 0, "at": 1.0, "kept": [["a", "b", 0]]}',
    ],
)
def test_a_size_that_cannot_be_so_is_not_remembered(tmp_path, words):
    (tmp_path / "measured").write_bytes(words)
    assert measurement_cache.load(str(tmp_path)) is None


def test_a_size_that_finds_no_room_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(_one, _other):
        raise OSError(28, "No space left on device")

    found = measurement_cache.Measurement(1, {"/area": (1, 2)})
    monkeypatch.setattr(os, "rename", full)
    measurement_cache.save(str(tmp_path), found)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []
    measurement_cache.save(str(tmp_path), found)
    assert measurement_cache.load(str(tmp_path)) == found
