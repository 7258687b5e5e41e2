"""A watched tree never says that nothing has changed if something has: compared with examining it again."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import sampling
from haft.cache import Files, Unstampable, WatchedTrees
from haft.cache.stamps import kernel_time, stamp_of
from haft.files import most_watches

pytestmark = pytest.mark.skipif(not most_watches(), reason="this system has no inotify")

NAMES = ("a", "b", "sub/a", "sub/deep/b", "other/a")


def write(root, one, other):
    (root / one).parent.mkdir(parents=True, exist_ok=True)
    (root / one).write_text("text")


def write_in_place(root, one, other):
    """Through a descriptor that stays open."""
    if (root / one).is_file():
        with (root / one).open("r+") as file:
            file.write("x")
            file.flush()


def rename(root, one, other):
    if (root / one).exists() and (root / other).parent.exists():
        os.rename(root / one, root / other)


def rename_directory(root, one, other):
    if (root / "sub").exists():
        shutil.rmtree(root / "moved", ignore_errors=True)
        (root / "sub").rename(root / "moved")


def exchange_root(root, one, other):
    shutil.rmtree(root.with_name("gone"), ignore_errors=True)
    shutil.copytree(root, root.with_name("copy"), symlinks=True)
    root.rename(root.with_name("gone"))
    root.with_name("copy").rename(root)


def delete(root, one, other):
    (root / one).unlink(missing_ok=True)


def link(root, one, other):
    if not os.path.lexists(root / one) and (root / one).parent.exists():
        (root / one).symlink_to(root / other)


def hard_link_outside(root, one, other):
    outside = root.with_name("outside")
    if (root / one).is_file() and not (root / one).is_symlink():
        outside.unlink(missing_ok=True)
        outside.hardlink_to(root / one)


def write_outside(root, one, other):
    outside = root.with_name("outside")
    if outside.exists():
        with outside.open("a") as file:
            file.write("more")


def set_times(root, one, other):
    if (root / one).exists():
        os.utime(root / one, ns=(0, 0))


def ignore(root, one, other):
    (root / ".git" / "info").mkdir(parents=True, exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text(one)


def nothing(root, one, other):
    pass


DEEDS = (
    write, write_in_place, rename, rename_directory, exchange_root, delete, link, hard_link_outside, write_outside,
    set_times, ignore, nothing, nothing,
)  # fmt: skip


def excludes(git):
    return (os.path.join(git, "info", "exclude"),)


@settings(max_examples=400 if sampling.IS_WHOLE else 15)
@given(
    some.sampled_from([(".",), ("sub",), ("sub", "other")]),
    some.booleans(),
    some.lists(some.tuples(some.sampled_from(DEEDS), some.sampled_from(NAMES), some.sampled_from(NAMES)), max_size=12),
)
def test_a_watched_tree_has_the_stamp_that_it_would_get_now(paths, follows_links, deeds):
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "root")
        for name in NAMES:
            write(root, name, "")
        trees = WatchedTrees(least_entries=1)
        leaves_out = {} if follows_links else {".git": excludes}
        files = Files(
            str(root), paths, others=(f"{place}/outside",), leaves_out=leaves_out, follows_links=follows_links
        )
        try:
            for deed, one, other in ((nothing, "a", "a"), *deeds):
                for _ in range(2):
                    stamp_or_reason(trees.stamp_of, files)
                began = kernel_time()
                before = stamp_or_reason(stamp_of, files)
                deed(root, one, other)
                now = stamp_or_reason(stamp_of, files)
                assert stamp_or_reason(trees.stamp_of, files) == now
                if before != now is not None:
                    assert not trees.stamp_of(files).is_older_than(began), deed
        finally:
            trees.close()


def stamp_or_reason(look, files):
    try:
        return look(files).digest
    except Unstampable:
        return None


def test_a_tree_is_watched_from_the_second_look_on(tmp_path):
    (tmp_path / "file").write_text("text")
    trees = WatchedTrees(least_entries=1)
    files = Files(str(tmp_path), (".",))
    stamps = []
    for _ in range(2):
        assert trees.known(files) is None
        stamps.append(trees.stamp_of(files))
    assert trees.known(files) == stamps[0] == stamps[1]
    (tmp_path / "file").write_text("TEXT")
    assert trees.known(files) is None
    assert trees.stamp_of(files).digest != stamps[0].digest
    trees.close()


def test_only_a_few_trees_are_watched(tmp_path):
    trees = WatchedTrees(least_entries=1)
    all_files = []
    for number in range(6):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "file").write_text("text")
        all_files.append(Files(str(tmp_path), (str(number),)))
    for files in (*all_files, *all_files):
        trees.stamp_of(files)
    assert [trees.known(files) is not None for files in all_files] == [False, False, True, True, True, True]
    trees.close()
