"""Backups of real state homes, and homes that are made of them."""

import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sampling
from haft import ToolService
from haft.contracts import BadUsage, StorageFailed
from haft.service import AuditLogFacade, StateHome, make_backup, restore_backup, verify_store

ROUNDS = 10 if sampling.IS_WHOLE else 2


@pytest.fixture
def place(tmp_path):
    (tmp_path / "workspace").mkdir()
    return tmp_path


def opened(place, home="home", **options):
    return ToolService.open(place / "workspace", home=place / home, approver=lambda _request: True, **options)


async def write(service, path, content):
    outcome = await service.call("write_file", {"path": path, "content": content})
    assert outcome.ok, outcome
    return outcome.run_id


def home_of(place, name="home"):
    return StateHome(str(place / name))


def filled(place):
    """A home with three runs that changed `a.txt`, one of them a command; and their ids."""

    async def main():
        async with opened(place) as service:
            runs = [await write(service, "a.txt", "one\n"), await write(service, "a.txt", "two\n")]
            outcome = await service.call("shell", {"command": "rm a.txt; mkdir d; echo three > d/b.txt"})
            assert outcome.ok, outcome
            return [*runs, outcome.run_id]

    return asyncio.run(main())


def undo(place, home, *runs):
    async def main():
        async with opened(place, home) as service:
            for run in runs:
                outcome = await service.undo(run)
                assert outcome.ok, outcome

    asyncio.run(main())


def tree(directory):
    return {str(path.relative_to(directory)) for path in Path(directory).rglob("*")}


def test_a_restored_home_passes_the_checks_and_undoes(place):
    runs = filled(place)
    done = make_backup(home_of(place), str(place / "backup"))
    assert done.copied.files > 5 and done.copied.linked == 0
    shutil.rmtree(place / "home")
    restored = restore_backup(str(place / "backup"), home_of(place, "elsewhere"))
    assert (restored.lost, restored.replaced, restored.made_at) == ((), None, done.made_at)
    verdict = verify_store(home_of(place, "elsewhere"))
    assert verdict.intact, verdict
    assert verdict.undoable == 3
    assert AuditLogFacade(home_of(place, "elsewhere")).last(1)[0]["type"] == "restore"
    undo(place, "elsewhere", *reversed(runs))
    assert tree(place / "workspace") == set()
    assert verify_store(home_of(place, "elsewhere")).intact


def test_a_backup_while_calls_run_is_consistent(place):
    """A host writes, undoes and redoes without a pause. Each backup of its home is a home without a gap."""

    async def main():
        async with opened(place) as service:
            is_over = False

            async def work():
                count = 0
                while not is_over:
                    run = await write(service, f"f{count % 7}", f"{count}\n")
                    if count % 3 == 0:
                        await service.undo(run)
                    if count % 6 == 0:
                        await service.redo(run)
                    count += 1
                return count

            working = asyncio.create_task(work())
            for number in range(ROUNDS):
                await asyncio.sleep(0.1)
                await asyncio.to_thread(make_backup, home_of(place), str(place / "backup"))
                await asyncio.to_thread(restore_backup, str(place / "backup"), home_of(place, f"restored{number}"))
            is_over = True
            assert await working > 0

    asyncio.run(main())
    for number in range(ROUNDS):
        home = home_of(place, f"restored{number}")
        subprocess.run(  # As any command does, it ends the runs of the host that is not alive here.
            [sys.executable, "-m", "haft", "log"], env={**os.environ, "HAFT_HOME": home.path}, check=True,
            cwd=place / "workspace", stdout=subprocess.DEVNULL,
        )  # fmt: skip
        verdict = verify_store(home)
        assert verdict.intact, verdict
        with_runs = {entry.get("run") for entry in AuditLogFacade(home).entries() if entry["type"] == "end"}
        words = [sys.executable, "-m", "haft", "log", "--limit", "100000", "--json"]
        listed = subprocess.run(
            words, env={**os.environ, "HAFT_HOME": home.path}, check=True, cwd=place / "workspace", capture_output=True
        )
        ended = {run["id"] for run in json.loads(listed.stdout)}
        assert ended <= with_runs


def test_a_second_backup_writes_only_what_changed(place):
    filled(place)
    first = make_backup(home_of(place), str(place / "backup"))

    async def more():
        async with opened(place) as service:
            await write(service, "new.txt", "new\n")

    asyncio.run(more())
    second = make_backup(home_of(place), str(place / "backup"))
    assert second.copied.linked >= 4
    assert second.copied.files <= first.copied.files
    assert len([name for name in os.listdir(place / "backup") if name.startswith("home-")]) == 1
    restore_backup(str(place / "backup"), home_of(place, "elsewhere"))
    assert verify_store(home_of(place, "elsewhere")).undoable == 4


def test_a_restored_home_shares_no_file_with_its_backup(place):
    filled(place)
    make_backup(home_of(place), str(place / "backup"))
    restore_backup(str(place / "backup"), home_of(place, "elsewhere"))
    inodes = {os.lstat(path).st_ino for path in (place / "backup").rglob("*")}
    assert inodes.isdisjoint(os.lstat(path).st_ino for path in (place / "elsewhere").rglob("*"))


def test_a_home_is_replaced_only_by_force_and_is_kept(place):
    filled(place)
    make_backup(home_of(place), str(place / "backup"))
    before = tree(place / "home")
    with pytest.raises(BadUsage, match="there is a state home already"):
        restore_backup(str(place / "backup"), home_of(place))
    done = restore_backup(str(place / "backup"), home_of(place), force=True)
    assert tree(done.replaced) == before
    assert verify_store(home_of(place)).intact


def test_a_home_that_a_host_uses_is_not_replaced(place):
    filled(place)
    make_backup(home_of(place), str(place / "backup"))

    async def main():
        async with opened(place):
            with pytest.raises(BadUsage, match=f"process {os.getpid()} uses"):
                restore_backup(str(place / "backup"), home_of(place), force=True)

    asyncio.run(main())


def _backup(home, target):
    make_backup(StateHome(home), target)


def _restore(backup, home):
    restore_backup(backup, StateHome(home))


def killed(work, words, seen):
    """Run something in a process that is killed as soon as `seen` returns true."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=words)
    process.start()
    end = time.monotonic() + 60
    while not seen() and process.is_alive() and time.monotonic() < end:
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def begun(directory, pattern):
    return lambda: any(Path(directory).glob(pattern))


def test_a_backup_that_is_killed_never_looks_complete_and_leaves_the_old_one(place):
    filled(place)
    target = place / "backup"
    killed(_backup, (str(place / "home"), str(target)), begun(target, "home-*/*"))
    if not (target / "haft-backup.json").exists():
        with pytest.raises(BadUsage, match="no complete backup"):
            restore_backup(str(target), home_of(place, "elsewhere"))
    done = make_backup(home_of(place), str(target))
    complete = (target / "haft-backup.json").read_text()
    known = tree(target)
    killed(_backup, (str(place / "home"), str(target)), lambda: tree(target) - known)
    if (target / "haft-backup.json").read_text() == complete:
        assert json.loads(complete)["madeAt"] == done.made_at
    restore_backup(str(target), home_of(place, "elsewhere"))
    assert verify_store(home_of(place, "elsewhere")).undoable == 3


def test_a_restore_that_is_killed_leaves_no_home(place):
    filled(place)
    make_backup(home_of(place), str(place / "backup"))
    killed(_restore, (str(place / "backup"), str(place / "elsewhere")), begun(place, "elsewhere.restoring-*/*"))
    if not (place / "elsewhere").exists():
        restore_backup(str(place / "backup"), home_of(place, "elsewhere"))
    assert verify_store(home_of(place, "elsewhere")).intact


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda target: (target / "x").write_text("mine"), "not empty, and is no backup"),
        (lambda target: (target / "haft-backup.json").write_text("{"), "cannot be read"),
        (lambda target: (target / "haft-backup.json").write_text('{"format": 2, "version": "9"}'), "newer haft"),
        (
            lambda target: (target / "haft-backup.json").write_text('{"format": 1, "directory": "../home"}'),
            "cannot be read",
        ),
    ],
)
def test_other_directories_are_left_alone(place, spoil, match):
    filled(place)
    target = place / "backup"
    target.mkdir()
    spoil(target)
    before = tree(target)
    with pytest.raises(BadUsage, match=match):
        make_backup(home_of(place), str(target))
    assert tree(target) == before


def test_a_backup_cannot_lie_in_its_own_home(place):
    filled(place)
    with pytest.raises(BadUsage, match="lies in the state home itself"):
        make_backup(home_of(place), str(place / "home" / "backup"))


def test_a_full_disk_leaves_the_old_backup(place, monkeypatch):
    filled(place)
    target = place / "backup"
    make_backup(home_of(place), str(target))
    complete = (target / "haft-backup.json").read_text()
    (place / "home" / "tokens").mkdir(exist_ok=True)
    (place / "home" / "tokens" / "large").write_bytes(b"x" * 100_000)
    words = f"""
import resource, signal, sys
from haft.service import StateHome, make_backup
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    make_backup(StateHome({str(place / "home")!r}), {str(target)!r})
except Exception as error:
    print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == StorageFailed.__name__, done.stderr
    assert (target / "haft-backup.json").read_text() == complete
    restore_backup(str(target), home_of(place, "elsewhere"))
    assert verify_store(home_of(place, "elsewhere")).intact


def test_the_check_finds_what_is_damaged_or_missing(place):
    runs = filled(place)
    home = home_of(place)
    assert verify_store(home).intact

    (kept,) = (place / "home" / "changes").glob(f"*/kept/{runs[2]}/out")
    shutil.rmtree(kept)
    blob = next(path for path in (place / "home" / "blobs").glob("??/*"))
    blob.write_bytes(b"other")
    log = place / "home" / "audit" / "record.log"
    log.write_bytes(log.read_bytes().replace(b"write_file", b"wrote_file", 1))
    verdict = verify_store(home)
    found = {each.part for each in verdict.problems}
    assert {"contents", "audit log"} <= found, verdict
    assert not verdict.intact


def test_runs_whose_files_are_not_in_the_backup_say_so_before_an_undo(place):
    runs = filled(place)
    make_backup(home_of(place), str(place / "backup"))
    for part in ("blobs", f"changes/*/kept/{runs[1]}/out"):
        (found,) = (place / "backup").glob(f"home-*/{part}")
        shutil.rmtree(found)
    done = restore_backup(str(place / "backup"), home_of(place, "elsewhere"))
    assert runs[1] in done.lost
    assert verify_store(home_of(place, "elsewhere")).intact

    async def main():
        async with opened(place, "elsewhere") as service:
            outcome = await service.undo(runs[1])
            assert "not in the backup of" in outcome.error.message

    asyncio.run(main())
