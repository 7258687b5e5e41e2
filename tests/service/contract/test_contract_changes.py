"""Changes: what a call changed, undo, redo, conflicts, trial runs, and names of files that are unusual."""

import os

import pytest

from haft.contracts import BadUsage, HaftError, UnknownRun


def write(service, path, content="x\n", **options):
    return service.call("write_file", {"path": path, "content": content}, **options).wait()


def test_what_a_call_changed(service, files):
    outcome = write(service, "made/new")
    changes = outcome.changes
    assert (changes.state, changes.complete, changes.conflicts) == ("committed", True, ())
    assert [(each.path, each.type, each.kind) for each in changes.files] == [
        ("made", "create", "directory"),
        ("made/new", "create", "file"),
    ]
    assert changes.files[1].before is None and changes.files[1].after
    again = write(service, "made/new", "y\n").changes.files
    assert [(each.type, each.before) for each in again] == [("modify", changes.files[1].after)]
    assert service.diff(outcome.run_id).endswith("+x\n")
    assert (files / "made/new").read_text() == "y\n"


def test_undo_and_redo(service, files):
    run = write(service, "undone").run_id
    ahead = service.look_ahead("undo", run)
    assert (ahead.runs, [*ahead.plan], ahead.conflicts) == ((run,), [{"path": "undone", "action": "delete"}], ())
    assert (files / "undone").exists()
    undo = service.undo().wait()
    assert (undo.ok, undo.tool, undo.result["runs"], undo.result["undo"]) == (True, "undo", [run], undo.run_id)
    assert not (files / "undone").exists()
    assert service.run(run).outcome["changes"]["state"] == "undone"
    redo = service.redo(run).wait()
    assert redo.ok and (files / "undone").read_text() == "x\n"
    assert service.run(run).outcome["changes"]["state"] == "committed"


def test_undo_of_a_thread_and_of_several_runs(service, files):
    runs = [write(service, f"of-thread-{n}", thread="T-undo").run_id for n in range(2)]
    assert set(service.undo(thread="T-undo").wait().result["runs"]) == set(runs)
    assert not (files / "of-thread-0").exists()
    runs = [write(service, f"of-several-{n}").run_id for n in range(2)]
    assert set(service.undo(*runs).wait().result["runs"]) == set(runs)
    assert not (files / "of-several-1").exists()


def test_a_conflict_names_who_stands_in_the_way_and_can_be_forced(service, files):
    run = write(service, "contested").run_id
    (files / "contested").write_text("a person")
    assert [each.path for each in service.look_ahead("undo", run).conflicts] == ["contested"]
    outcome = service.undo(run).wait()
    assert (outcome.status, outcome.error.code, outcome.process_exit_code) == ("error", "conflict", 5)
    assert [(each.path, each.by) for each in outcome.changes.conflicts] == [("contested", "outside")]
    assert (files / "contested").read_text() == "a person"
    assert service.undo(run, force=True).wait().ok and not (files / "contested").exists()


def test_a_trial_run_is_applied_or_dropped(service, files):
    applied, dropped = (service.call("write_file", _file(name), trial=True) for name in ("applied", "dropped"))
    for run, settle in ((applied, service.approve), (dropped, service.reject)):
        waiting = _asked(service, run.id)
        assert "+tried" in waiting.shown["diff"] and not (files / waiting.shown["arguments"]["path"]).exists()
        settle(waiting.id)
    assert (applied.wait().status, applied.wait().changes.state) == ("done", "committed")
    assert dropped.wait().changes.state == "discarded"
    assert (files / "applied").read_text() == "tried\n" and not (files / "dropped").exists()


def test_held_changes_are_applied_or_dropped(kind, tmp_path):
    with kind.open(tmp_path, settings={"approval.expires_seconds": 0}) as service:
        runs = [service.call("write_file", _file(name), trial=True).wait() for name in ("one", "other")]
        assert {run.changes.state for run in runs} == {"held"}
        assert service.apply(runs[0].run_id).wait().ok and service.drop(runs[1].run_id).wait().ok
    assert [path.name for path in (tmp_path / "workspace").iterdir()] == ["one"]


def test_there_is_nothing_to_undo_in_a_run_that_changed_nothing(service):
    run = service.call("add", {"a": 1, "b": 1}).wait().run_id
    for refuses in (service.diff, service.undo, lambda name: service.look_ahead("undo", name), service.redo):
        with pytest.raises(BadUsage):
            _ended(refuses(run))
    for refuses in (service.diff, service.undo, service.apply, service.drop):
        with pytest.raises(UnknownRun):
            _ended(refuses("r_ffffffffffffffffffffffff"))


def test_unusual_names_of_files(service, files):
    names = ["a b", "ü", "'\"\\", "new\nline", "%2e%2e?x=#1&y", "-rf", "日本", "<script>"]
    for name in names:
        outcome = write(service, f"odd/{name}")
        assert outcome.changes.files[-1].path == f"odd/{name}", outcome.error
        assert [run.id for run in service.runs(path=f"odd/{name}")] == [outcome.run_id]
    assert {*os.listdir(files / "odd")} == {*names}


def test_a_name_that_is_not_utf_8(service, files):
    run = service.call("shell", {"command": r"""printf x > "$(printf 'bad-\377')" """})
    service.approve(_asked(service, run.id).id)
    (change,) = run.wait().changes.files
    assert os.fsencode(change.path) == b"bad-\xff" and change.to_json()["pathBytes"] == "YmFkLf8="
    assert service.look_ahead("undo", run.id).runs == (run.id,)
    assert service.undo(run.id).wait().ok
    assert b"bad-\xff" not in os.listdir(os.fsencode(files))


def _file(name):
    return {"path": name, "content": "tried\n"}


def _asked(service, run):
    while True:
        for waiting in service.inbox():
            if waiting.run == run:
                return waiting


def _ended(found):
    """What an undo raises may come when it is made, or when it is waited for."""
    found.wait()
    raise AssertionError("it ended without an error") from HaftError("")
