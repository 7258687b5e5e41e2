import os

import pytest

from haft.builtin import find_files as find_files_module
from haft.builtin.find_files import FindFiles
from haft.contracts import InvalidArguments, PathEscapes, ToolFailed


@pytest.fixture
def tree(workspace):
    for path in (
        "a.py",
        "src/b.py",
        "src/deep/c.py",
        "src/d.txt",
        ".hidden/e.py",
        "-dash/f.py",
        ".git/g.py",
        "ignored/h.py",
    ):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("")
    (workspace / ".gitignore").write_text("ignored/\n")
    return workspace


def test_a_name_is_found_in_every_directory_but_the_ignored(call, tree):
    answer = call(FindFiles, pattern="*.py")
    assert answer.result == {
        "files": ["-dash/f.py", ".hidden/e.py", "a.py", "src/b.py", "src/deep/c.py"],
        "truncated": False,
    }
    assert answer.text.split("\n") == answer.result["files"]


def test_a_pattern_with_a_slash_is_for_the_path_below(call, tree):
    assert call(FindFiles, pattern="src/*.py").result["files"] == ["src/b.py"]
    assert call(FindFiles, pattern="*/*.py", path="src").result["files"] == ["src/deep/c.py"]
    assert call(FindFiles, pattern="./*.py", path="src/").result["files"] == ["src/b.py"]
    assert call(FindFiles, pattern="*.{py,txt}", path="src/../src").result["files"] == [
        "src/b.py",
        "src/d.txt",
        "src/deep/c.py",
    ]


def test_a_directory_that_looks_like_an_option_is_a_directory(call, tree):
    assert call(FindFiles, pattern="*", path="-dash").result["files"] == ["-dash/f.py"]


def test_nothing_found_is_said(call, tree):
    answer = call(FindFiles, pattern="*.rs")
    assert answer.text == "no files match `*.rs` in `.`"
    assert answer.result == {"files": [], "truncated": False}


def test_an_empty_workspace_has_no_files(call):
    assert call(FindFiles, pattern="*").result["files"] == []


def test_odd_names_are_whole_and_escaped(call, workspace):
    (workspace / "two\nlines").write_text("")
    (workspace / os.fsdecode(b"caf\xe9")).write_text("")
    answer = call(FindFiles, pattern="*")
    assert sorted(answer.result["files"]) == ["caf\\xe9", "two\nlines"]
    assert sorted(answer.text.split("\n")) == ["caf\\xe9", "two\\nlines"]


def test_too_many_are_cut_and_that_is_said(call, tree, monkeypatch):
    monkeypatch.setattr(find_files_module, "_MOST_FILES", 2)
    answer = call(FindFiles, pattern="*.py")
    assert answer.result == {"files": ["-dash/f.py", ".hidden/e.py"], "truncated": True}
    assert answer.text.endswith("only the first 2 files are shown")


def test_bad_patterns_and_places_are_explained(call, tree):
    (tree / "out").symlink_to("/etc")
    (tree / "inner").symlink_to("src")
    with pytest.raises(InvalidArguments, match="begins with `/`"):
        call(FindFiles, pattern="/etc/*")
    with pytest.raises(PathEscapes):
        call(FindFiles, pattern="*", path="out")
    with pytest.raises(ToolFailed, match="does not exist"):
        call(FindFiles, pattern="*", path="missing")
    assert call(FindFiles, pattern="b.py", path="inner").result["files"] == ["src/b.py"]
