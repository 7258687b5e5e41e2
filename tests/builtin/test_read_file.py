import os
import tracemalloc

import pytest

from haft.builtin.read_file import ReadFile
from haft.contracts import InvalidArguments, LimitExceeded, Limits, PathEscapes, ToolFailed


def test_a_file_is_read_exactly_as_it_is(call, workspace):
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\rstill two\nlast")
    answer = call(ReadFile, path="a.txt")
    assert answer.text == "one\r\ntwo\rstill two\nlast"
    assert answer.result == {
        "path": "a.txt",
        "startLine": 1,
        "endLine": 3,
        "totalLines": 3,
        "bytes": 23,
        "binary": False,
    }
    assert answer.failure is None and answer.changes is None


def test_an_empty_file_is_empty(call, workspace):
    (workspace / "a.txt").write_bytes(b"")
    for arguments in ({}, {"start_line": 1}, {"end_line": 5}):
        answer = call(ReadFile, path="a.txt", **arguments)
        assert answer.text == ""
        assert (answer.result["endLine"], answer.result["totalLines"]) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "text", "last", "total"),
    [
        ({"start_line": 2, "end_line": 3}, "2\n3\n", 3, None),
        ({"start_line": 2}, "2\n3\n4\n5", 5, 5),
        ({"end_line": 1}, "1\n", 1, None),
        ({"start_line": 5, "end_line": 99}, "5", 5, 5),
        ({"start_line": 4, "end_line": 5}, "4\n5", 5, 5),
        ({"start_line": 1, "end_line": 5}, "1\n2\n3\n4\n5", 5, 5),
    ],
)
def test_a_range_of_lines_is_read(call, workspace, arguments, text, last, total):
    (workspace / "a.txt").write_text("1\n2\n3\n4\n5")
    answer = call(ReadFile, path="a.txt", **arguments)
    assert answer.text == text
    assert answer.result["startLine"] == arguments.get("start_line", 1)
    assert (answer.result["endLine"], answer.result["totalLines"]) == (last, total)


def test_a_final_newline_begins_no_line(call, workspace):
    (workspace / "a.txt").write_text("1\n2\n")
    assert call(ReadFile, path="a.txt", start_line=2, end_line=2).result["totalLines"] == 2
    with pytest.raises(ToolFailed, match="has 2 lines, there is no line 3"):
        call(ReadFile, path="a.txt", start_line=3)


def test_a_range_that_cannot_be_is_explained(call, workspace):
    (workspace / "a.txt").write_text("1\n2\n3")
    with pytest.raises(ToolFailed, match="has 3 lines, there is no line 4"):
        call(ReadFile, path="a.txt", start_line=4)
    with pytest.raises(InvalidArguments, match="start_line 3 comes after end_line 2"):
        call(ReadFile, path="a.txt", start_line=3, end_line=2)


def test_a_large_file_wants_a_range(call, context, workspace):
    context.limits = Limits(max_file_bytes=100)
    (workspace / "a.txt").write_text("x" * 9 + "\n" + "y" * 100)
    with pytest.raises(LimitExceeded, match=r"start_line and end_line; the limit is 100") as raised:
        call(ReadFile, path="a.txt")
    assert "max_file_bytes" in raised.value.hint
    assert call(ReadFile, path="a.txt", end_line=1).text == "x" * 9 + "\n"


def test_a_range_longer_than_the_limit_is_cut_and_says_so(call, context, workspace):
    context.limits = Limits(max_file_bytes=101)
    (workspace / "a.txt").write_text("first\n" + "ü" * 1000)
    answer = call(ReadFile, path="a.txt", start_line=2)
    assert answer.text == "ü" * 50 + "\n[cut in line 2 after 101 bytes, the most that is read at once]"
    assert answer.result["truncated"] is True
    assert answer.result["totalLines"] is None


def test_a_huge_file_is_streamed_with_little_memory(call, context, workspace):
    context.limits = Limits(max_file_bytes=10_000)
    with open(workspace / "huge", "wb") as file:
        file.write(b"a" * 8192 + b"\n")
        for _ in range(40):
            file.write(b"0123456789abcde\n" * 65536)
        file.write(b"the end\n")
        last_but_one = 40 * 65536 + 1
    tracemalloc.start()
    try:
        answer = call(ReadFile, path="huge", start_line=last_but_one, end_line=last_but_one + 1)
        endless = call(ReadFile, path="huge", start_line=1, end_line=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.text == "0123456789abcde\nthe end\n"
    assert answer.result["totalLines"] == last_but_one + 1
    assert len(endless.text) == 8193
    assert peak < 5_000_000


def test_one_endless_line_in_a_sparse_giant_is_no_burden(call, context, workspace):
    context.limits = Limits(max_file_bytes=10_000)
    with open(workspace / "giant", "wb") as file:
        file.write(b"x" * 100_000)
        file.truncate(5_000_000_000)
    answer = call(ReadFile, path="giant", start_line=1, end_line=3)
    assert answer.text.startswith("x" * 10_000 + "\n[cut")
    assert answer.result["bytes"] == 5_000_000_000


def test_a_cancelled_read_stops(call, context, workspace):
    with open(workspace / "giant", "wb") as file:
        file.write(b"x" * 10_000)
        file.truncate(5_000_000_000)
    context.cancelled = True
    with pytest.raises(ToolFailed, match="stopped"):
        call(ReadFile, path="giant", start_line=3)


def test_a_binary_file_is_named_and_not_shown(call, workspace):
    (workspace / "a.png").write_bytes(b"\x89PNG\0\0")
    for arguments in ({}, {"start_line": 1}):
        answer = call(ReadFile, path="a.png", **arguments)
        assert answer.text == "`a.png` is a binary file of 6 bytes; its content is not shown."
        assert answer.result["binary"] is True and answer.result["startLine"] is None
        assert answer.failure is None


def test_broken_utf8_is_shown_with_replacements(call, workspace):
    (workspace / "a.txt").write_bytes(b"caf\xe9\n")
    assert call(ReadFile, path="a.txt").text == "caf\ufffd\n"


def test_what_is_outside_is_not_read(call, workspace, tmp_path):
    (tmp_path / "secret").write_text("SECRET")
    (workspace / "link").symlink_to("../secret")
    os.mkfifo(workspace / "pipe")
    for path in ("link", "../secret", str(tmp_path / "secret")):
        with pytest.raises(PathEscapes):
            call(ReadFile, path=path)
    with pytest.raises(ToolFailed, match="named pipe"):
        call(ReadFile, path="pipe")
