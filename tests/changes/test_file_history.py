"""The history of a path has what runs and others did to it, and an undone run is no longer followed by its undo."""

import asyncio
import contextlib

from haft import ToolService
from haft.service import StateHome, open_changes


def history(place, path="a", limit=50):
    with contextlib.closing(open_changes(StateHome(str(place / "home")))) as changes:
        return [each.to_json() for each in changes.file_history(str(place / "ws"), path, limit)]


def test_each_change_has_its_run_its_state_and_its_difference(tmp_path):
    async def scenario():
        (tmp_path / "ws").mkdir()
        async with ToolService.open(
            tmp_path / "ws", home=tmp_path / "home", approver=lambda _request: True, installed=False
        ) as service:
            made = await service.call("write_file", {"path": "a", "content": "1\n2\n"})
            (tmp_path / "ws/a").write_text("1\n2\nby hand\n")
            undone = await service.call("write_file", {"path": "a", "content": "lost\n"})
            undo = await service.undo(undone.run_id)
            await service.call("write_file", {"path": "b", "content": "another file\n"})
            gone = await service.call("shell", {"command": "rm a"})
            (tmp_path / "ws/a").write_text("again\n")
            return [made.run_id, undone.run_id, gone.run_id, undo.run_id]

    made, undone, gone, undo = asyncio.run(scenario())
    found = history(tmp_path)
    # What the first run wrote was overwritten outside of haft, perhaps before anything kept it.
    is_kept = found[3]["note"] is None
    assert is_kept or found[3]["note"] == "content before is no longer kept"
    assert [(each["run"], each["type"], each["added"], each["removed"]) for each in found] == [
        (None, "create", 1, 0),
        (gone, "delete", 0, 3),
        (undone, "modify", 1, 3),
        (None, "modify", 1 if is_kept else 0, 0),
        (made, "create", 2 if is_kept else 0, 0),
    ]
    assert (found[2]["state"], found[2]["latest"]) == ("undone", undo)
    assert (found[3]["after"], found[3]["before"]) == (made, undone)
    assert not is_kept or "+by hand" in found[3]["diff"]
    assert (found[0]["after"], found[0]["before"]) == (gone, None)
    assert [each["run"] for each in history(tmp_path, limit=2)] == [None, gone]
    assert history(tmp_path, "never") == []
