import hashlib

import pytest

from haft.builtin.write_file import WriteFile
from haft.contracts import MARK, Change, Conflict, InvalidArguments, LimitExceeded, Limits, PathEscapes, ToolFailed


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_new_file_is_declared_with_the_directories_made_for_it(call, workspace):
    answer = call(WriteFile, path="a/b/c.txt", content="größe\r\n")
    assert (workspace / "a/b/c.txt").read_bytes() == "größe\r\n".encode()
    assert answer.text == "wrote 9 bytes to a/b/c.txt (created)"
    assert (answer.changes.engine, answer.changes.state, answer.changes.complete) == ("declared", "committed", True)
    assert answer.changes.files == (
        Change("a", "create", "directory"),
        Change("a/b", "create", "directory"),
        Change("a/b/c.txt", "create", after=sha("größe\r\n")),
    )


def test_a_written_over_file_is_declared_with_both_digests(call, workspace):
    (workspace / "a.txt").write_text("old")
    (workspace / "link").symlink_to("a.txt")
    answer = call(WriteFile, path="link", content="new")
    assert answer.text == "wrote 3 bytes to link"
    assert answer.changes.files == (Change("a.txt", "modify", before=sha("old"), after=sha("new")),)
    assert (workspace / "a.txt").read_text() == "new"
    assert call(WriteFile, path="link", content="n").text == "wrote 1 byte to link"


def test_writing_what_is_there_changes_nothing(call, workspace):
    (workspace / "a.txt").write_text("same")
    before = (workspace / "a.txt").stat()
    answer = call(WriteFile, path="a.txt", content="same")
    assert answer.text == "a.txt already has this content"
    assert (answer.changes.state, answer.changes.files) == ("none", ())
    assert (workspace / "a.txt").stat().st_ino == before.st_ino


def test_content_that_is_too_large_or_no_text_is_refused(call, context, workspace):
    context.limits = Limits(max_file_bytes=3)
    with pytest.raises(LimitExceeded, match="would have 4 bytes; the limit is 3"):
        call(WriteFile, path="a/a.txt", content="1234")
    with pytest.raises(InvalidArguments, match="lone surrogate"):
        call(WriteFile, path="a.txt", content="\ud800")
    assert list(workspace.iterdir()) == []


def test_the_mark_of_a_secret_is_not_written_over_the_secret(call, workspace):
    (workspace / ".env").write_text("PORT=1\nTOKEN=the-real-one\n")
    with pytest.raises(InvalidArguments, match="in place of a secret"):
        call(WriteFile, path=".env", content=f"PORT=2\nTOKEN={MARK}\n")
    assert (workspace / ".env").read_text() == "PORT=1\nTOKEN=the-real-one\n"


def test_what_cannot_be_written_is_explained(call, workspace, tmp_path):
    (workspace / "d").mkdir()
    with pytest.raises(ToolFailed, match="`d` is a directory"):
        call(WriteFile, path="d", content="")
    (workspace / "out").symlink_to(tmp_path)
    with pytest.raises(PathEscapes):
        call(WriteFile, path="out/x", content="")
    assert not (tmp_path / "x").exists()


def test_a_file_that_changes_between_reading_and_writing_is_a_conflict(call, context, workspace, monkeypatch):
    (workspace / "a.txt").write_text("old")
    real_open = context.workspace.open

    class Interfering:
        def __getattr__(self, name):
            return getattr(real_open.__self__, name)

        def open(self, path):
            file = real_open(path)
            (workspace / "a.txt").write_text("somebody else")
            return file

    context.workspace = Interfering()
    with pytest.raises(Conflict):
        call(WriteFile, path="a.txt", content="new")
    assert (workspace / "a.txt").read_text() == "somebody else"
