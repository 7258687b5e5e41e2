"""Writing executables: all of them or none, and none over what is something else."""

import os

import pytest

from haft.authoring.toolbox.executables import place
from haft.contracts import BadUsage


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_executables_are_written_into_a_directory_that_is_made(tmp_path):
    placed = place({"a": "#!/bin/sh\n", "b": "#!/bin/sh\n"}, str(tmp_path / "new/box"))
    assert [one.to_json() for one in placed] == [
        {"name": "a", "path": str(tmp_path / "new/box/a"), "new": True},
        {"name": "b", "path": str(tmp_path / "new/box/b"), "new": True},
    ]
    assert os.access(placed[0].path, os.X_OK) and names(tmp_path / "new/box") == ["a", "b"]


def test_what_is_the_same_stays_and_becomes_executable_again(tmp_path):
    place({"a": "x", "b": "y"}, str(tmp_path))
    (tmp_path / "b").chmod(0o600)
    assert [one.is_new for one in place({"a": "x", "b": "y"}, str(tmp_path))] == [False, True]
    assert os.access(tmp_path / "b", os.X_OK)


@pytest.mark.parametrize("kind", ["file", "link", "pipe", "binary", "directory"])
def test_what_is_something_else_is_not_replaced_and_nothing_is_written(tmp_path, kind):
    there, other = tmp_path / "box/b", tmp_path / "other"
    (tmp_path / "box").mkdir()
    other.write_text("y")
    match kind:
        case "file":
            there.write_text("mine")
        case "link":
            there.symlink_to(other)
        case "pipe":
            os.mkfifo(there)
        case "binary":
            there.write_bytes(b"\xff\0")
        case "directory":
            there.mkdir()
    with pytest.raises(BadUsage, match=f"{there} exists already") as refused:
        place({"a": "x", "b": "y"}, str(tmp_path / "box"))
    assert refused.value.hint == "`--force` replaces it"
    assert names(tmp_path / "box") == ["b"]
    if kind == "directory":
        with pytest.raises(BadUsage, match="is a directory"):
            place({"a": "x", "b": "y"}, str(tmp_path / "box"), force=True)
        assert names(tmp_path / "box") == ["b"]
        return
    place({"a": "x", "b": "new"}, str(tmp_path / "box"), force=True)
    assert there.read_text() == "new" and not there.is_symlink() and other.read_text() == "y"


def test_how_many_are_in_the_way_is_said(tmp_path):
    place({"a": "1", "b": "1", "c": "1"}, str(tmp_path))
    with pytest.raises(BadUsage, match="/a and 2 more exists already"):
        place({"a": "2", "b": "2", "c": "2"}, str(tmp_path))


def test_nothing_is_left_where_writing_fails(tmp_path, monkeypatch):
    def full(*_given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadUsage, match="cannot be written to: No space left on device"):
        place({"a": "x", "b": "y"}, str(tmp_path / "box"))
    assert names(tmp_path) == [], "nor the directory that was made for them"


def test_a_directory_that_is_a_file_is_named(tmp_path):
    (tmp_path / "box").write_text("")
    with pytest.raises(BadUsage, match=str(tmp_path / "box")):
        place({"a": "x"}, str(tmp_path / "box"))


def test_a_directory_that_may_not_be_written_to_is_named(tmp_path, monkeypatch):
    def refused(*_given, **_named):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refused)
    with pytest.raises(BadUsage, match=f"{tmp_path} cannot be written to: Permission denied"):
        place({"a": "x"}, str(tmp_path))
    assert names(tmp_path) == []
