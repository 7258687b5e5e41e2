import ctypes
import os
import socket
import stat
import threading

import pytest

from haft.contracts import Conflict, InvalidArguments, PathEscapes, ToolFailed, WrittenFile
from haft.files import Root
from haft.files import file_replacement as replacing_module


@pytest.fixture
def workspace(tmp_path):
    directory = tmp_path / "workspace"
    directory.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("SECRET")
    return directory


@pytest.fixture
def root(workspace):
    return Root(workspace)


@pytest.fixture(autouse=True)
def no_descriptor_leaks():
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    yield
    after = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    assert len(after) == len(before)


def read(root, path):
    with root.open(path) as file:
        return file.read()


@pytest.mark.parametrize("path", ["a/b.txt", "./a/b.txt", "a//b.txt", "a/../a/b.txt", "a/./b.txt"])
def test_a_path_inside_is_read_however_it_is_written(root, workspace, path):
    (workspace / "a").mkdir()
    (workspace / "a" / "b.txt").write_text("hello")
    assert read(root, path) == b"hello"
    assert root.locate(path) == "a/b.txt"


def test_absolute_paths_beneath_the_root_are_accepted(root, workspace):
    (workspace / "a.txt").write_text("hello")
    assert read(root, str(workspace / "a.txt")) == b"hello"
    assert read(root, "//" + str(workspace).lstrip("/") + "/./a.txt") == b"hello"
    assert root.locate(str(workspace)) == "."


def test_a_root_reached_through_a_link_is_known_by_both_names(workspace, tmp_path):
    (workspace / "a.txt").write_text("hello")
    (tmp_path / "alias").symlink_to(workspace)
    root = Root(tmp_path / "alias")
    assert root.root == str(workspace)
    assert read(root, str(tmp_path / "alias" / "a.txt")) == b"hello"
    assert read(root, str(workspace / "a.txt")) == b"hello"


@pytest.mark.parametrize("target", ["real.txt", "./real.txt", "d/../real.txt", "{root}/real.txt"])
def test_a_link_that_leads_inside_works(root, workspace, target):
    (workspace / "d").mkdir()
    (workspace / "real.txt").write_text("hello")
    (workspace / "link").symlink_to(target.format(root=workspace))
    assert read(root, "link") == b"hello"
    assert root.locate("link") == "real.txt"


def test_links_to_directories_are_walked_through(root, workspace):
    (workspace / "deep" / "er").mkdir(parents=True)
    (workspace / "deep" / "er" / "x").write_text("hello")
    (workspace / "top").symlink_to("deep/er")
    (workspace / "deep" / "back").symlink_to("../top")
    assert read(root, "deep/back/x") == b"hello"
    assert root.locate("deep/back/..") == "deep"


@pytest.mark.parametrize(
    "path",
    ["..", "../outside/secret", "a/../../outside/secret", "/etc/passwd", "/", "{root}/../outside/secret", "{root}x/y"],
)
def test_a_path_that_leaves_is_refused(root, workspace, path):
    (workspace / "a").mkdir()
    path = path.format(root=workspace)
    for operation in (root.open, root.open_directory, root.identity, root.locate):
        with pytest.raises(PathEscapes, match="outside the workspace"):
            operation(path)
    with pytest.raises(PathEscapes):
        root.replace(path, b"x")


@pytest.mark.parametrize(
    "target", ["../outside/secret", "/etc/passwd", "/proc/self/root/etc/passwd", "/dev/fd/0", "d/../../outside/secret"]
)
def test_a_link_that_leads_out_is_refused_for_reading_and_writing(root, workspace, tmp_path, target):
    (workspace / "d").mkdir()
    (workspace / "link").symlink_to(target)
    (workspace / "directory").symlink_to(os.path.dirname(target))
    for path in ("link", f"directory/{os.path.basename(target)}"):
        with pytest.raises(PathEscapes):
            root.open(path)
        with pytest.raises(PathEscapes):
            root.replace(path, b"overwritten")
    assert (tmp_path / "outside" / "secret").read_text() == "SECRET"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="magic links are Linux's")
def test_magic_links_are_words_and_not_doors():
    root = Root("/proc/self")
    for path in ("root/etc/passwd", "cwd/.", "exe"):
        with pytest.raises((PathEscapes, ToolFailed)):
            root.open(path)


def test_a_circle_of_links_ends(root, workspace):
    (workspace / "a").symlink_to("b")
    (workspace / "b").symlink_to("a")
    with pytest.raises(ToolFailed, match="more than 40 links"):
        root.open("a")


def test_forty_links_are_followed(root, workspace):
    (workspace / "0").write_text("hello")
    for number in range(40):
        (workspace / str(number + 1)).symlink_to(str(number))
    assert read(root, "40") == b"hello"


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800"])
def test_a_path_that_is_none_is_an_argument_error(root, path):
    with pytest.raises(InvalidArguments):
        root.open(path)


def test_names_that_are_not_utf8_work(root, workspace):
    name = os.fsdecode(b"caf\xe9")
    (workspace / name).write_text("hello")
    assert read(root, name) == b"hello"
    with pytest.raises(ToolFailed, match=r"`\\xff` does not exist"):
        root.open("\udcff")


def test_a_very_deep_or_long_path_is_refused_in_words(root, workspace):
    with pytest.raises(ToolFailed, match="more than a path may have"):
        root.open("a/" * 5000)
    with pytest.raises(ToolFailed, match="too long"):
        root.open("a" * 300)
    with pytest.raises(ToolFailed, match="256 directories deep"):
        root.replace("d/" * 300 + "x", b"")
    assert list(workspace.iterdir()) == []


def test_what_is_no_regular_file_is_not_opened(root, workspace):
    os.mkfifo(workspace / "pipe")
    (workspace / "directory").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.open(".", os.O_RDONLY)
        os.chdir(workspace)  # the path of a socket may not be long
        listening.bind("socket")
        os.chdir(here)
        os.close(here)
        for name, words in (("pipe", "named pipe"), ("socket", "a socket"), ("directory", "is a directory")):
            with pytest.raises(ToolFailed, match=words):
                root.open(name)
            with pytest.raises(ToolFailed, match=words):
                root.replace(name, b"x")
    with pytest.raises(ToolFailed) as raised:
        root.open("directory")
    assert "list_directory" in raised.value.hint


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_not_opened(root, workspace):
    try:
        os.mknod(workspace / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except OSError:
        pytest.skip("this filesystem makes no devices")
    with pytest.raises(ToolFailed, match="a device"):
        root.open("zero")


def test_a_missing_file_suggests_its_sibling(root, workspace):
    (workspace / "src").mkdir()
    (workspace / "src" / "settings.py").write_text("")
    with pytest.raises(ToolFailed, match=r"`src/setings\.py` does not exist") as raised:
        root.open("src/setings.py")
    assert raised.value.hint == "did you mean `src/settings.py`?"
    with pytest.raises(ToolFailed) as raised:
        root.open("scr/settings.py")
    assert raised.value.hint == "did you mean `src`?"


def test_a_file_on_the_way_is_named(root, workspace):
    (workspace / "a").write_text("")
    for operation in (root.open, lambda path: root.replace(path, b"")):
        with pytest.raises(ToolFailed, match="`a` is not a directory"):
            operation("a/b")


def test_a_workspace_that_is_gone_is_named(root, workspace):
    workspace.rmdir()
    with pytest.raises(ToolFailed, match=r"workspace .* does not exist"):
        root.open("a")


def test_listing_gives_a_descriptor_of_the_directory(root, workspace):
    (workspace / "d").mkdir()
    (workspace / "d" / "x").write_text("")
    (workspace / "link").symlink_to("d")
    for path in ("d", "d/", "link", "link/."):
        descriptor = root.open_directory(path)
        assert os.listdir(descriptor) == ["x"]
        assert not os.get_inheritable(descriptor)
        os.close(descriptor)
    with pytest.raises(ToolFailed, match="is not a directory"):
        root.open_directory("d/x")


def test_what_does_not_exist_lies_where_it_would_be_made(root, workspace):
    (workspace / "real").mkdir()
    (workspace / "link").symlink_to("real")
    assert root.locate("link/new/file") == "real/new/file"
    assert root.locate("new/") == "new"
    assert root.identity("link/new/file") is None


def test_a_new_file_is_made_with_its_directories(root, workspace):
    old = os.umask(0o027)
    try:
        assert root.replace("a/b/c.txt", b"hello") == WrittenFile("a/b/c.txt", created=True, directories=("a", "a/b"))
    finally:
        os.umask(old)
    assert (workspace / "a/b/c.txt").read_bytes() == b"hello"
    assert stat.S_IMODE((workspace / "a/b/c.txt").stat().st_mode) == 0o640
    assert root.replace("a/b/d.txt", b"") == WrittenFile("a/b/d.txt", created=True)


def test_an_existing_file_keeps_its_mode_but_not_set_user_id(root, workspace):
    (workspace / "run.sh").write_text("old")
    (workspace / "run.sh").chmod(0o4751)
    assert root.replace("run.sh", b"new") == WrittenFile("run.sh", created=False)
    assert stat.S_IMODE((workspace / "run.sh").stat().st_mode) == 0o751
    assert os.listdir(workspace) == ["run.sh"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_root_leaves_a_file_to_its_owner(root, workspace):
    (workspace / "a").write_text("old")
    os.chown(workspace / "a", 1234, 1235)
    root.replace("a", b"new")
    assert ((workspace / "a").stat().st_uid, (workspace / "a").stat().st_gid) == (1234, 1235)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_made_read_only_stays_as_it_is(root, workspace):
    (workspace / "a").write_text("old")
    (workspace / "a").chmod(0o444)
    with pytest.raises(ToolFailed, match="permission is denied"):
        root.replace("a", b"new")


def test_writing_through_a_link_writes_the_file_it_leads_to(root, workspace):
    (workspace / "real").write_text("old")
    (workspace / "link").symlink_to("real")
    assert root.replace("link", b"new").path == "real"
    assert (workspace / "link").is_symlink()
    assert (workspace / "real").read_text() == "new"


def test_a_name_that_can_only_be_a_directory_is_not_written(root, workspace):
    (workspace / "d").mkdir()
    for path in ("d", "d/", ".", "new/", "new/.", "new/x/"):
        with pytest.raises(ToolFailed, match="directory"):
            root.replace(path, b"x")
    assert os.listdir(workspace) == ["d"]


def test_a_file_that_changed_is_a_conflict_and_is_kept(root, workspace):
    (workspace / "a").write_text("one")
    identity = root.identity("a")
    (workspace / "a").write_text("two!")
    with pytest.raises(Conflict, match="changed since it was read"):
        root.replace("a", b"mine", expect=identity)
    (workspace / "a").unlink()
    with pytest.raises(Conflict):
        root.replace("a", b"mine", expect=identity)
    assert os.listdir(workspace) == []


def test_a_change_during_the_write_is_a_conflict(root, workspace, monkeypatch):
    (workspace / "a").write_text("one")
    identity = root.identity("a")

    def sync_and_interfere(descriptor):
        (workspace / "a").write_text("somebody else")

    monkeypatch.setattr(replacing_module.os, "fsync", sync_and_interfere)
    with pytest.raises(Conflict):
        root.replace("a", b"mine", expect=identity)
    assert (workspace / "a").read_text() == "somebody else"
    assert os.listdir(workspace) == ["a"]


def test_a_full_disk_leaves_everything_as_it_was(root, workspace, monkeypatch):
    (workspace / "a").write_text("old")

    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replacing_module.os, "write", full)
    with pytest.raises(ToolFailed, match="`a` cannot be written: the disk is full"):
        root.replace("a", b"new")
    with pytest.raises(ToolFailed, match="the disk is full"):
        root.replace("d/e/new", b"new")
    assert os.listdir(workspace) == ["a"]
    assert (workspace / "a").read_text() == "old"


def test_short_writes_are_continued(root, workspace, monkeypatch):
    write = os.write
    monkeypatch.setattr(replacing_module.os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    root.replace("a", b"0123456789" * 10)
    assert (workspace / "a").read_bytes() == b"0123456789" * 10


def exchange(left, right):
    """Swap two names in one step."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2") or libc.renameat2(-100, os.fsencode(left), -100, os.fsencode(right), 2) != 0:
        pytest.skip("this system does not exchange names")


def test_a_directory_that_flips_into_a_link_outward_never_shows_what_is_outside(root, workspace, tmp_path):
    (workspace / "door").mkdir()
    (workspace / "door" / "secret").write_text("inside")
    (workspace / "outward").symlink_to(tmp_path / "outside")
    exchange(workspace / "door", workspace / "outward")
    stop = threading.Event()

    def flip():
        while not stop.is_set():
            exchange(workspace / "door", workspace / "outward")

    flipping = threading.Thread(target=flip)
    flipping.start()
    refused = seen = written = 0
    failures = set()
    try:
        for number in range(6000):
            try:
                if number % 20 == 0:
                    root.replace("door/written", b"x")
                    written += 1
                else:
                    assert read(root, "door/secret") == b"inside"
                    seen += 1
            except PathEscapes:
                refused += 1
            except ToolFailed as error:
                failures.add(error.message.rpartition("`")[2])
    finally:
        stop.set()
        flipping.join()
    assert seen and refused and written
    assert failures <= {" is not a directory"}  # no directory when it was opened, no link when it was read
    assert os.listdir(tmp_path / "outside") == ["secret"]
    assert (tmp_path / "outside" / "secret").read_text() == "SECRET"


def test_a_file_that_flips_into_a_link_outward_never_shows_what_is_outside(root, workspace, tmp_path):
    (workspace / "file").write_text("inside")
    (workspace / "outward").symlink_to(tmp_path / "outside" / "secret")
    exchange(workspace / "file", workspace / "outward")
    stop = threading.Event()

    def flip():
        while not stop.is_set():
            exchange(workspace / "file", workspace / "outward")

    flipping = threading.Thread(target=flip)
    flipping.start()
    failures = set()
    try:
        for _ in range(6000):
            try:
                assert read(root, "file") == b"inside"
            except (PathEscapes, Conflict):
                pass
            except ToolFailed as error:
                failures.add(error.message)
    finally:
        stop.set()
        flipping.join()
    assert failures <= {"`file` is a link, not a regular file"}
