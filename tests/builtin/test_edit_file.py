import asyncio
import hashlib

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from haft.builtin.edit_file import EditFile
from haft.contracts import MARK, Change, Conflict, InvalidArguments, LimitExceeded, Limits, PathEscapes, ToolFailed


def sha(content):
    return hashlib.sha256(content).hexdigest()


def test_one_replacement_leaves_everything_else_bit_for_bit(call, workspace):
    content = b"\xff\xfe bad\r\nhello\r\nmore\nno newline at the end"
    (workspace / "a").write_bytes(content)
    (workspace / "a").chmod(0o750)
    answer = call(EditFile, path="a", old_string="hello", new_string="good\nbye")
    expected = b"\xff\xfe bad\r\ngood\nbye\r\nmore\nno newline at the end"
    assert (workspace / "a").read_bytes() == expected
    assert (workspace / "a").stat().st_mode & 0o777 == 0o750
    assert answer.text.startswith("made 1 replacement in a\n--- a\n+++ a\n@@ -1,4 +1,5 @@\n")
    assert "-hello" in answer.text and "+good" in answer.text
    assert answer.changes.files == (Change("a", "modify", before=sha(content), after=sha(expected)),)
    assert answer.changes.state == "committed"


def test_the_mark_of_a_secret_is_not_written_over_the_secret(call, workspace):
    before = "PORT=1\nTOKEN=the-real-one\n"
    (workspace / ".env").write_text(before)
    for edit in (
        {"old_string": "PORT=1\n", "new_string": f"PORT=2\nTOKEN={MARK}\n"},
        {"edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "PORT", "new_string": MARK}]},
    ):
        with pytest.raises(InvalidArguments, match="in place of a secret"):
            call(EditFile, path=".env", **edit)
    with pytest.raises(ToolFailed, match="not found") as caught:
        call(EditFile, path=".env", old_string=f"TOKEN={MARK}", new_string=f"TOKEN={MARK}\nPORT=2")
    assert "holds the real value there" in caught.value.hint
    assert (workspace / ".env").read_text() == before


def test_several_edits_are_applied_in_order_and_written_once(call, workspace):
    (workspace / "a").write_text("one two\n")
    edits = [
        {"old_string": "one", "new_string": "two"},
        {"old_string": "two", "new_string": "three", "replace_all": True},
    ]
    answer = call(EditFile, path="a", edits=edits)
    assert (workspace / "a").read_text() == "three three\n"
    assert answer.text.startswith("made 3 replacements in a\n")
    assert len(answer.changes.files) == 1


def test_all_edits_or_none(call, workspace):
    (workspace / "a").write_text("one two\n")
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "three", "new_string": "3"}]
    with pytest.raises(ToolFailed, match=r"edits\[1\]: old_string was not found in `a`; nothing was changed"):
        call(EditFile, path="a", edits=edits)
    assert (workspace / "a").read_text() == "one two\n"


def test_edits_that_cancel_each_other_out_change_nothing(call, workspace):
    (workspace / "a").write_text("one\n")
    edits = [{"old_string": "one", "new_string": "two"}, {"old_string": "two", "new_string": "one"}]
    answer = call(EditFile, path="a", edits=edits)
    assert (answer.changes.state, answer.changes.files) == ("none", ())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "old_string is missing"),
        ({"old_string": "a"}, "new_string is missing"),
        ({"old_string": "a", "new_string": "b", "edits": []}, "either edits or old_string, not both"),
        ({"replace_all": True, "edits": [{"old_string": "a", "new_string": "b"}]}, "either edits or replace_all"),
        ({"edits": []}, "edits is empty"),
        ({"old_string": "", "new_string": "b"}, "old_string is empty"),
        ({"old_string": "a", "new_string": "a"}, "are the same"),
        ({"edits": [{"old_string": "", "new_string": "b"}]}, r"edits\[0\]: old_string is empty"),
        ({"old_string": "\ud800", "new_string": "b"}, "lone surrogate"),
    ],
)
def test_arguments_that_make_no_edit_are_explained(call, workspace, arguments, words):
    (workspace / "a").write_text("a")
    with pytest.raises(InvalidArguments, match=words):
        call(EditFile, path="a", **arguments)
    assert (workspace / "a").read_text() == "a"


def test_a_text_in_several_places_names_their_lines_and_the_cure(call, workspace):
    (workspace / "a").write_text("x = 1\ny = 2\nx = 1\n")
    with pytest.raises(ToolFailed, match=r"several times in `a` \(lines 1, 3\)") as raised:
        call(EditFile, path="a", old_string="x = 1", new_string="x = 2")
    assert "replace_all" in raised.value.hint
    (workspace / "a").write_text("x\n" * 500)
    with pytest.raises(ToolFailed, match=r"lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more"):
        call(EditFile, path="a", old_string="x", new_string="y")


def test_matches_that_overlap_are_several(call, workspace):
    (workspace / "a").write_text("aaa")
    with pytest.raises(ToolFailed, match=r"several times in `a` \(line 1\)"):
        call(EditFile, path="a", old_string="aa", new_string="b")


def test_a_file_that_changed_meanwhile_is_a_conflict(call, context, workspace):
    (workspace / "a").write_text("one")
    real = context.workspace

    class Interfering:
        def __getattr__(self, name):
            return getattr(real, name)

        def replace(self, path, content, *, expect):
            (workspace / "a").write_text("somebody else")
            return real.replace(path, content, expect=expect)

    context.workspace = Interfering()
    with pytest.raises(Conflict):
        call(EditFile, path="a", old_string="one", new_string="two")
    assert (workspace / "a").read_text() == "somebody else"


def test_files_that_are_missing_too_large_or_outside_are_refused(call, context, workspace, tmp_path):
    (tmp_path / "secret").write_text("one")
    (workspace / "out").symlink_to("../secret")
    (workspace / "a.txt").write_text("one two three")
    with pytest.raises(PathEscapes):
        call(EditFile, path="out", old_string="one", new_string="two")
    with pytest.raises(ToolFailed, match="does not exist"):
        call(EditFile, path="b.txt", old_string="one", new_string="two")
    context.limits = Limits(max_file_bytes=13)
    with pytest.raises(LimitExceeded, match="would have 14 bytes"):
        call(EditFile, path="a.txt", old_string="one", new_string="four")
    context.limits = Limits(max_file_bytes=12)
    with pytest.raises(LimitExceeded, match="too large to edit"):
        call(EditFile, path="a.txt", old_string="one", new_string="1")
    assert (tmp_path / "secret").read_text() == "one"


def test_a_cancelled_edit_is_over_when_it_says_so(context, workspace):
    (workspace / "a").write_text("one")
    real = context.workspace
    finished = []

    class Slow:
        def __getattr__(self, name):
            return getattr(real, name)

        def replace(self, path, content, *, expect):
            asyncio.run_coroutine_threadsafe(cancel(), loop).result()
            finished.append(real.replace(path, content, expect=expect))
            return finished[-1]

    async def cancel():
        running.cancel()

    async def go():
        nonlocal loop, running
        loop = asyncio.get_running_loop()
        running = asyncio.ensure_future(
            EditFile().invoke({"path": "a", "old_string": "one", "new_string": "two"}, context)
        )
        with pytest.raises(asyncio.CancelledError):
            await running
        assert finished

    loop = running = None
    context.workspace = Slow()
    asyncio.run(go())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.binary(max_size=30),
    after=st.binary(max_size=30),
    old=st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    new=st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
)
def test_an_edit_and_its_inverse_give_back_the_very_same_bytes(call, workspace, before, after, old, new):
    content = before + old.encode() + after
    edited = before + new.encode() + after
    assume(old != new and once(content, old) and once(edited, new))
    (workspace / "a").write_bytes(content)
    call(EditFile, path="a", old_string=old, new_string=new)
    assert (workspace / "a").read_bytes() == edited
    call(EditFile, path="a", old_string=new, new_string=old)
    assert (workspace / "a").read_bytes() == content


def once(content, text):
    first = content.find(text.encode())
    return content.find(text.encode(), first + 1) < 0
