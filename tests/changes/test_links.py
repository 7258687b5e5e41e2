"""Hard links and the snapshot engine: names that were one file are one again after an undo, and apart where they were
apart; where that cannot be had, the outcome says so."""

import asyncio
import os
import sys

import pytest

from haft.changes.commit import area
from haft.service import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="commands are those of Linux"),
]

DOES = {
    "deletes one name": "rm b",
    "deletes two of three names": "rm a b",
    "writes a new file under one name": "sed -i s/one/other/ b",
    "puts an equal copy under one name": "cp -p b t; mv t b",
    "puts equal copies under all names": "for each in a b c; do cp -p a t; mv t $each; done",
    "writes all names through one": "echo more >> a",
    "makes one file of two equal ones": "ln -f x y",
    "makes another name": "ln a d; rm c",
}


async def yes(_request) -> bool:
    return True


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "workspace"
    place.mkdir()
    (place / "a").write_text("one\n")
    os.link(place / "a", place / "b")
    os.link(place / "a", place / "c")
    for name in "xy":
        (place / name).write_text("equal\n")
        os.utime(place / name, (1, 1))
    return place


def use(workspace, go):
    async def main():
        async with ToolService.open(
            workspace,
            approver=yes,
            home=workspace.parent / "home",
            installed=False,
            settings={"changes.engine": "snapshot"},
        ) as service:
            return await go(service)

    return asyncio.run(main())


def tree(workspace):
    """Each name with what it holds and all that are one file with it."""
    found = {each.name: each for each in workspace.iterdir()}
    return {
        name: (path.read_text(), {other for other, one in found.items() if one.samefile(path)})
        for name, path in found.items()
    }


@pytest.mark.parametrize("copies", [False, True], ids=["moved", "copied"])
@pytest.mark.parametrize("what", DOES)
def test_names_that_were_one_file_are_one_again_after_an_undo(what, copies, workspace, monkeypatch):
    if copies:
        monkeypatch.setattr(area, "can_rename_between", lambda *_places: False)

    async def go(service):
        before = tree(workspace)
        outcome = await service.call("shell", {"command": DOES[what]})
        after = tree(workspace)
        assert after != before
        assert (outcome.changes.state, outcome.changes.complete) == ("committed", True)
        for verb, wanted in ((service.undo, before), (service.redo, after), (service.undo, before)):
            done = await verb(outcome.run_id)
            assert (done.status, done.changes.complete) == ("done", True), done.error or done.changes
            assert tree(workspace) == wanted

    use(workspace, go)


@pytest.mark.parametrize("does", ["rm x", "cp -p x t; mv t x"])
def test_a_directory_with_another_name_in_it_that_was_closed_since_has_its_mode_again(does, workspace):
    """It is opened to look at that name: for those looks it counts as it was, and it is closed before the undo opens
    it for good."""
    (workspace / "z").mkdir(0o750)
    os.link(workspace / "x", workspace / "z" / "name")
    modes = []

    async def go(service):
        outcome = await service.call("shell", {"command": f"{does}; chmod 0 z"})
        assert (outcome.changes.state, outcome.changes.complete) == ("committed", True)
        for verb in (service.undo, service.redo, service.undo):
            done = await verb(outcome.run_id)
            assert (done.status, done.changes.complete) == ("done", True), done.error or done.changes
            modes.append((workspace / "z").stat().st_mode & 0o777)

    use(workspace, go)
    assert modes == [0o750, 0, 0o750]
    assert (workspace / "z" / "name").samefile(workspace / "x")


def test_changes_that_may_not_stay_are_reverted_with_their_links(workspace):
    async def go(service):
        before = tree(workspace)
        outcome = await service.call("shell", {"command": "rm b; echo x > .envrc"})
        assert outcome.changes.state == "held"
        assert tree(workspace) == before

    use(workspace, go)


def test_where_another_name_was_changed_since_the_outcome_says_that_they_are_not_one_file(workspace):
    async def go(service):
        outcome = await service.call("shell", {"command": "rm b"})
        await service.call("shell", {"command": "echo more >> a"})
        done = await service.undo(outcome.run_id)
        assert (done.status, done.changes.complete) == ("done", False)
        assert "a, b, c: were hard links of one file, and are now separate files" in done.changes.reason
        assert (workspace / "b").read_text() == "one\n"

    use(workspace, go)


@pytest.mark.parametrize("does", ["rm -r deep", "rm -r deep; rm c"])
def test_a_directory_comes_back_with_a_file_that_is_one_with_names_elsewhere_made_anew_since(does, workspace):
    (workspace / "deep").mkdir()
    os.link(workspace / "a", workspace / "deep" / "d")

    async def go(service):
        first = await service.call("shell", {"command": does})
        # The redo keeps the directory as it takes it away, and the undo that follows would bring it back whole.
        for verb in (service.undo, service.redo):
            assert (await verb(first.run_id)).error is None
        second = await service.call("shell", {"command": "rm -f a b c"})
        for run in (second, first):
            assert (await service.undo(run.run_id)).error is None

    use(workspace, go)
    assert (workspace / "deep" / "d").read_text() == "one\n"
    assert all((workspace / "deep" / "d").samefile(workspace / name) for name in "abc")
