"""`--stat`, against git's own."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess

import pytest

from haft.changes.commit.entry import Entry
from haft.changes.commit.manifest import PathChange
from haft.changes.diff.difference import FileDifference, difference
from haft.changes.diff.diffstat import renamed, stat_lines
from haft.contracts import Change

Tree = dict[str, bytes]


def entry(content: bytes | None) -> Entry | None:
    if content is None:
        return None
    return Entry("file", 0o644, 0, 0, len(content), 1, hashlib.sha256(content).hexdigest())


def ours(before: Tree, after: Tree, width: int) -> list[str]:
    entries = [
        PathChange(path, entry(before.get(path)), entry(after.get(path)))
        for path in sorted({*before, *after}, key=os.fsencode)
        if before.get(path) != after.get(path)
    ]
    found = difference(entries, lambda each, side: io.BytesIO((before if side == "before" else after)[each.path]))
    return stat_lines(found, width)


def gits(before: Tree, after: Tree, width: int, at: str) -> list[str]:
    env = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": at}

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=at, env=env, capture_output=True, check=True, timeout=60)
        return done.stdout.decode()

    def keep(tree: Tree) -> str:
        for path, content in tree.items():
            where = os.path.join(at, path)
            os.makedirs(os.path.dirname(where), exist_ok=True)
            with open(where, "wb") as file:
                file.write(content)
        git("add", "-A")
        return git("write-tree").strip()

    git("init", "-q")
    old = keep(before)
    for path in before:
        os.unlink(os.path.join(at, path))
    return git("diff-tree", "-r", "-M", f"--stat={width}", old, keep(after)).splitlines()


LINES = [b"line %d\n" % n for n in range(400)]


@pytest.mark.parametrize("width", [30, 60, 80, 200])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": b"1\n2\n3\n"}, {"a": b"1\ntwo\n3\n4\n"}),
        ({"a": b"x\n"}, {}),
        ({}, {"a": b"x\n"}),
        ({}, {"empty": b""}),
        ({"a": b"x\n", "long/name/of/a/file/that/goes/on.txt": b"1\n"}, {"a": b"".join(LINES)}),
        ({"a": b"".join(LINES), "b": b"1\n"}, {"a": b"".join(LINES[:100]) + b"one\n" * 37, "b": b"2\n"}),
        ({"bin": b"\0" * 1234, "é t": b"1\n"}, {"bin": b"\0" * 99999, "é t": b"1\n2\n"}),
        ({"bin": b"\0", "a": b""}, {"a": b"".join(LINES) * 10}),
        ({"a/b/c": b"".join(LINES)}, {"a/d/c": b"".join(LINES)}),
        ({"x": b"".join(LINES), "y/q": b"0\n"}, {"z": b"".join(LINES), "y/q": b"1\n"}),
    ],
)
def test_it_reads_like_gits(tmp_path, before, after, width):
    assert ours(before, after, width) == gits(before, after, width, str(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("a", "b", "a => b"),
        ("a/b/c", "a/d/c", "a/{b => d}/c"),
        ("a/c", "a/b/c", "a/{ => b}/c"),
        ("a/b/c", "a/c", "a/{b => }/c"),
        ("c", "a/c", "c => a/c"),
        ("d/a", "d/b", "d/{a => b}"),
        ("a/x", "b/x", "{a => b}/x"),
        ("é", "b", '"\\303\\251" => b'),
    ],
)
def test_both_names_of_a_rename_are_written_in_one(old, new, shown):
    assert renamed(old, new) == shown


def test_words_stand_where_there_are_no_lines():
    def told(path, kind, type, note, text=None):
        return FileDifference(Change(path, type, kind), 0, 0, text, note)

    found = [
        told("big", "file", "modify", "large file (120 MB): not shown line by line"),
        told("d", "directory", "create", None, "create directory d\n"),
        told("e", "directory", "modify", "mode 0755 → 0700"),
        FileDifference(Change("x", "delete"), 0, 0, None, "renamed to y", renamed_to="y"),
    ]
    assert stat_lines(found, 80) == [
        " big | large file (120 MB): not shown line by line",
        " d/  | directory created",
        " e/  | mode 0755 → 0700",
        " 1 file and 2 directories changed, 0 insertions(+), 0 deletions(-)",
    ]
    assert stat_lines(found, 30)[0] == " big | large file (120 MB): n…"
    assert stat_lines([], 80) == [" 0 files changed, 0 insertions(+), 0 deletions(-)"]
