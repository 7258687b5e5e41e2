import os

import pytest

from haft.builtin import list_directory as list_directory_module
from haft.builtin.list_directory import ListDirectory
from haft.contracts import PathEscapes, ToolFailed


def test_a_directory_is_listed_by_name(call, workspace):
    (workspace / "src").mkdir()
    (workspace / "b.txt").write_text("hello")
    (workspace / ".hidden").write_text("")
    (workspace / "link").symlink_to("b.txt")
    os.mkfifo(workspace / "pipe")
    answer = call(ListDirectory)
    assert answer.text.split("\n") == [
        ".hidden (0 bytes)",
        "b.txt (5 bytes)",
        "link -> b.txt",
        "pipe (not a regular file)",
        "src/",
    ]
    assert answer.result == [
        {"name": ".hidden", "type": "file", "size": 0},
        {"name": "b.txt", "type": "file", "size": 5},
        {"name": "link", "type": "link", "size": None},
        {"name": "pipe", "type": "other", "size": None},
        {"name": "src", "type": "directory", "size": None},
    ]


def test_an_empty_directory_says_so(call, workspace):
    (workspace / "d").mkdir()
    answer = call(ListDirectory, path="d")
    assert (answer.text, answer.result) == ("`d` is empty", [])


def test_names_that_would_fake_a_line_are_escaped(call, workspace):
    (workspace / "a\nb").write_text("")
    (workspace / os.fsdecode(b"caf\xe9")).write_text("")
    answer = call(ListDirectory)
    assert answer.text.split("\n") == ["a\\nb (0 bytes)", "caf\\xe9 (0 bytes)"]
    assert [entry["name"] for entry in answer.result] == ["a\nb", "caf\\xe9"]


def test_a_huge_directory_is_cut_and_says_so(call, workspace, monkeypatch):
    monkeypatch.setattr(list_directory_module, "_MOST_ENTRIES", 3)
    for name in "gfedcba":
        (workspace / name).write_text("")
    answer = call(ListDirectory)
    assert answer.text.split("\n") == [
        "a (0 bytes)",
        "b (0 bytes)",
        "c (0 bytes)",
        "… and 4 more entries that are not shown",
    ]
    assert len(answer.result) == 3


def test_what_is_no_directory_inside_is_refused(call, workspace, tmp_path):
    (workspace / "a.txt").write_text("")
    (workspace / "out").symlink_to("..")
    with pytest.raises(ToolFailed, match="is not a directory") as raised:
        call(ListDirectory, path="a.txt")
    assert "read_file" in raised.value.hint
    for path in ("out", "..", "/"):
        with pytest.raises(PathEscapes):
            call(ListDirectory, path=path)
    with pytest.raises(ToolFailed, match="does not exist"):
        call(ListDirectory, path="missing")
