"""Undo of an undo, and grants for what no sandbox holds."""

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest

from haft import ToolService
from haft.changes.commit.manifest import Manifest

sys.path.insert(0, str(Path(__file__).parent))
from fingerprint import difference, fingerprint

from sampling import SELDOM

pytestmark = pytest.mark.every_user(share=SELDOM)


@contextlib.asynccontextmanager
async def opened(place):
    (place / "ws").mkdir(exist_ok=True)
    async with ToolService.open(
        place / "ws", home=place / "home", approver=lambda _request: True, installed=False
    ) as service:
        yield service


def test_a_forced_undo_can_be_undone_itself(tmp_path):
    file = tmp_path / "ws" / "f"

    async def scenario():
        async with opened(tmp_path) as service:
            made = await service.call("shell", {"command": "echo 1 > f"})
            file.write_text("mine")
            assert (await service.undo(made.run_id)).error.code == "conflict"
            forced = await service.undo(made.run_id, force=True)
            assert not file.exists()
            back = await service.undo(forced.run_id)
            assert (back.status, file.read_text()) == ("done", "mine"), back.error
            assert service.run(made.run_id).outcome["changes"]["state"] == "committed"
            assert service.run(forced.run_id).outcome["changes"]["state"] == "undone"

    asyncio.run(scenario())


def test_an_undone_redo_is_undone_again(tmp_path):
    file = tmp_path / "ws" / "f"

    async def scenario():
        async with opened(tmp_path) as service:
            made = await service.call("shell", {"command": "echo 1 > f"})
            await service.undo(made.run_id)
            again = await service.redo(made.run_id)
            assert file.exists()
            assert (await service.undo(again.run_id)).status == "done"
            assert not file.exists()
            assert service.run(made.run_id).outcome["changes"]["state"] == "undone"
            assert (await service.redo(made.run_id)).status == "done"
            assert file.read_text() == "1\n"

    asyncio.run(scenario())


@pytest.mark.parametrize("grant", [".git/hooks/pre-push", ".git/hooks"])
def test_a_granted_hook_is_written_by_every_tool(grant, tmp_path):
    hook = tmp_path / "ws" / ".git" / "hooks" / "pre-push"

    async def scenario():
        async with opened(tmp_path) as service:
            hook.parent.mkdir(parents=True)
            arguments = {"path": ".git/hooks/pre-push", "content": "x"}
            refused = await service.call("write_file", arguments)
            assert (refused.error.code, refused.changes.state) == ("sandbox-denied", "held")
            made = await service.call("write_file", arguments, grants={"write": [grant]})
            assert made.status == "done", made.error
            await service.undo(made.run_id)
            assert not hook.exists()
            command = {"command": "echo y > .git/hooks/pre-push"}
            made = await service.call("shell", command, grants={"write": [grant]})
            assert (made.status, hook.read_text()) == ("done", "y\n"), made.error

    asyncio.run(scenario())


@pytest.fixture
def snapshots(tmp_path):
    @contextlib.asynccontextmanager
    async def opened_with_snapshots():
        (tmp_path / "ws").mkdir(exist_ok=True)
        async with ToolService.open(
            tmp_path / "ws",
            home=tmp_path / "home",
            approver=lambda _request: True,
            installed=False,
            settings={"changes.engine": "snapshot"},
        ) as service:
            yield service

    return opened_with_snapshots


def make_tree(top):
    """Directories in directories, with files of many kinds of content, a link and a closed directory."""
    for number in range(12):
        place = top / f"d{number % 3}" / f"e{number}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "text").write_text(f"line {number}\n" * 300)
        (place / "zeros").write_bytes(bytes(20_000))
        (place / "empty").write_text("")
        (place / "program").write_text("#!/bin/sh\n")
        (place / "program").chmod(0o755)
        (place / "link").symlink_to("text")
    closed = top / "d1" / "closed"
    closed.mkdir()
    (closed / "inside").write_text("kept")
    closed.chmod(0o555)


def test_a_tree_that_is_made_anew_comes_back_in_one_step(tmp_path, snapshots):
    tree = tmp_path / "ws" / "tree"

    async def scenario():
        async with snapshots() as service:
            make_tree(tree)
            before = fingerprint(str(tree))
            gone = await service.call("shell", {"command": "chmod u+w tree/d1/closed; rm -rf tree"})
            assert (gone.ok, gone.changes.engine, tree.exists()) == (True, "snapshot", False), gone.error
            back = await service.undo(gone.run_id)
            assert back.ok, back.error
            assert difference(before, fingerprint(str(tree))) == []
            return back.run_id

    run = asyncio.run(scenario())
    [kept] = [*(tmp_path / "home").rglob(f"kept/{run}"), *tmp_path.glob(f".*/**/kept/{run}")]
    manifest = Manifest.read(str(kept))
    assert [step[1:3] for step in manifest.notes["steps"]] == [["swap", "tree"]]


def test_a_name_that_shares_its_file_with_another_does_so_again_in_a_tree_that_comes_back(tmp_path, snapshots):
    tree = tmp_path / "ws" / "tree"

    async def scenario():
        async with snapshots() as service:
            make_tree(tree)
            (tree / "other").hardlink_to(tree / "d0" / "e0" / "text")
            before = fingerprint(str(tree))
            gone = await service.call("shell", {"command": "chmod u+w tree/d1/closed; rm -rf tree"})
            assert (await service.undo(gone.run_id)).ok
            assert difference(before, fingerprint(str(tree))) == []
            assert (tree / "other").samefile(tree / "d0" / "e0" / "text")

    asyncio.run(scenario())


def test_a_conflict_is_looked_up_by_its_path_and_not_in_every_later_change_set(tmp_path, monkeypatch):
    async def scenario():
        async with opened(tmp_path) as service:
            first = await service.call("write_file", {"path": "a/f", "content": "1"})
            later = await service.call("write_file", {"path": "a/f", "content": "2"})
            for number in range(12):
                await service.call("write_file", {"path": f"other{number}", "content": "x"})
            read = []
            whole = Manifest.read.__func__
            monkeypatch.setattr(
                Manifest, "read", classmethod(lambda cls, place: read.append(Path(place).name) or whole(cls, place))
            )
            refused = await service.undo(first.run_id)
            assert refused.error.code == "conflict"
            assert later.run_id in refused.error.message
            assert set(read) <= {first.run_id, later.run_id}
            (tmp_path / "ws" / "a" / "f").write_text("mine")
            assert "(outside)" in (await service.undo(later.run_id)).error.message
            forced = await service.undo(first.run_id, force=True)
            assert forced.ok, forced.error
            assert set(read) <= {first.run_id, later.run_id, forced.run_id}

    asyncio.run(scenario())
