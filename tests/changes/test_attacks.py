"""What hostile calls tried against the transactions, each of which worked once."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading

import pytest

from haft import ToolService
from haft.changes.commit.area import remove
from haft.changes.commit.tree import Tree
from haft.contracts import ApprovalAnswer, Principal

every_user = pytest.mark.every_user


def yes(_request):
    return True


@pytest.fixture
def place(tmp_path):
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def opened(place, tmp_path):
    @contextlib.asynccontextmanager
    async def opened(**options):
        options.setdefault("approver", yes)
        async with ToolService.open(place, home=tmp_path / "home", installed=False, **options) as service:

            async def shell(command, **more):
                return await service.call("shell", {"command": command}, **more)

            service.shell = shell
            yield service

    return opened


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 120))


SETTING = "python3 -c \"import os; os.setxattr('loot', '{}', b'{}')\""


@pytest.mark.parametrize("name", ["user.overlay.redirect", "user.overlay.opaque", "trusted.overlay.redirect"])
@pytest.mark.parametrize("target", ["/../secret", "../secret", "/x/../../secret"])
@every_user
def test_a_forged_redirect_brings_in_nothing(name, target, opened, place, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("hidden")

    async def scenario():
        async with opened() as service:
            await service.shell(f"mkdir loot; {SETTING.format(name, target)}; echo x > loot/mine")
            return sorted(os.listdir(place / "loot")) if (place / "loot").exists() else []

    assert run(scenario()) in ([], ["mine"])


@every_user
def test_no_path_leaves_a_tree(tmp_path):
    (tmp_path / "in").mkdir()
    with Tree(str(tmp_path / "in")) as tree:
        for path in ("..", "../out", "a/../../out", "./x", "a//b", "x/.."):
            with pytest.raises(OSError, match=r"not a path beneath|No such file"):
                os.stat("", dir_fd=tree.at(path)[0])
    os.symlink("in", tmp_path / "link")
    with pytest.raises(NotADirectoryError):
        Tree(str(tmp_path / "link"))


DEEP = """python3 -c "import os
for _ in range({}): os.mkdir('x'); os.chdir('x')" """


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
@every_user
def test_what_is_too_deep_hides_nothing_and_stops_nobody(engine, opened, place, tmp_path):
    (place / ".envrc").write_text("as it was")

    async def scenario():
        async with opened(settings={"changes.engine": engine, "limits.max_changed_files": 0}) as service:
            outcome = await service.shell(f"rm -f .envrc; echo evil > .envrc; {DEEP.format(1500)}")
            assert outcome.status == ("error" if engine == "auto" else "done"), outcome
        async with opened(settings={"changes.engine": engine}) as service:
            assert (await service.shell("echo fine > fine")).status == "done"

    run(scenario())
    assert (place / ".envrc").read_text() == "as it was"
    remove(str(place / "x"))
    assert list((tmp_path / "home" / "changes").glob("*/live/*")) == []


@every_user
def test_closed_and_deep_directories_are_removed(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    here = os.getcwd()
    os.chdir(top)
    try:
        for _ in range(3000):
            os.mkdir("d")
            (fd := os.open("d/f", os.O_CREAT | os.O_WRONLY), os.close(fd))
            os.chdir("d")
    finally:
        os.chdir(here)
    (top / "closed").mkdir()
    (top / "closed" / "inner").mkdir()
    (top / "closed" / "inner").chmod(0)
    (top / "closed").chmod(0)
    os.symlink("/", top / "link")
    remove(str(top))
    assert not os.path.lexists(top)


@every_user
def test_reading_huge_holes_can_be_called_off(opened, place):
    async def scenario():
        async with opened(settings={"limits.max_written_file_bytes": 0, "limits.max_written_bytes": 0}) as service:
            begun = service.call(
                "shell", {"command": "for i in 1 2 3 4 5 6 7 8 9; do truncate -s 50G $i; done; echo made"}
            )
            async for event in begun:
                if event.type == "stdout":
                    break
            await asyncio.sleep(1)
            begun.cancel()
            assert (await begun).status == "cancelled"
            return await service.call("write_file", {"path": "free", "content": "x"})

    assert run(scenario()).status == "done"
    assert os.listdir(place) == ["free"]


@every_user
def test_more_than_can_be_looked_at_is_held(opened, place):
    async def scenario():
        async with opened(settings={"limits.max_written_bytes": 10_000_000}) as service:
            outcome = await service.shell("truncate -s 900M hole; echo x > small")
            assert (outcome.error.code, outcome.changes.state) == ("limit-exceeded", "held")
            assert os.listdir(place) == []
            assert (await service.apply(outcome.run_id)).status == "done"

    run(scenario())
    assert sorted(os.listdir(place)) == ["hole", "small"]


@pytest.mark.parametrize("deed", ["rewrite", "add"])
@every_user
def test_what_a_person_does_in_a_directory_that_leaves_is_not_lost(deed, opened, place, monkeypatch):
    (place / "d" / "e").mkdir(parents=True)
    (place / "d" / "e" / "a").write_text("before")
    from haft.changes import transactions

    first = transactions.commit

    def meanwhile(*words, **more):
        if deed == "rewrite":
            kept = os.stat(place / "d" / "e" / "a")
            (place / "d" / "e" / "a").write_text("person")
            os.utime(place / "d" / "e" / "a", ns=(kept.st_atime_ns, kept.st_mtime_ns))
        else:
            (place / "d" / "e" / "new").write_text("person")
        monkeypatch.setattr(transactions, "commit", first)
        return first(*words, **more)

    monkeypatch.setattr(transactions, "commit", meanwhile)

    async def scenario():
        async with opened() as service:
            outcome = await service.shell("rm -rf d")
            assert (outcome.error.code, outcome.changes.state) == ("conflict", "held"), outcome.error

    run(scenario())
    assert (place / "d" / "e" / ("a" if deed == "rewrite" else "new")).read_text() == "person"


@every_user
def test_an_edit_of_the_same_size_and_time_between_look_and_commit_is_seen(opened, place, monkeypatch):
    (place / "f").write_text("before")
    from haft.changes import transactions

    first = transactions.commit

    def meanwhile(*words, **more):
        kept = os.stat(place / "f")
        with open(place / "f", "r+") as file:
            file.write("person")
        os.utime(place / "f", ns=(kept.st_atime_ns, kept.st_mtime_ns))
        return first(*words, **more)

    monkeypatch.setattr(transactions, "commit", meanwhile)

    async def scenario():
        async with opened() as service:
            outcome = await service.shell("echo call > f")
            assert (outcome.error.code, outcome.changes.state) == ("conflict", "held")

    run(scenario())
    assert (place / "f").read_text() == "person"


async def while_it_runs(service, command, deed):
    """A call that waits for a sign, in a file that was there before it began."""
    begun = service.call("shell", {"command": f"{command}; echo ready; until grep -q now sign; do sleep 0.02; done"})
    async for event in begun:
        if event.type == "stdout":
            break
    deed()
    return begun


@every_user
def test_a_workspace_that_became_a_link_is_not_followed(opened, place, tmp_path):
    (tmp_path / "victim").mkdir()
    (place / "sign").touch()

    def deed():
        place.rename(tmp_path / "old")
        os.symlink("victim", place)
        (tmp_path / "old" / "sign").write_text("now")

    async def scenario():
        async with opened() as service:
            outcome = await (await while_it_runs(service, "echo x > new", deed))
            assert outcome.error.code == "conflict"

    run(scenario())
    assert os.listdir(tmp_path / "victim") == []


@every_user
def test_the_mode_that_a_person_gave_a_directory_meanwhile_stays(opened, place):
    (place / "d").mkdir(mode=0o755)
    (place / "sign").touch()

    def deed():
        (place / "d").chmod(0o700)
        (place / "sign").write_text("now")

    async def scenario():
        async with opened() as service:
            outcome = await (await while_it_runs(service, "echo x > d/x", deed))
            assert (outcome.error.code, outcome.changes.state) == ("conflict", "held")

    run(scenario())
    assert (place / "d").stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's layer does not say which file it was")
def test_a_file_that_a_person_removed_meanwhile_does_not_come_back(opened, place):
    for name in ("m", "n", "sign"):
        (place / name).write_text("")

    def deed():
        (place / "m").unlink()
        (place / "sign").write_text("now")

    async def scenario():
        async with opened() as service:
            outcome = await (await while_it_runs(service, "echo 2 >> m; rm n", deed))
            assert (outcome.error.code, outcome.changes.conflicts[0].path) == ("conflict", "m")

    run(scenario())
    assert not (place / "m").exists()


@every_user
def test_a_try_writes_nothing_outside(opened, place, tmp_path):
    (tmp_path / "outside").mkdir()

    async def scenario():
        async with opened(approver=lambda _request: False) as service:
            grants = {"write": [str(tmp_path / "outside")]}
            outcome = await service.shell(f"echo x > {tmp_path}/outside/x", trial=True, grants=grants)
            assert outcome.error.code == "bad-usage", outcome
            outcome = await service.shell("true", trial=True, grants={"network": True})
            assert outcome.error.code == "bad-usage"

    run(scenario())
    assert os.listdir(tmp_path / "outside") == []


@every_user
def test_a_yes_to_a_diff_is_no_grant(opened, place):
    def seen(request):
        return ApprovalAnswer(approved=True)

    async def scenario():
        async with opened(approver=seen) as service:
            command = "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit"
            outcome = await service.shell(command, trial=True)
            assert (outcome.error.code, outcome.changes.state) == ("sandbox-denied", "held")
            assert outcome.run_id in outcome.error.hint
            grants = {"write": [".git/hooks"]}
            outcome = await service.shell(
                "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit", trial=True, grants=grants
            )
            assert outcome.changes.state == "committed", outcome.error

    run(scenario())


@every_user
def test_what_someone_changed_during_a_trial_is_not_overwritten(opened, place):
    (place / "f").write_text("before")
    (place / "sign").touch()

    async def scenario():
        async with opened() as service:
            command = "echo call > f; echo ready; until grep -q now sign; do sleep 0.02; done"
            begun = service.call("shell", {"command": command}, trial=True)
            async for event in begun:
                if event.type == "stdout":
                    break
            (place / "f").write_text("person")
            (place / "sign").write_text("now")
            outcome = await begun
            assert (outcome.error.code, outcome.changes.state) == ("conflict", "held")

    run(scenario())
    assert (place / "f").read_text() == "person"


@every_user
def test_an_undo_brings_nothing_to_life_that_was_left_lying(opened, place):
    async def scenario():
        async with opened() as service:
            made = await service.shell("git init -q --bare e")
            assert made.status == "done", made.error
            halved = await service.shell("rm -r e/refs")
            lying = await service.shell("printf '[core]\\n\\tsshCommand = evil\\n' >> e/config")
            assert (halved.status, lying.status) == ("done", "done"), (halved.error, lying.error)
            undone = await service.undo(halved.run_id)
            assert undone.error.code == "sandbox-denied"
            forced = await service.undo(halved.run_id, force=True, who=Principal("bot", kind="agent"))
            assert forced.error.code == "sandbox-denied", "an agent does not get around the guard"
            assert not (place / "e" / "refs").exists()
            assert (await service.undo(halved.run_id, force=True)).status == "done"

    run(scenario())


def test_many_directories_of_hard_links_are_copied(tmp_path):
    (tmp_path / "from").mkdir()
    for number in range(260):
        (tmp_path / "from" / str(number)).mkdir()
        if number:
            os.link(tmp_path / "from" / "0" / "f", tmp_path / "from" / str(number) / "f")
        else:
            (tmp_path / "from" / "0" / "f").write_text("one")
    from haft.changes.commit.exact_copy import copy

    (tmp_path / "to").mkdir()
    with Tree(str(tmp_path)) as tree, Tree(str(tmp_path / "to")) as target:
        copy(tree, "from", target, "all")
    assert len({(tmp_path / "to" / "all" / str(number) / "f").stat().st_ino for number in range(260)}) == 1


@every_user
def test_a_workspace_may_not_choose_the_weaker_engine(opened, place):
    (place / "haft.toml").write_text('[changes]\nengine = "snapshot"\nstore_bytes = 1000000\n')

    async def scenario():
        async with opened() as service:
            outcome = await service.shell("echo x > x")
            assert service.config.changes_engine == "auto"
            return outcome

    assert run(scenario()).status == "done"


@every_user
def test_a_damaged_journal_loses_nothing_and_stops_nobody(opened, place, tmp_path):
    program = """
import asyncio, os, signal, sys
from haft import ToolService
from haft.changes.commit import steps
first = steps.StepRunner.apply
def apply(self, step):
    first(self, step)
    os.kill(os.getpid(), signal.SIGKILL)
steps.StepRunner.apply = apply
async def main():
    async with ToolService.open(sys.argv[1], home=sys.argv[2], approver=lambda r: True, installed=False) as service:
        await service.call("shell", {"command": "echo new > a; echo new > b"})
asyncio.run(main())
"""
    for name in "ab":
        (place / name).write_text("old")
    subprocess.run([sys.executable, "-c", program, place, tmp_path / "home"], check=False)
    [manifest] = (tmp_path / "home" / "changes").glob("*/live/*/r_*/manifest")
    words = manifest.read_bytes()
    manifest.write_bytes(words[: len(words) // 2])

    async def scenario():
        async with opened() as service:
            return await service.shell("echo fine > c")

    assert run(scenario()).status == "done"
    saved = list((tmp_path / "home" / "changes").glob("*/saved/r_*/out/*"))
    assert [path.read_text() for path in saved] == ["old"]
    assert threading.active_count() < 20
