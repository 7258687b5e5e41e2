"""Diffs of change sets: patches that real programs apply, and plain words for the rest."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import stat
import subprocess
from dataclasses import dataclass

import pytest

from haft.changes.commit.entry import UNREADABLE, Entry
from haft.changes.commit.manifest import PathChange
from haft.changes.diff.difference import FileDifference, difference, differences


@dataclass(frozen=True)
class Node:
    """What a test puts at a path."""

    content: bytes = b""
    mode: int = 0o644
    kind: str = "file"


Tree = dict[str, Node]
LINK = 0o777


def link(target: bytes) -> Node:
    return Node(target, LINK, "link")


def directory(mode: int = 0o755) -> Node:
    return Node(b"", mode, "directory")


def entry(node: Node | None) -> Entry | None:
    if node is None:
        return None
    if node.kind == "file":
        digest = hashlib.sha256(node.content).hexdigest()
        return Entry("file", node.mode, 0, 0, len(node.content), 1, digest)
    return Entry(node.kind, node.mode, 0, 0, content=os.fsdecode(node.content) if node.kind == "link" else None)


def shown(before: Tree, after: Tree) -> tuple[FileDifference, ...]:
    entries = [
        PathChange(path, entry(before.get(path)), entry(after.get(path)))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    ]
    return difference(
        entries, lambda each, side: io.BytesIO((before if side == "before" else after)[each.path].content)
    )


def only(before: Node | None, after: Node | None) -> FileDifference:
    (found,) = shown({} if before is None else {"x": before}, {} if after is None else {"x": after})
    return found


def patch_of(before: Tree, after: Tree) -> bytes:
    found = shown(before, after)
    assert [each.note for each in found if each.text is None and each.renamed_to is None] == []
    return "".join(each.text or "" for each in found).encode("utf-8", "surrogateescape")


def build(tree: Tree, at: str) -> str:
    os.makedirs(at)
    for path, node in tree.items():
        where = os.path.join(at, path)
        os.makedirs(where if node.kind == "directory" else os.path.dirname(where), exist_ok=True)
        if node.kind == "link":
            os.symlink(node.content, os.fsencode(where))
        elif node.kind == "file":
            with open(where, "wb") as file:
                file.write(node.content)
            os.chmod(where, node.mode)
    return at


def seen(at: str) -> Tree:
    """What git knows of a tree: files with their executable bit, and links."""
    found = {}
    for folder, folders, names in os.walk(at):
        for name in [*folders, *names]:
            where = os.path.join(folder, name)
            mode = os.lstat(where).st_mode
            if stat.S_ISLNK(mode):
                found[os.path.relpath(where, at)] = link(os.fsencode(os.readlink(where)))
            elif stat.S_ISREG(mode):
                with open(where, "rb") as file:
                    found[os.path.relpath(where, at)] = Node(file.read(), 0o755 if mode & 0o100 else 0o644)
    return found


def known(tree: Tree) -> Tree:
    return {path: node for path, node in tree.items() if node.kind != "directory"}


def run(words: list[str], at: str, stdin: bytes = b"") -> bytes:
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(at), "GIT_CONFIG_NOSYSTEM": "1", "HOME": at}
    done = subprocess.run(words, cwd=at, input=stdin, capture_output=True, env=env, timeout=60)
    assert done.returncode == 0, (done.stdout, done.stderr, stdin)
    return done.stdout


GIT = ["git", "apply", "--whitespace=nowarn"]
PATCH = ["patch", "-p1", "--no-backup-if-mismatch", "--force", "--fuzz=0"]
ODD_NAMES = [
    "with space.txt", "trailing ", 'quo"te', "back\\slash", "new\nline", "tab\there", "bell\a", "é.txt", "日本",
    "emoji 🎉", "\udcff\udcfe raw", "-dash", "--- a", "a b/c d.txt", "b/diff --git a", "$(x)", "\x7f",
]  # fmt: skip


def check(before: Tree, after: Tree, at: str, program: list[str]) -> None:
    """The patch leads there, and back."""
    words = patch_of(before, after)
    build(before, at)
    run(program, at, words)
    assert seen(at) == known(after), words
    run([*program, "-R"], at, words)
    assert seen(at) == known(before), words
    shutil.rmtree(at)


# --- patches that programs apply


def _text(dice: random.Random) -> bytes:
    words = ["a", "b", "", "é", "-- x", "++ y", "@@ -1 +1 @@", "x\ry", *(f"word {n}" for n in range(9))]
    lines = [dice.choice(words) for _ in range(dice.choice([0, 1, 2, 5, 30, 100]))]
    end = dice.choice(["\n", "\n", "\r\n"])
    text = "".join(line + end for line in lines)
    return (text.rstrip("\r\n") if dice.random() < 0.25 else text).encode()


def _edited(text: bytes, dice: random.Random) -> bytes:
    lines = text.splitlines(keepends=True)
    for _ in range(dice.randint(1, 6)):
        at = dice.randint(0, len(lines))
        match dice.randint(0, 3):
            case 0:
                lines[at:at] = [b"new %d\n" % dice.randint(0, 9)]
            case 1:
                del lines[at : at + dice.randint(1, 3)]
            case 2:
                lines[at : at + 1] = [b"other\n", b"lines\n"]
            case _:
                lines = [line.replace(b"\n", b"\r\n") if dice.random() < 0.1 else line for line in lines]
    edited = b"".join(lines)
    return edited.rstrip(b"\n") if dice.random() < 0.2 else edited


def _trees(dice: random.Random, links: bool) -> tuple[Tree, Tree]:
    before: Tree = {}
    for path in dice.sample([*ODD_NAMES, "a", "d/a", "d/b", "d/e/f", "g/h"], dice.randint(1, 8)):
        before[path] = Node(_text(dice), dice.choice([0o644, 0o755]))
        if links and dice.random() < 0.15:
            before[path] = link(dice.choice([b"a", b"../else where", b"\xff\xfe", b"two\nlines"]))
    after = dict(before)
    for path, node in before.items():
        match dice.randint(0, 6):
            case 0:
                del after[path]
            case 1 if node.kind == "file":
                after[path] = Node(node.content, 0o755 if node.mode == 0o644 else 0o644)
            case 2:
                del after[path]
                after["moved/" + path] = node
            case 3 if node.kind == "file":
                del after[path]
                after["moved/" + path] = Node(_edited(node.content, dice), dice.choice([0o644, 0o755]))
            case 4 if links:
                after[path] = link(b"elsewhere") if node.kind == "file" else Node(_text(dice))
            case 5 if node.kind == "file":
                after[path] = Node(_edited(node.content, dice), dice.choice([0o644, 0o755]))
            case _:
                pass
    if dice.random() < 0.5:
        after["fresh file"] = Node(_text(dice), dice.choice([0o644, 0o755]))
    return before, after


@pytest.mark.parametrize("seed", range(8))
def test_git_applies_random_changes_both_ways(tmp_path, seed):
    dice = random.Random(seed)
    for number in range(25):
        before, after = _trees(dice, links=True)
        if patch_of(before, after):
            check(before, after, str(tmp_path / str(number)), GIT)


@pytest.mark.parametrize("seed", range(4))
def test_patch_applies_random_edits(tmp_path, seed):
    dice = random.Random(seed)
    for number in range(25):
        path = dice.choice(["a", "d/e", "with space.txt", "é.txt", 'quo"te'])
        old, new = _text(dice), _text(dice)
        if dice.random() < 0.7:
            new = _edited(old, dice)
        if old == new or not old or not new:
            continue
        check({path: Node(old)}, {path: Node(new)}, str(tmp_path / str(number)), PATCH)


def test_patch_creates_deletes_and_renames(tmp_path):
    before = {"gone": Node(b"a\nb\n"), "old name": Node(b"1\n2\n3\n4\n"), "x": Node(b"#!\n")}
    after = {"made/here": Node(b"new\n"), "new name": Node(b"1\n2\n3\nfour\n"), "x": Node(b"#!\n", 0o755)}
    at = build(before, str(tmp_path / "tree"))
    run(PATCH, at, patch_of(before, after))
    assert seen(at) == after


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_survive(tmp_path, name):
    before = {name: Node(b"a\n"), "dir/" + name: Node(b""), "r/" + name: Node(b"same\n")}
    after = {name: Node(b"b\n"), "new/" + name: Node(b"c"), "s/" + name: Node(b"same\n"), "t/" + name: Node(b"")}
    check(before, after, str(tmp_path / "tree"), GIT)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"x": Node(b"")}),
        ({"x": Node(b"")}, {}),
        ({"x": Node(b"a")}, {"x": Node(b"a\n")}),
        ({"x": Node(b"a\n")}, {"x": Node(b"")}),
        ({"x": Node(b"")}, {"x": Node(b"a", 0o755)}),
        ({"x": Node(b"a\r\nb\r\n")}, {"x": Node(b"a\nb\r\n")}),
        ({"x": Node(b"a\x0cb\x1cc\xe2\x80\xa8d\n")}, {"x": Node(b"a\x0cb\x1cc\xe2\x80\xa8e\n")}),
        ({"x": link(b"a")}, {"x": link(b"b\xff")}),
        ({"x": link(b"a")}, {"y": link(b"a")}),
        ({"x": link(b"a")}, {"x": Node(b"a")}),
        ({"x": Node(b"text\n")}, {"x": directory(), "x/y": Node(b"in\n")}),
        ({"x": directory(), "x/y": Node(b"in\n")}, {"x": Node(b"text\n")}),
        ({"x": directory(), "x/y": Node(b"in\n")}, {"x": link(b"elsewhere")}),
        ({"x": Node(b"same\n")}, {"d": directory(), "d/x": Node(b"same\n", 0o755)}),
        ({"d": directory(), "d/x": Node(b"\xc3\xa9")}, {}),
    ],
)
def test_git_applies_every_kind_of_change(tmp_path, before, after):
    check(before, after, str(tmp_path / "tree"), GIT)


# --- the text itself


def test_an_edit_looks_as_git_writes_it():
    old = b"".join(b"line %d\n" % n for n in range(1, 21))
    new = old.replace(b"line 3\n", b"line three\n").replace(b"line 20\n", b"line 20")
    found = only(Node(old), Node(new, 0o755))
    assert found.text == (
        "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n--- a/x\n+++ b/x\n"
        "@@ -1,6 +1,6 @@\n line 1\n line 2\n-line 3\n+line three\n line 4\n line 5\n line 6\n"
        "@@ -17,4 +17,4 @@\n"
        " line 17\n line 18\n line 19\n-line 20\n+line 20\n\\ No newline at end of file\n"
    )
    assert (found.added, found.removed, found.note) == (2, 2, None)


def test_a_rename_is_shown_once_on_the_new_path():
    gone, came = shown({"a/x": Node(b"same\n")}, {"b/x": Node(b"same\n")})
    assert came.text == ("diff --git a/a/x b/b/x\nsimilarity index 100%\nrename from a/x\nrename to b/x\n")
    assert (came.change.renamed_from, came.change.type) == ("a/x", "create")
    assert (gone.change.type, gone.text, gone.renamed_to, gone.note) == ("delete", None, "b/x", "renamed to b/x")


def test_a_rename_with_edits_is_found_when_enough_stayed():
    old = b"".join(b"line %d\n" % n for n in range(10))
    new = old.replace(b"line 4\n", b"")
    gone, came = shown({"a": Node(old)}, {"b": Node(new)})
    assert came.text.startswith(
        "diff --git a/a b/b\nsimilarity index 90%\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@"
    )
    assert (came.added, came.removed, gone.renamed_to) == (0, 1, "b")
    apart = shown({"a": Node(old)}, {"b": Node(b"line 1\nline 2\n" + b"else\n" * 8)})
    assert [each.change.renamed_from for each in apart] == [None, None]


def test_the_most_alike_file_is_the_source():
    lines = [b"line %d\n" % n for n in range(10)]
    before = {"far": Node(b"".join(lines[:7])), "near": Node(b"".join(lines[:9]))}
    found = {each.change.path: each for each in shown(before, {"new": Node(b"".join(lines))})}
    assert found["new"].change.renamed_from == "near"
    assert found["far"].text.startswith("diff --git a/far b/far\ndeleted file mode 100644\n")


def test_edited_renames_are_not_looked_for_among_many():
    before = {f"a{n}": Node(b"same\n" * 9 + b"%d\n" % n) for n in range(51)}
    after = {f"b{n}": Node(b"same\n" * 9 + b"x%d\n" % n) for n in range(51)}
    assert [each for each in shown(before, after) if each.renamed_to] == []


def test_directories_have_a_line_of_our_own():
    found = shown({"old dir": directory(), "kept": directory()}, {"né": directory(), "kept": directory(0o700)})
    assert [(each.text, each.note) for each in found] == [
        (None, "mode 0755 → 0700"),
        ('create directory "n\\303\\251"\n', None),
        ("delete directory old dir\n", None),
    ]


# --- where there is no text


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        (Node(b"\0" * 1234), Node(b"\0" * 2345), "binary file, 1,234 → 2,345 bytes"),
        (None, Node(b"\0"), "binary file, 1 byte"),
        (Node(b"a\0", 0o644), Node(b"b\0", 0o755), "binary file, 2 bytes; mode 0644 → 0755"),
        (Node(b"a\n"), Node(b"\xe9\n"), "not UTF-8 text, 2 bytes"),
        (None, Node(b"x" * 120_000_000), "large file (120 MB): not shown line by line"),
        (Node(b"x" * 900_000), Node(b"x" * 1_200_000), "large file (0.9 MB → 1.2 MB): not shown line by line"),
        (Node(b"x\n"), Node(b"x\n" * 20_001), "large file (1 → 20,001 lines): not shown line by line"),
        (Node(b"a\n", 0o644), Node(b"a\n", 0o600), "mode 0644 → 0600"),
        (link(b"a"), Node(b"\0"), "link replaced by file; binary file, 1 byte"),
    ],
)
def test_plain_words_say_why_there_is_no_text(before, after, note):
    found = only(before, after)
    assert (found.text, found.note) == (None, note)


def test_lines_are_counted_where_they_are_too_many_to_show():
    found = only(Node(b"x\n" * 10), Node(b"x\n" * 20_020))
    assert (found.added, found.removed) == (20_010, 0)


def test_a_hopeless_comparison_is_given_up_and_counted():
    dice = random.Random(1)
    old, new = (b"".join(dice.choice([b"a\n", b"b\n"]) for _ in range(9000)) for _ in range(2))
    found = only(Node(b"first\n" + old + b"1\n"), Node(b"first\n" + new + b"2\n"))
    assert found.text is None
    assert found.note.startswith("large change (")
    assert found.removed == found.added
    assert 8900 < found.added <= 9001


def test_a_moved_block_among_many_lines_is_no_large_change():
    lines = [b"line %d\n" % n for n in range(15_000)]
    found = only(Node(b"".join(lines)), Node(b"".join(lines[3000:5000] + lines[:3000] + lines[5000:])))
    assert (found.added, found.removed) == (2000, 2000)


def test_a_file_of_which_only_the_time_changed():
    before = entry(Node(b"a\n"))
    (found,) = difference([PathChange("x", before, Entry("file", 0o644, 0, 0, 2, 99, before.content))], lambda *_: None)
    assert (found.text, found.note) == (None, "only its time changed")


def test_content_that_is_gone_is_said_to_be():
    each = PathChange("x", entry(Node(b"a\n")), entry(Node(b"b\n")))
    (found,) = difference([each], lambda _, side: None if side == "before" else io.BytesIO(b"b\n"))
    assert (found.text, found.note) == (None, "content before is no longer kept")
    (found,) = difference([each], lambda *_: None)
    assert found.note == "content before and after is no longer kept"
    unreadable = PathChange("x", entry(Node(b"a\n")), Entry("file", 0, 0, 0, 9, 9, UNREADABLE))
    assert (
        difference([unreadable], lambda *_: io.BytesIO(b"a\n"))[0].note == "content may not be read; mode 0644 → 0000"
    )


def test_owners_and_bits_that_git_does_not_know_are_noted_beside_the_text():
    new = Entry("file", 0o4755, 0, 0, 2, 1, "d")
    (found,) = difference([PathChange("x", None, new)], lambda *_: io.BytesIO(b"a\n"))
    assert found.text is not None
    assert found.note == "mode 4755"
    (found,) = difference([PathChange("x", new, Entry("file", 0o4755, 7, 8, 2, 1, "d"))], lambda *_: None)
    assert found.note == "owner 0:0 → 7:8"


@pytest.mark.parametrize(
    ("mode", "number", "word"),
    [
        (stat.S_IFIFO | 0o600, 0, "fifo"),
        (stat.S_IFSOCK | 0o600, 0, "socket"),
        (stat.S_IFCHR | 0o600, os.makedev(1, 3), "character device 1:3"),
        (stat.S_IFBLK | 0o600, os.makedev(8, 0), "block device 8:0"),
    ],
)
def test_special_files_are_named(mode, number, word):
    special = Entry("other", mode, 0, 0, content=str(number))
    file = entry(Node(b"a\n"))
    pairs = [(None, special), (special, None), (file, special), (special, file)]
    found = [difference([PathChange("x", *pair)], lambda *_: io.BytesIO(b"a\n"))[0] for pair in pairs]
    assert [each.text for each in found] == [None] * 4
    assert [each.note for each in found] == [
        f"{word} created", f"{word} deleted", f"file replaced by {word}", f"{word} replaced by file"
    ]  # fmt: skip


def test_every_stream_is_closed_and_large_files_are_not_read_whole():
    opened = []

    class Watched(io.BytesIO):
        most = 0

        def read(self, size=-1):
            got = super().read(size)
            self.most += len(got)
            return got

    def read(each, side):
        opened.append(Watched(b"x" * 3_000_000))
        return opened[-1]

    entries = [PathChange("x", Entry("file", 0o644, 0, 0, 3_000_000, 1, "a"), Entry("file", 0o644, 0, 0, 5, 1, "b"))]
    assert difference(entries, read)[0].note == "large file (3.0 MB → 0.0 MB): not shown line by line"
    assert [stream.closed for stream in opened] == [True, True]
    assert opened[0].most <= 8192


def test_differences_are_made_one_by_one():
    asked = []

    def read(each, side):
        asked.append(each.path)
        return io.BytesIO(b"a\n")

    entries = [PathChange(path, Entry("file", 0o644, 0, 0, 9, 1, "0"), entry(Node(b"a\n"))) for path in "xyz"]
    stream = differences(entries, read)
    next(stream)
    assert set(asked) == {"x"}


def test_json_is_the_change_with_its_diff():
    found = only(Node(b"a\n"), Node(b"b\nc\n"))
    assert found.to_json() == {
        **found.change.to_json(), "added": 2, "removed": 1, "diff": found.text, "note": None
    }  # fmt: skip


def test_json_holds_no_half_characters():
    found = [each.to_json() for each in shown({"x": link(b"\xff")}, {"x\udcff": link(b"\xff"), "y": link(b"\xfe")})]
    json.dumps(found, ensure_ascii=False).encode()
    assert found[0]["note"] == "renamed to x\\xff"
