"""The snapshot engine: whatever happened to a tree is told exactly, and only what must be read is read."""

import hashlib
import os
import random
import shutil
import socket
import stat
import struct
import sys
import time
from pathlib import Path

import pytest

from haft.changes.commit.attributes import attributes_of
from sampling import IS_AGAIN, IS_WHOLE, MORE, SELDOM

sys.path.insert(0, str(Path(__file__).parent))
import nasty
from fingerprint import fingerprint

from haft.changes.commit.entry import UNREADABLE
from haft.changes.snapshots.descent import Descent, Swapped
from haft.changes.snapshots.index import Index
from haft.changes.snapshots.scan import is_racy, now, scan
from haft.changes.snapshots.snapshot import OverBudget, Snapshots
from haft.changes.store.blobs import Blobs
from haft.contracts import ToolFailed

pytestmark = [
    pytest.mark.every_user(share=SELDOM),
    pytest.mark.skipif(sys.platform != "linux", reason="names and sockets are made as Linux has them"),
]

PLENTY = 10**12
LACKING = () if shutil.which("git") else ("make_repository", "make_repository_with_commit")
bound_by_modes = pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")


def go_on() -> bool:
    return False


class Workspace:
    """A tree and the engine over it, with a new one of everything each time, as another process would have."""

    def __init__(self, path: Path) -> None:
        self.root = path / "tree"
        self.root.mkdir()
        self.state = str(path / "state")
        self.blobs = Blobs(str(path / "blobs"))
        self.told: list[str] = []

    @property
    def snapshots(self) -> Snapshots:
        return Snapshots(self.state, self.blobs)

    def take(self, budget=PLENTY, skip=()):
        return self.snapshots.take(str(self.root), budget, go_on, self.told.append, skip)

    def compare(self, before, budget=PLENTY):
        return self.snapshots.compare(before, str(self.root), budget, go_on)

    def settle(self) -> None:
        """Until the clock of the filesystem has moved on: what was written before is no longer racy."""
        last = max((os.lstat(path).st_ctime_ns for path in self.root.rglob("*")), default=0)
        while is_racy(last, now()):
            time.sleep(0.001)


@pytest.fixture
def workspace(tmp_path):
    workspace = Workspace(tmp_path)
    yield workspace
    nasty.erase(os.fsencode(workspace.root))


@pytest.fixture
def reads(monkeypatch):
    """Every digest that was made of something read."""
    made, put = [], Blobs.put

    def counted(self, descriptor, size, stopped=None):
        made.append(size)
        return put(self, descriptor, size, stopped)

    monkeypatch.setattr(Blobs, "put", counted)
    return made


def paths(altered) -> list[str]:
    return [each.path for each in altered]


def facts(entry):
    """What an entry and a line of the straightforward reading both tell."""
    if entry is None:
        return None
    content = os.fsencode(entry.content) if entry.kind == "link" else entry.content
    file = entry.kind == "file"
    return (
        entry.kind,
        stat.S_IMODE(entry.mode),
        (entry.uid, entry.gid),
        entry.size,
        entry.mtime_ns if file else None,
        content if entry.kind in ("file", "link") else "",
    )


def expected(found):
    if found is None:
        return None
    kind = found.kind if found.kind in ("file", "directory", "link") else "other"
    return (kind, found.mode, found.owner, found.size, found.mtime_ns, found.content)


def assert_same(entries, found) -> None:
    assert {os.fsencode(path): facts(entry) for path, entry in entries.items()} == {
        path: expected(each) for path, each in found.items()
    }


def assert_told(altered, was, is_now) -> None:
    """Exactly the differences of two straightforward readings, in order."""
    differing = [path for path in sorted(was.keys() | is_now.keys()) if was.get(path) != is_now.get(path)]
    assert [os.fsencode(each.path) for each in altered] == differing
    for each in altered:
        path = os.fsencode(each.path)
        assert (facts(each.before), facts(each.after)) == (expected(was.get(path)), expected(is_now.get(path)))


def assert_kept(blobs, altered) -> None:
    for each in altered:
        for entry in (each.before, each.after):
            if entry is not None and entry.kind == "file":
                assert hashlib.sha256(blobs.read(entry.content)).hexdigest() == entry.content


@pytest.mark.parametrize("seed", range(40 * MORE if IS_WHOLE else 6 if IS_AGAIN else 8))
def test_every_change_of_a_tree_is_reported_exactly(workspace, seed, monkeypatch):
    if seed % 2:  # The index is written only where that pays: here always, so that it is put to the test.
        monkeypatch.setattr("haft.changes.snapshots.snapshot._FEW_FILES", 0)
    script = nasty.sequence(seed, 25, without=("make_ten_thousand_files", *LACKING))
    script.populate(workspace.root)
    for turn in range(3):
        was = fingerprint(workspace.root)
        before = workspace.take()
        assert not before.unreadable
        assert_same(before.entries, was)
        nasty.sequence(seed * 1000 + turn, 25, without=("make_ten_thousand_files", *LACKING)).perform(workspace.root)
        altered = workspace.compare(before)
        is_now = fingerprint(workspace.root)
        assert_told(altered, was, is_now)
        assert_kept(workspace.blobs, altered)


def test_an_access_list_is_reported_as_it_is_although_its_mode_is_widened_to_read_it(tmp_path):
    owner, group, mask, others, nobody = 1, 4, 16, 32, 0xFFFFFFFF
    rows = [(owner, 0, nobody), (2, 7, 1234), (group, 4, nobody), (mask, 6, nobody), (others, 4, nobody)]
    path = tmp_path / "closed"
    path.mkdir()
    words = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)
    try:
        os.setxattr(path, "system.posix_acl_access", words)
    except OSError as error:
        pytest.skip(f"this filesystem has no access lists: {error}")
    mode, told = stat.S_IMODE(path.stat().st_mode), attributes_of(str(path))
    path.chmod(mode | 0o500)
    assert attributes_of(str(path)) != told
    assert attributes_of(str(path), mode) == told


def test_an_unchanged_tree_is_read_once(workspace, reads):
    for number in range(300):
        directory = workspace.root / f"d{number % 7}"
        directory.mkdir(exist_ok=True)
        (directory / f"f{number}").write_bytes(b"%d" % number)
    workspace.settle()
    before = workspace.take()
    assert len(reads) == 300
    assert workspace.compare(before) == []
    assert workspace.take().entries == before.entries
    assert len(reads) == 300


def test_the_next_snapshot_knows_what_the_last_comparison_read(workspace, reads):
    before = workspace.take()
    for number in range(300):
        (workspace.root / f"f{number}").write_bytes(b"%d" % number)
    workspace.settle()
    assert len(workspace.compare(before)) == 300
    assert len(reads) == 300
    assert len(workspace.take().entries) == 300
    assert len(reads) == 300


def test_a_directory_that_moved_is_not_read_again(workspace, reads):
    (workspace.root / "old" / "deep").mkdir(parents=True)
    for number in range(200):
        (workspace.root / "old" / "deep" / f"f{number}").write_bytes(b"%d" % number)
    workspace.settle()
    before = workspace.take()
    (workspace.root / "old").rename(workspace.root / "new")
    altered = workspace.compare(before)
    assert len(altered) == 404
    assert len(reads) == 200
    by_path = {each.path: each for each in altered}
    assert by_path["new/deep/f7"].after.content == by_path["old/deep/f7"].before.content
    assert workspace.take().entries["new/deep/f7"].content == by_path["old/deep/f7"].before.content
    assert len(reads) == 200


@pytest.mark.parametrize("settled", [True, False])
def test_an_edit_that_keeps_size_and_time_is_found(workspace, settled):
    path = workspace.root / "file"
    for number in range(30):
        path.write_bytes(b"before %02d" % number)
        status = path.stat()
        if settled:
            workspace.settle()
        before = workspace.take()
        with path.open("r+b") as file:
            file.write(b"after")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        [altered] = workspace.compare(before)
        assert altered.before.mtime_ns == altered.after.mtime_ns
        assert workspace.blobs.read(altered.before.content) == b"before %02d" % number
        assert workspace.blobs.read(altered.after.content) == path.read_bytes()


def test_an_edit_within_one_tick_of_the_clock_is_found_by_the_next_snapshot(workspace, monkeypatch):
    monkeypatch.setattr("haft.changes.snapshots.snapshot._FEW_FILES", 0)
    for number in range(50):
        path = workspace.root / f"file{number}"
        path.write_bytes(b"one")
        workspace.take()
        status = path.stat()
        with path.open("r+b") as file:
            file.write(b"two")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert workspace.take().entries[path.name].content == hashlib.sha256(b"two").hexdigest()


def test_stamps_of_the_present_moment_are_not_trusted():
    second = 10**9
    moment = 1000 * second + 5000
    assert is_racy(moment, moment)
    assert is_racy(moment + 1, moment)
    assert not is_racy(moment - 1, moment)
    assert is_racy(999 * second, moment), "a filesystem that counts whole seconds"
    assert not is_racy(998 * second, moment)


def test_what_is_touched_or_written_the_same_is_no_other_content(workspace):
    for name in ("touched", "same", "mode"):
        (workspace.root / name).write_bytes(b"content")
    (workspace.root / "directory").mkdir()
    before = workspace.take()
    status = (workspace.root / "same").stat()
    (workspace.root / "same").write_bytes(b"content")
    os.utime(workspace.root / "same", ns=(0, status.st_mtime_ns))
    os.utime(workspace.root / "touched", ns=(5, 5))
    (workspace.root / "mode").chmod(0o640)
    (workspace.root / "directory" / "x").mkdir()
    (workspace.root / "directory" / "x").rmdir()
    altered = workspace.compare(before)
    assert paths(altered) == ["mode", "touched"]
    assert altered[0].after.mode == 0o640
    assert altered[1].after.mtime_ns == 5
    assert all(each.before.content == each.after.content for each in altered)


def test_one_kind_becomes_another(workspace):
    root = workspace.root
    kinds = ["file", "directory", "link", "fifo", "socket"]

    def make(path, kind):
        if kind == "file":
            path.write_bytes(b"f")
        elif kind == "directory":
            path.mkdir()
            (path / "inside").write_bytes(b"i")
        elif kind == "link":
            path.symlink_to("somewhere")
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            place = os.getcwd()
            os.chdir(path.parent)  # The address of a socket is short.
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
            os.chdir(place)

    pairs = [(one, other) for one in kinds for other in kinds]
    for one, other in pairs:
        make(root / f"{one}-{other}", one)
    was, before = fingerprint(root), workspace.take()
    for one, other in pairs:
        nasty.erase(os.fsencode(root / f"{one}-{other}"))
        make(root / f"{one}-{other}", other)
    assert_told(workspace.compare(before), was, fingerprint(root))


def test_names_of_one_file_are_read_once_and_counted_once(workspace, reads):
    (workspace.root / "a").write_bytes(b"x" * 1000)
    for name in ("b", "c"):
        os.link(workspace.root / "a", workspace.root / name)
    before = workspace.take(budget=1000)
    assert reads == [1000]
    assert [entry.links for entry in before.entries.values()] == [3, 3, 3]
    (workspace.root / "b").write_bytes(b"y")
    assert paths(workspace.compare(before)) == ["a", "b", "c"]


def test_any_name_is_reported_as_it_is(workspace):
    names = [b"new\nline", b"\xff\xfe", b"-rf", "🪤".encode(), b" ", b"a\\b", b".hidden", b"x" * 255]
    for name in names:
        with open(os.path.join(os.fsencode(workspace.root), name), "wb") as file:
            file.write(name)
        os.symlink(name, os.path.join(os.fsencode(workspace.root), b"l" + name[:250]))
    before = workspace.take()
    entries = before.entries
    for name in names:
        assert workspace.blobs.read(entries[os.fsdecode(name)].content) == name
        assert os.fsencode(entries[os.fsdecode(b"l" + name[:250])].content) == name
    nasty.erase(os.fsencode(workspace.root))
    workspace.root.mkdir()
    altered = workspace.compare(before)
    assert [os.fsencode(path) for path in paths(altered)] == sorted([*names, *(b"l" + name[:250] for name in names)])
    assert all(each.after is None for each in altered)


def test_links_are_never_followed(workspace, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    (workspace.root / "link").symlink_to(tmp_path / "outside")
    (workspace.root / "file").symlink_to(tmp_path / "outside" / "secret")
    before = workspace.take()
    assert sorted(before.entries) == ["file", "link"]
    assert not workspace.blobs.has(hashlib.sha256(b"secret").hexdigest())
    (tmp_path / "outside" / "secret").write_bytes(b"other")
    assert workspace.compare(before) == []


def test_a_directory_swapped_for_a_link_is_not_entered(workspace, tmp_path):
    (workspace.root / "a" / "b").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    with Descent(str(workspace.root)) as descent:
        descent.go("a")
        (workspace.root / "a" / "b").rmdir()
        (workspace.root / "a" / "b").symlink_to(tmp_path / "b")
        with pytest.raises(Swapped):
            descent.go("a/b")
        with pytest.raises(Swapped):
            descent.open_file("b")


def test_a_tree_deeper_than_paths_and_descriptors_go(workspace):
    depth, name = 150, "d" * 50
    deepest = os.open(workspace.root, os.O_RDONLY)
    for level in range(depth):
        for made in (name, "e"):
            os.mkdir(made, dir_fd=deepest)
        with open(os.open(f"f{level}", os.O_WRONLY | os.O_CREAT, dir_fd=deepest), "wb") as file:
            file.write(b"x")
        above, deepest = deepest, os.open(name, os.O_RDONLY, dir_fd=deepest)
        os.close(above)
    open_before, most = len(os.listdir("/proc/self/fd")), 0

    def watching() -> bool:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))
        return False

    before = workspace.snapshots.take(str(workspace.root), PLENTY, watching, print)
    assert len(before.stamps) == 3 * depth
    assert most - open_before < 80
    os.mkfifo("fifo", dir_fd=deepest)
    os.close(deepest)
    assert paths(workspace.compare(before)) == [f"{name}/" * depth + "fifo"]
    shutil.rmtree(workspace.root / name)


def test_holes_stay_holes(workspace):
    with (workspace.root / "sparse").open("wb") as file:
        file.truncate(50_000_000)
    before = workspace.take()
    assert workspace.blobs.used()[1] < 1_000_000
    with (workspace.root / "sparse").open("r+b") as file:
        file.seek(30_000_000)
        file.write(b"x")
    [altered] = workspace.compare(before)
    assert altered.before.content != altered.after.content
    assert workspace.blobs.used()[1] < 1_000_000


def test_over_budget_nothing_is_stored(workspace):
    for number in range(8):
        (workspace.root / f"f{number}").write_bytes(os.urandom(1000 + number))
    with pytest.raises(OverBudget) as caught:
        workspace.take(budget=8027)
    assert (caught.value.needed, caught.value.budget) == (8028, 8027)
    assert caught.value.largest == [(f"f{number}", 1000 + number) for number in (7, 6, 5, 4, 3)]
    assert workspace.blobs.used() == (0, 0)
    assert not os.path.exists(os.path.join(workspace.state, "index"))
    assert len(workspace.take(budget=8028).entries) == 8


def test_changes_beyond_the_budget_are_still_reported(workspace):
    before = workspace.take()
    for name, size in (("a", 600), ("b", 600), ("c", 300)):
        (workspace.root / name).write_bytes(os.urandom(size))
    compared = workspace.snapshots.examine(before, str(workspace.root), 1000, go_on)
    altered = compared.changes
    kept = [workspace.blobs.has(each.after.content) for each in altered]
    assert sorted(kept[:2]) == [False, True]  # Whichever came first.
    assert kept[2]
    assert compared.unkept == ["ab"[kept.index(False)]]
    assert [each.after.content for each in altered] == [
        hashlib.sha256((workspace.root / name).read_bytes()).hexdigest() for name in "abc"
    ]
    workspace.take()
    assert all(workspace.blobs.has(each.after.content) for each in altered)


def test_what_is_not_kept_is_not_in_the_index(workspace, monkeypatch):
    monkeypatch.setattr("haft.changes.snapshots.snapshot._FEW_FILES", 0)
    before = workspace.take()
    (workspace.root / "large").write_bytes(b"x" * 1000)
    workspace.settle()
    workspace.compare(before, budget=10)
    kept = workspace.take().entries["large"].content
    assert workspace.blobs.read(kept) == b"x" * 1000


def test_storing_much_is_reported_and_storing_little_is_not(workspace):
    (workspace.root / "few").write_bytes(b"x")
    workspace.take()
    assert workspace.told == []
    with (workspace.root / "large").open("wb") as file:
        file.truncate(60_000_000)
    workspace.take()
    assert workspace.told == ["storing 2 files of the workspace, 60 MB"]


def test_what_is_skipped_is_not_there(workspace):
    (workspace.root / "a" / "home" / "x").mkdir(parents=True)
    (workspace.root / "a" / "file").write_bytes(b"x")
    status = (workspace.root / "a" / "home").stat()
    before = workspace.take(skip=[(status.st_dev, status.st_ino)])
    assert sorted(before.entries) == ["a", "a/file"]
    (workspace.root / "a" / "home" / "y").write_bytes(b"y")
    (workspace.root / "a" / "new").write_bytes(b"y")
    assert paths(workspace.compare(before)) == ["a/new"]


def damaged(data: bytes) -> list[bytes]:
    chance = random.Random(5)
    flipped = []
    for _ in range(40):
        at = chance.randrange(len(data))
        flipped.append(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
    return [b"", b"x", data[:-1], data[: len(data) // 2], data + b"x", data[8:], bytes(len(data)), *flipped]


def test_a_damaged_index_is_built_anew(workspace, reads):
    for number in range(150):
        (workspace.root / f"f{number}").write_bytes(b"%d" % number)
    workspace.settle()
    whole = workspace.take().entries
    place = Path(workspace.state) / "index"
    data = place.read_bytes()
    for harm in damaged(data):
        place.write_bytes(harm)
        reads.clear()
        assert workspace.take().entries == whole
        assert len(reads) == 150
        assert len(Index.read(str(place)).stamps) == 150
    assert os.listdir(workspace.state) == ["index"]


def test_an_index_comes_back_as_it_was_written(tmp_path):
    place = str(tmp_path / "index")
    Index().write(place)
    assert Index.read(place) == Index()
    stamps = {
        "a": (0o100644, 2**64 - 1, 2**63 + 1, 1, 0, 2**32 - 1, 2**62, -5, 10**18),
        os.fsdecode(b"new\nline/\xff\xf0\x9f"): (0o100000, 1, 2, 3, 4, 5, 6, 7, 8),
        "é🪤": (0o100000, 1, 2, 3, 4, 5, 6, 7, 8),
    }
    contents = {path: hashlib.sha256(os.fsencode(path)).hexdigest() for path in stamps}
    Index(stamps, contents, "1-2-3").write(place)
    assert Index.read(place) == Index(stamps, contents, "1-2-3")
    late = {**stamps, "late": (0o100000, 1, 2, 3, 4, 5, 6, 2**63, 8)}
    Index(late, {**contents, "late": contents["a"]}, "1-2-3").write(place)
    assert Index.read(place) == Index(stamps, contents, "1-2-3")


def test_content_that_was_removed_from_the_store_is_stored_again(workspace, reads):
    for number in range(150):
        (workspace.root / f"f{number}").write_bytes(b"%d" % number)
    workspace.settle()
    entries = workspace.take().entries
    reads.clear()
    workspace.blobs.remove(entries["f7"].content)
    assert workspace.take().entries == entries
    assert len(reads) == 1
    assert workspace.blobs.read(entries["f7"].content) == b"7"
    workspace.take()
    assert len(reads) == 1
    shutil.rmtree(workspace.blobs._directory)
    workspace.take()
    assert len(reads) == 151


def test_a_stopped_snapshot_ends(workspace):
    for number in range(50):
        (workspace.root / f"f{number}").write_bytes(b"%d" % number)
    for steps in (0, 1, 10):
        answers = iter([False] * steps + [True])
        with pytest.raises(ToolFailed, match="stopped"):
            workspace.snapshots.take(str(workspace.root), PLENTY, lambda answers=answers: next(answers), print)


def test_a_file_that_changes_while_it_is_read_is_looked_at_again(workspace, monkeypatch):
    path, put = workspace.root / "file", Blobs.put
    path.write_bytes(b"before")
    workspace.settle()

    def writing(self, descriptor, size, stopped=None):
        kept = put(self, descriptor, size, stopped)
        path.write_bytes(path.read_bytes() + b".")
        return kept

    with monkeypatch.context() as patched:
        patched.setattr(Blobs, "put", writing)
        before = workspace.take()
    assert before.racy == {"file"}
    [altered] = workspace.compare(before)
    assert altered.after.content == hashlib.sha256(path.read_bytes()).hexdigest()


def test_paths_that_vanish_or_are_swapped_meanwhile_are_reported_as_they_are_then(workspace):
    for name in ("gone", "link", "stays"):
        (workspace.root / name).write_bytes(b"x")
    (workspace.root / "directory").mkdir()
    (workspace.root / "directory" / "inside").write_bytes(b"x")
    asked = 0

    def meddling() -> bool:
        nonlocal asked
        asked += 1
        if asked == 3:  # Both directories are listed, no file is read.
            (workspace.root / "gone").unlink()
            (workspace.root / "link").unlink()
            (workspace.root / "link").symlink_to("stays")
            (workspace.root / "directory" / "inside").unlink()
            (workspace.root / "directory").rmdir()
        return False

    found = workspace.snapshots.take(str(workspace.root), PLENTY, meddling, print)
    assert_same(found.entries, fingerprint(workspace.root))


def test_modes_that_forbid_reading_stand_in_nobodys_way(workspace):
    root = workspace.root
    (root / "closed" / "inner").mkdir(parents=True)
    (root / "listed" / "inner").mkdir(parents=True)
    for name in ("secret", "closed/file", "closed/inner/file", "listed/file", "listed/inner/file"):
        (root / name).write_bytes(name.encode())
    (root / "secret").chmod(0)
    (root / "closed" / "inner" / "file").chmod(0o200)
    (root / "closed" / "inner").chmod(0)
    (root / "closed").chmod(0)
    (root / "listed").chmod(0o400)
    was = fingerprint(root)
    before = workspace.take()
    assert before.unreadable == []
    assert_same(before.entries, was)
    assert fingerprint(root) == was, "every mode was given back"
    assert workspace.compare(before) == []
    (root / "closed").chmod(0o700)
    (root / "closed" / "file").write_bytes(b"changed")
    (root / "closed").chmod(0)
    (root / "secret").chmod(0o600)
    altered = workspace.compare(before)
    assert_told(altered, was, fingerprint(root))
    assert paths(altered) == ["closed/file", "secret"]


def test_the_root_itself_may_be_closed(workspace):
    (workspace.root / "file").write_bytes(b"x")
    workspace.root.chmod(0)
    try:
        assert list(workspace.take().entries) == ["file"]
        assert stat.S_IMODE(workspace.root.stat().st_mode) == 0
    finally:
        workspace.root.chmod(0o755)


@bound_by_modes
def test_modes_are_given_back_when_reading_fails(workspace, monkeypatch):
    (workspace.root / "closed" / "inner").mkdir(parents=True)
    (workspace.root / "closed" / "inner" / "file").write_bytes(b"x")
    (workspace.root / "closed" / "inner" / "file").chmod(0)
    (workspace.root / "closed" / "inner").chmod(0)
    (workspace.root / "closed").chmod(0)
    was = fingerprint(workspace.root)

    def failing(self, descriptor, size, stopped=None):
        assert stat.S_IMODE(os.fstat(descriptor).st_mode) == 0, "given back before it is read"
        raise OSError(28, "the disk is full")

    monkeypatch.setattr(Blobs, "put", failing)
    with pytest.raises(OSError, match="full"):
        workspace.take()
    assert fingerprint(workspace.root) == was


def as_another_user(root, state, out) -> None:
    """What somebody sees who owns only one of the files. By relative paths: those above are root's own."""
    os.chdir(root)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    snapshots = Snapshots("../theirs/index", Blobs("../theirs/blobs"))
    before = snapshots.take(".", PLENTY, go_on, print)
    told = [sorted(before.unreadable), before.entries["secret"].content, before.entries["closed"].content]
    told.append(snapshots.compare(before, ".", PLENTY, go_on))
    told.append(stat.S_IMODE(os.stat("mine").st_mode))
    os.chmod("mine", 0o600)
    told.append(paths(snapshots.compare(before, ".", PLENTY, go_on)))
    os.write(out, repr(told).encode())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_what_belongs_to_others_is_said_to_be_unreadable(workspace, tmp_path):
    root, state = workspace.root, tmp_path / "theirs"
    state.mkdir()
    for name in ("secret", "mine"):
        (root / name).write_bytes(b"x")
    (root / "closed").mkdir(mode=0o700)
    (root / "closed" / "inside").write_bytes(b"x")
    (root / "secret").chmod(0o600)
    (root / "mine").chmod(0)
    os.chown(root / "mine", 65534, 65534)
    os.chown(state, 65534, 65534)
    tmp_path.chmod(0o711)
    ours, theirs = os.pipe()
    other = os.fork()  # The program itself may be where no other user can start it.
    if not other:
        try:
            as_another_user(root, state, theirs)
        except BaseException as error:
            os.write(theirs, repr(error).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours) as file:
        told = file.read()
    os.waitpid(other, 0)
    assert told == repr([["closed", "secret"], UNREADABLE, UNREADABLE, [], 0, ["mine"]])


def test_a_directory_that_became_unreadable_is_not_emptied(workspace, monkeypatch):
    (workspace.root / "d").mkdir()
    (workspace.root / "d" / "file").write_bytes(b"x")
    before = workspace.take()
    go = Descent.go

    def refusing(self, path):
        if path == "d":
            raise PermissionError(13, "forbidden")
        return go(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(Descent, "go", refusing)
        closed = workspace.take()
        compared = workspace.snapshots.examine(before, str(workspace.root), PLENTY, go_on)
    assert closed.unreadable == compared.unreadable == ["d"]
    assert closed.entries["d"].content == UNREADABLE
    assert compared.changes == []
    assert workspace.compare(closed) == []


def test_a_scan_leaves_nothing_open(workspace):
    (workspace.root / "a" / "b").mkdir(parents=True)
    before = sorted(os.listdir("/proc/self/fd"))
    scan(str(workspace.root), (), go_on)
    assert sorted(os.listdir("/proc/self/fd")) == before
