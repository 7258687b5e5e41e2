"""Undo of an undo, and grants for what no walls hold."""

import asyncio
import contextlib

import pytest

from haft import ToolService

pytestmark = pytest.mark.every_user


@contextlib.asynccontextmanager
async def opened(place):
    (place / "ws").mkdir(exist_ok=True)
    async with ToolService.open(
        place / "ws", home=place / "home", approver=lambda _request: True, installed=False
    ) as service:
        yield service


def test_a_forced_undo_is_taken_back_by_undoing_it(tmp_path):
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
            assert (refused.error.code, refused.changes.state) == ("walled", "held")
            made = await service.call("write_file", arguments, grants={"write": [grant]})
            assert made.status == "done", made.error
            await service.undo(made.run_id)
            assert not hook.exists()
            command = {"command": "echo y > .git/hooks/pre-push"}
            made = await service.call("shell", command, grants={"write": [grant]})
            assert (made.status, hook.read_text()) == ("done", "y\n"), made.error

    asyncio.run(scenario())
