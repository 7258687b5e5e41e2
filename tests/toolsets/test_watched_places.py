"""Which sources the kernel wakes, whatever is done to their places. The kernel tells before a system call returns, so
nothing here waits."""

import os
import struct
import sys

import pytest

from haft.files import watches
from haft.toolsets.watched_places import WatchedPlaces

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@pytest.fixture
def root(tmp_path):
    place = tmp_path / "root"
    place.mkdir()
    return place


@pytest.fixture
def watched(root):
    made = WatchedPlaces([str(root)])
    yield made
    made.close()


def follow(watched, **places):
    """Watch a place for each source."""
    wanted = {}
    for source, place in places.items():
        wanted.setdefault(str(place), set()).add(source)
    return watched.follow(wanted)


def save_in_place(path):
    path.write_text("other")


def save_by_rename(path):
    path.with_name(".new").write_text("other")
    path.with_name(".new").rename(path)


def save_beside_and_back(path):
    path.rename(path.with_name("it~"))
    path.write_text("other")


@pytest.mark.parametrize("save", [save_in_place, save_by_rename, save_beside_and_back])
@pytest.mark.parametrize("is_file", [True, False], ids=["file", "directory"])
def test_a_file_is_saved_as_editors_do(watched, root, save, is_file):
    (root / "tools").mkdir()
    file = root / "tools/it"
    file.write_text("one")
    assert follow(watched, boxes=file if is_file else file.parent) == {"boxes"}
    assert watched.changed() == set()
    save(file)
    assert watched.changed() == {"boxes"}


def test_run_bits_and_files_that_come_and_go_count(watched, root):
    follow(watched, boxes=root)
    for change in (
        lambda: (root / "it").touch(),
        lambda: (root / "it").chmod(0o755),
        lambda: (root / "it").rename(root / "that"),
        lambda: (root / "that").unlink(),
    ):
        change()
        assert watched.changed() == {"boxes"}
        assert watched.changed() == set()


def test_a_place_that_does_not_exist_yet_is_seen_to_come_step_by_step(watched, root):
    place = root / ".agents/tools"
    follow(watched, boxes=place)
    (root / "other").mkdir()
    assert watched.changed() == set()
    for step in (root / ".agents", place):
        step.mkdir()
        assert watched.changed() == {"boxes"}
        assert follow(watched, boxes=place) == {"boxes"}, "it may have been filled before it was watched"
        watched.changed()
    (place / "it").touch()
    assert watched.changed() == {"boxes"}


@pytest.mark.parametrize("replaced", ["a", "a/b", "a/b/c"])
def test_a_directory_is_replaced_as_a_whole_wherever_above_the_place(watched, root, replaced):
    place = root / "a/b/c"
    place.mkdir(parents=True)
    follow(watched, boxes=place)
    new = root / "new"
    (new / os.path.relpath(place, root / replaced)).mkdir(parents=True)
    (root / replaced).rename(root / "old")
    new.rename(root / replaced)
    assert watched.changed() == {"boxes"}
    assert follow(watched, boxes=place) == {"boxes"}
    watched.changed()
    (root / "old" / os.path.relpath(place, root / replaced) / "it").touch()
    assert watched.changed() == set(), "what was there before counts no more"
    (place / "it").touch()
    assert watched.changed() == {"boxes"}


def test_only_those_are_woken_whose_place_it_is(watched, root):
    (root / "boxes").mkdir()
    (root / "it.bash").touch()
    follow(watched, boxes=root / "boxes", plugins=root / "it.bash", skills=root / "skills")
    (root / "notes.txt").touch()
    assert watched.changed() == set()
    (root / "boxes/it").touch()
    assert watched.changed() == {"boxes"}
    (root / "it.bash").write_text("other")
    assert watched.changed() == {"plugins"}
    (root / "skills").mkdir()
    assert watched.changed() == {"skills"}


def test_two_ways_to_one_directory_are_both_watched(watched, root):
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    follow(watched, boxes=root / "real", others=root / "link")
    (root / "real/it").touch()
    assert watched.changed() == {"boxes", "others"}
    follow(watched, boxes=root / "real")
    (root / "real/that").touch()
    assert watched.changed() == {"boxes"}
    follow(watched, others=root / "link")
    (root / "link").unlink()
    assert watched.changed() == {"others"}


def test_what_the_kernel_does_not_tell_is_found_by_a_look(watched, tmp_path):
    """Nothing above a place outside of the roots is watched, but for its own directory."""
    place = tmp_path / "far/away/tools"
    place.mkdir(parents=True)
    follow(watched, boxes=place)
    assert watched.missed() == set()
    (tmp_path / "far").rename(tmp_path / "old")
    place.mkdir(parents=True)
    assert watched.changed() == set()
    assert watched.missed() == {"boxes"}
    follow(watched, boxes=place)
    assert watched.missed() == set()


def test_more_than_may_be_watched_is_said(watched, root, monkeypatch):
    monkeypatch.setattr(watches, "MAX_WATCHES", 2)
    for name in ("a", "b", "c"):
        (root / name).mkdir()
    follow(watched, **{name: root / name for name in ("a", "b", "c")})
    assert len(watched.unwatched) == 2  # the root is one of those that are
    follow(watched, c=root / "c")
    assert watched.unwatched == set()


@pytest.mark.every_user
def test_a_directory_that_may_not_be_read_is_said(watched, root):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (root / "a").mkdir(mode=0)
    follow(watched, a=root / "a")
    assert watched.unwatched == {"a"}


def test_when_there_was_too_much_to_tell_all_are_woken(watched, root, monkeypatch):
    (root / "boxes").mkdir()
    follow(watched, boxes=root / "boxes", skills=root / "skills")
    overflow = iter([struct.pack("iIII", -1, 0x4000, 0, 0)])
    monkeypatch.setattr(watched._watches, "_read", lambda: next(overflow, b""))
    assert watched.changed() == {"boxes", "skills"}


def test_no_descriptor_is_left(root):
    before = set(os.listdir("/proc/self/fd"))
    made = WatchedPlaces([str(root)])
    follow(made, boxes=root)
    made.close()
    assert set(os.listdir("/proc/self/fd")) == before
