"""The machinery that proves undo exact, proven itself: the scripts do what they say, and no difference goes unseen."""

import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sampling import IS_AGAIN, IS_WHOLE, SELDOM

sys.path.insert(0, str(Path(__file__).parent))
import nasty
from fingerprint import difference, fingerprint

pytestmark = [
    pytest.mark.every_user(share=SELDOM),
    pytest.mark.skipif(sys.platform != "linux", reason="names and sockets are made as Linux has them"),
]

PYTHON = next(path for path in ("/usr/bin/python3", sys.executable) if os.access(path, os.X_OK))
HEAVY = ["make_ten_thousand_files"]
LACKING = [] if shutil.which("git") else ["make_repository", "make_repository_with_commit"]


@pytest.fixture
def tree(tmp_path):
    """An empty directory, with neighbours. What becomes of it is removed, closed directories too. The mask is that of
    the programs, which set their own: the one of whoever runs the tests is not known."""
    mask = os.umask(0o022)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("not ours")
    path = tmp_path / "tree"
    path.mkdir()
    try:
        yield path
    finally:
        os.umask(mask)
        nasty.erase(os.fsencode(path))


def seeds(count):
    return range(count * 2 if IS_WHOLE else count // 5 if IS_AGAIN else count)


def emptied(tree):
    nasty.erase(os.fsencode(tree))
    tree.mkdir()


def run(script, tree):
    """As a program of its own."""
    return subprocess.run([PYTHON, "-I", "-S", "-c", script.program()], cwd=tree, capture_output=True, text=True)


def test_every_kind_of_mutation_happens_and_changes_the_tree(tree):
    done, without_effect = Counter(), []
    for seed in seeds(100):
        script = nasty.sequence(seed, 25, without=HEAVY)
        script.populate(tree)
        before = fingerprint(tree)
        steps = script.perform(tree)
        done.update(step.kind for step in steps if not step.failure)
        if not difference(before, fingerprint(tree)):
            without_effect.append(seed)
        emptied(tree)
    assert IS_AGAIN or nasty.KINDS.keys() - done.keys() == {*HEAVY, *LACKING}
    assert without_effect == []


def test_the_tree_before_a_script_is_nasty_already(tree):
    kinds, names, modes = set(), 0, set()
    for seed in seeds(60 if IS_WHOLE else 30):
        nasty.sequence(seed, 0).populate(tree)
        found = fingerprint(tree, links=True)
        kinds |= {each.kind for each in found.values()}
        modes |= {each.mode for each in found.values()}
        names += sum(1 for each in found.values() if each.names)
        emptied(tree)
    assert kinds == {"file", "directory", "link", "fifo", "socket"}
    assert 0 in modes and names


def test_ten_thousand_files_are_rare_but_there(tree):
    script = nasty.sequence(1, 1, only=HEAVY)
    script.populate(tree)
    before = len(fingerprint(tree))
    (step,) = script.perform(tree)
    assert not step.failure and len(fingerprint(tree)) == before + 10_001
    assert 0 < nasty.KINDS[HEAVY[0]].weight < sum(kind.weight for kind in nasty.KINDS.values()) / 1000


def test_equal_trees_end_equal(tree):
    """As a program and in this process. What may differ is when something was written."""
    for seed in seeds(15):
        ends = []
        for perform in (run, run, lambda script, tree: script.perform(tree)):
            script = nasty.sequence(seed, 40, without=HEAVY)
            script.populate(tree)
            said = perform(script, tree)
            if perform is run:
                assert said.returncode == 0, said.stderr
                said = said.stdout.splitlines()
                assert len(said) == 40
            else:
                said = [str(step) for step in said]
            ends.append((said, fingerprint(tree, links=True)))
            emptied(tree)
        for said, found in ends[1:]:
            assert said == ends[0][0]
            assert difference(ends[0][1], found, ignoring=["mtime_ns"]) == []


def test_another_seed_is_another_script(tree):
    ends = []
    for seed in (1, 2):
        nasty.sequence(0, 0).populate(tree)
        ends.append(nasty.sequence(seed, 25, without=HEAVY).perform(tree))
        emptied(tree)
    assert ends[0] != ends[1]


def test_a_script_fits_on_a_command_line_of_bash(tree):
    script = nasty.sequence(3, 20, without=HEAVY)
    script.populate(tree)
    assert len(script.command(PYTHON)) < 100_000
    done = subprocess.run(["bash", "-c", script.command(PYTHON)], cwd=tree, capture_output=True, text=True)
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 20)


def test_nothing_outside_the_tree_is_touched(tree):
    outside = tree.parent / "outside"
    (outside / "d0").mkdir()
    before = fingerprint(outside)
    for seed in seeds(40 if IS_WHOLE else 20):
        script = nasty.sequence(seed, 40, without=HEAVY)
        script.populate(tree)
        for name in ("plain", "other.txt", "keep", "-rf", ".hidden", "con"):
            if not os.path.lexists(tree / name):
                (tree / name).symlink_to("../outside")
        script.perform(tree)
        assert difference(before, fingerprint(outside)) == []
        assert set(os.listdir(tree.parent)) == {"outside", "tree"}
        emptied(tree)


def test_hooks_and_configuration_of_repositories_are_never_touched_by_themselves(tree):
    if LACKING:
        pytest.skip("git is not on this machine")
    for seed in seeds(10):
        nasty.make_repository_with_commit(nasty.Walk(os.fsencode(tree), "0"), os.fsencode(tree / "inner"))
        script = nasty.sequence(seed, 60, without=HEAVY)
        script.perform(tree)
        for path, each in fingerprint(tree).items():
            parts = path.split(b"/")
            if b".git" in parts[:-1]:
                *_, above, name = parts
                assert above != b"hooks" or name.endswith(b".sample"), path
            if parts[-1] == b".git":
                assert each.kind == "directory"
            if parts[-2:] == [b".git", b"config"]:
                # A directory's default access list takes the place of the mask for what is made in it.
                # One that a mutation had set or changed would be of another mode: none of them gives 0664.
                has_list = "system.posix_acl_access" in dict(each.attributes)
                assert (each.kind, each.mode) == ("file", 0o664 if has_list else 0o644), path
        emptied(tree)


def a_tree(path: Path) -> None:
    """One of each, with times that no clock shows."""
    (path / "directory" / "inner").mkdir(parents=True)
    (path / "empty").mkdir()
    (path / "closed").mkdir()
    for name in ("file", "other", "directory/file", "closed/file", "secret", "new\nline", "n\udcff"):
        (path / name).write_text(f"content of {name!a}")
    os.link(path / "file", path / "second name")
    os.link(path / "other", path / "other's second name")
    (path / "link").symlink_to("file")
    os.mkfifo(path / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        directory = os.open(path, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{directory}/socket")
        os.close(directory)
    for name in ("file", "other", "directory/file", "closed/file", "secret", "new\nline", "n\udcff"):
        os.utime(path / name, ns=(10**18 + 1, 10**18 + 1))
    (path / "closed").chmod(0)
    (path / "secret").chmod(0)


def unseen(path: Path, data: str) -> None:
    """The same size and times."""
    status = path.stat()
    assert len(data) == status.st_size
    path.write_text(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def opened(path: Path, change) -> None:
    mode = path.stat().st_mode & 0o7777
    path.chmod(0o700)
    change()
    path.chmod(mode)


def remade(path: Path, make) -> None:
    path.unlink()
    make()


DIFFERENCES = {
    "a byte, same size and time": (
        lambda t: unseen(t / "other", "content of 'OTHER'"), {b"other", b"other's second name"}),
    "a longer file": (lambda t: os.truncate(t / "n\udcff", 100), {b"n\xff"}),
    "an emptied file": (lambda t: os.truncate(t / "new\nline", 0), {b"new\nline"}),
    "the time of a file by a nanosecond": (
        lambda t: os.utime(t / "directory/file", ns=(0, 10**18 + 2)), {b"directory/file"}),
    "the time of a directory is none": (lambda t: os.utime(t / "directory", ns=(0, 0)), set()),
    "the time of a read is none": (lambda t: os.utime(t / "file", ns=(0, 10**18 + 1)), set()),
    "the mode of a file": (lambda t: (t / "file").chmod(0o755), {b"file", b"second name"}),
    "the mode of a directory": (lambda t: (t / "empty").chmod(0o711), {b"empty"}),
    "the mode of a fifo": (lambda t: (t / "fifo").chmod(0o600), {b"fifo"}),
    "the mode of a closed directory": (lambda t: (t / "closed").chmod(0o100), {b"closed"}),
    "in a closed file": (
        lambda t: opened(t / "secret", lambda: unseen(t / "secret", "content of 'SECRET'")), {b"secret"}),
    "in a closed directory": (
        lambda t: opened(t / "closed", lambda: (t / "closed/file").unlink()), {b"closed/file"}),
    "a new file": (lambda t: (t / "directory/inner/new").touch(), {b"directory/inner/new"}),
    "a new empty directory": (lambda t: (t / "directory/new").mkdir(), {b"directory/new"}),
    "an empty directory gone": (lambda t: (t / "empty").rmdir(), {b"empty"}),
    "a file gone": (lambda t: (t / "directory/file").unlink(), {b"directory/file"}),
    "a new name": (lambda t: (t / "directory").rename(t / "d"), {
        b"directory", b"directory/file", b"directory/inner", b"d", b"d/file", b"d/inner"}),
    "a name in other bytes": (lambda t: os.rename(t / "n\udcff", t / "n\udcfe"), {b"n\xff", b"n\xfe"}),
    "where a link leads": (lambda t: remade(t / "link", lambda: (t / "link").symlink_to("other")), {b"link"}),
    "a link into a copy": (
        lambda t: remade(t / "link", lambda: shutil.copy2(t / "file", t / "link")), {b"link"}),
    "a file into a link": (
        lambda t: remade(t / "directory/file", lambda: (t / "directory/file").symlink_to("x")), {b"directory/file"}),
    "a file into a directory": (
        lambda t: remade(t / "directory/file", lambda: (t / "directory/file").mkdir()), {b"directory/file"}),
    "a directory into a file": (lambda t: ((t / "empty").rmdir(), (t / "empty").touch()), {b"empty"}),
    "a fifo into a file": (lambda t: remade(t / "fifo", lambda: (t / "fifo").touch()), {b"fifo"}),
    "a socket into a fifo": (lambda t: remade(t / "socket", lambda: os.mkfifo(t / "socket")), {b"socket"}),
    "a hard link into a copy": (
        lambda t: remade(t / "second name", lambda: shutil.copy2(t / "file", t / "second name")),
        {b"file", b"second name"}),
    "hard links that changed partners": (
        lambda t: (remade(t / "second name", lambda: os.link(t / "other", t / "second name"))),
        {b"file", b"second name", b"other", b"other's second name"}),
}  # fmt: skip
"""What is done to a tree, and the paths at which it must be seen."""


@pytest.mark.parametrize("what", DIFFERENCES)
def test_a_difference_is_seen_where_it_is_and_nowhere_else(what, tree):
    change, expected = DIFFERENCES[what]
    a_tree(tree)
    before = fingerprint(tree, links=True)
    assert difference(before, fingerprint(tree, links=True)) == []
    change(tree)
    after = fingerprint(tree, links=True)
    seen = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert seen == expected
    assert bool(difference(before, after)) == bool(expected)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_an_owner_is_seen(tree):
    a_tree(tree)
    before = fingerprint(tree)
    os.chown(tree / "directory", 1, -1)
    os.lchown(tree / "link", -1, 1)
    assert difference(before, fingerprint(tree)) == [
        "b'directory': owner was (0, 0), is (1, 0)",
        "b'link': owner was (0, 0), is (0, 1)",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_the_number_of_a_device_is_seen(tree):
    def made(minor):
        os.mknod(tree / "device", 0o20600, os.makedev(1, minor))
        found = fingerprint(tree)
        (tree / "device").unlink()
        return found

    assert difference(made(3), made(3)) == []
    assert difference(made(3), made(5)) == ["b'device': content was '259', is '261'"]


def test_hard_links_count_only_where_they_are_asked_for(tree):
    a_tree(tree)
    before = fingerprint(tree)
    DIFFERENCES["a hard link into a copy"][0](tree)
    assert difference(before, fingerprint(tree)) == []


def test_looking_leaves_modes_and_times_as_they_were(tree):
    a_tree(tree)

    def seen(path):
        status = path.lstat()
        return status.st_mode, status.st_mtime_ns

    places = list(tree.iterdir())
    before = [seen(path) for path in places]
    fingerprint(tree)
    assert [seen(path) for path in places] == before


def test_a_copy_with_everything_kept_is_the_same(tree, tmp_path):
    a_tree(tree)
    copied = tmp_path / "copied"
    shutil.copytree(tree / "directory", copied, symlinks=True)
    assert difference(fingerprint(tree / "directory"), fingerprint(copied)) == []


def test_differences_are_lines_to_read(tree):
    a_tree(tree)
    before = fingerprint(tree)
    (tree / "empty").chmod(0o700)
    (tree / "link").unlink()
    (tree / "new").touch()
    assert difference(before, fingerprint(tree)) == [
        f"b'empty': mode was {before[b'empty'].mode:04o}, is 0700",
        "b'link': a link, not there after",
        "b'new': a file, not there before",
    ]
    assert difference(before, fingerprint(tree), most=1)[1:] == ["and 2 more"]
