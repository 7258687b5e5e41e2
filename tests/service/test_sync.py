"""Changes through the service without `await`; what the asynchronous one does, this does."""

from __future__ import annotations

import pytest

from haft import ToolService, tool
from haft.contracts import BadUsage


@pytest.fixture
def service(tmp_path):
    (tmp_path / "workspace").mkdir()
    opened = ToolService.open_sync(tmp_path / "workspace", home=tmp_path / "home", approver=lambda _request: True)
    with opened:
        yield opened


def write(service, path, **options):
    return service.call("write_file", {"path": path, "content": "x\n"}, **options).wait().run_id


def test_undo_redo_and_diff(service, tmp_path):
    file = tmp_path / "workspace" / "n"
    run = write(service, "n")
    assert service.diff(run).endswith("+x\n")
    ahead = service.look_ahead("undo", run)
    assert (ahead.runs, [step["action"] for step in ahead.plan], file.exists()) == ((run,), ["delete"], True)
    undo = service.undo().wait()
    assert (undo.result["runs"], undo.result["undo"], file.exists()) == ([run], undo.run_id, False)
    assert service.run(run).outcome["changes"]["state"] == "undone"
    assert service.redo(run).wait().ok and file.exists()
    assert [one.outcome["changes"]["state"] for one in service.runs(tool="write_file")] == ["committed"]


def test_what_is_held_is_applied_or_dropped(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with ToolService.open_sync(workspace, home=tmp_path / "home") as service:
        one, other = write(service, "one", trial=True), write(service, "other", trial=True)
        assert service.apply(one).wait().ok and service.drop(other).wait().ok
    assert [path.name for path in workspace.iterdir()] == ["one"]


def test_the_children_of_a_run_are_undone_and_redone_as_one(service, tmp_path):
    children = []

    @tool
    def writes_both() -> None:
        """Write two files."""
        children.extend(write(service, name) for name in "ab")

    service.add(writes_both)
    parent = service.call("writes_both").wait().run_id
    assert service.undo(parent).wait().result["runs"] == children
    assert not (tmp_path / "workspace" / "a").exists()
    with pytest.raises(BadUsage, match=f"there is nothing to undo in {parent}"):
        service.undo(parent)
    assert service.redo(parent).wait().result["runs"] == children
    assert (tmp_path / "workspace" / "b").exists()


def test_a_conflict_names_who_stands_in_the_way(service, tmp_path):
    run = write(service, "n")
    (tmp_path / "workspace" / "n").write_text("a person")
    outcome = service.undo(run).wait()
    assert outcome.error is not None and outcome.error.code == "conflict"
    assert [(each.path, each.by) for each in outcome.changes.conflicts] == [("n", "outside")]
    assert outcome.result["plan"] == [{"path": "n", "action": "delete"}]


def test_change_sets_of_another_workspace_are_left_to_its_own_service(service, tmp_path):
    run = write(service, "n")
    (tmp_path / "other").mkdir()
    with ToolService.open_sync(tmp_path / "other", home=tmp_path / "home") as other:
        for settle in (other.undo, other.redo, other.apply, other.drop):
            with pytest.raises(BadUsage, match="not the workspace of this service"):
                settle(run)
