"""What links, strange files and failures in the middle do: nothing outside changes, and nothing is half done."""

from __future__ import annotations

import errno
import os
import shutil

import pytest

from cdd import files, tracks
from cdd.workspace import Workspace

READING = [["view"], ["view", "--archived"], ["recite"], ["pack", "--focus", "x"], ["view", "--inbox"]]
WRITING = [
    ["init"],
    ["start", "b"],
    ["log", "a", "x"],
    ["archive", "a"],
    ["delete", "a"],
    ["view", "a"],
    ["recite", "a"],
]


@pytest.fixture
def outside(tmp_path_factory):
    """A folder elsewhere that looks like a `.context`."""
    folder = tmp_path_factory.mktemp("outside")
    for name in ("tracks/a", "archive/20260101000000_a", "specs"):
        (folder / name).mkdir(parents=True)
    (folder / "tracks/a/plan.md").write_text("secret")
    (folder / "specs/a.md").write_text("secret x")
    (folder / "inbox.md").write_text("secret")
    return folder


def state(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("words", READING + WRITING, ids=" ".join)
def test_a_context_that_is_a_link_is_refused(cdd, outside, words):
    (cdd.path / ".context").symlink_to(outside)
    before = state(outside)
    told = cdd.refused(*words)
    assert ".context is a link" in told and "secret" not in told
    assert state(outside) == before


@pytest.mark.parametrize("words", READING + WRITING, ids=" ".join)
def test_a_context_that_is_a_file_is_refused(cdd, words):
    cdd.write(".context", "")
    assert ".context is not a folder" in cdd.refused(*words)


@pytest.mark.parametrize("words", READING + WRITING, ids=" ".join)
@pytest.mark.parametrize("folder", ["tracks", "archive", "specs"])
def test_a_folder_in_it_that_is_a_link_is_refused(cdd, outside, folder, words):
    cdd.done("init")
    shutil.rmtree(cdd.path / ".context" / folder)
    (cdd.path / ".context" / folder).symlink_to(outside / folder)
    before = state(outside)
    assert f".context/{folder} is a link" in cdd.refused(*words)
    assert state(outside) == before


@pytest.mark.parametrize("words", WRITING[:2], ids=" ".join)
def test_what_is_missing_is_not_made_beside_a_link_that_is_refused(cdd, outside, words):
    (cdd.path / ".context").mkdir()
    (cdd.path / ".context/specs").symlink_to(outside / "specs")
    assert ".context/specs is a link" in cdd.refused(*words)


@pytest.mark.parametrize("words", WRITING[1:], ids=" ".join)
def test_a_track_that_is_a_link_is_refused_and_not_listed(cdd, outside, words):
    cdd.done("init")
    cdd.track("a").symlink_to(outside / "tracks/a")
    cdd.track("b").symlink_to(outside / "nowhere")
    before = state(outside)
    cdd.refused(*words)
    assert state(outside) == before
    assert cdd.done("view", "--raw") == "setup\n"


@pytest.mark.parametrize(
    ("file", "words"), [("plan.md", "view a"), ("plan.md", "archive a"), ("decisions.md", "log a x")]
)
def test_a_file_that_is_a_link_is_not_followed(cdd, outside, file, words):
    cdd.done("start", "a")
    cdd.track("a", file).unlink()
    cdd.track("a", file).symlink_to(outside / "inbox.md")
    before = cdd.everything()
    result = cdd(*words.split())
    assert result.exit_code == 1 and f"{file} is a link" in result.stderr and "secret" not in result.output
    assert cdd.everything() == before
    assert (outside / "inbox.md").read_text() == "secret"


def test_the_inbox_and_specs_that_are_links_are_not_followed(cdd, outside):
    cdd.done("init")
    (cdd.path / ".context/inbox.md").symlink_to(outside / "inbox.md")
    (cdd.path / ".context/specs/file.md").symlink_to(outside / "specs/a.md")
    (cdd.path / ".context/specs/folder").symlink_to(outside / "specs")
    cdd.refused("view", "--inbox")
    result = cdd("pack", "--focus", "secret")
    assert "secret x" not in result.output
    assert "skipped .context/specs/file.md" in result.stderr and "skipped .context/specs/folder" in result.stderr


@pytest.mark.parametrize("words", ["view a", "recite a", "archive a"])
def test_a_pipe_in_a_files_place_blocks_nothing(cdd, words):
    cdd.done("start", "a")
    cdd.track("a", "plan.md").unlink()
    os.mkfifo(cdd.track("a", "plan.md"))
    result = cdd(*words.split())
    assert result.exit_code == 1 and "plan.md is not a file" in result.stderr


def test_one_broken_track_does_not_hide_the_others(cdd):
    cdd.done("start", "a")
    cdd.done("start", "b")
    cdd.track("b", "metadata.json").write_text("nonsense")
    cdd.track("b", "plan.md").unlink()
    cdd.track("b", "plan.md").mkdir()
    told = cdd.done("view")
    assert [line.split()[0] for line in told.splitlines()] == ["NAME", "a", "b"]
    assert told.splitlines()[2].split() == ["b", "?", "?", "?"]


def test_a_start_that_fails_leaves_nothing(cdd, monkeypatch):
    cdd.done("init")

    def full(*_given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tracks, "_write_metadata", full)
    assert "No space left" in cdd.refused("start", "a")


def test_an_archive_that_cannot_move_leaves_the_track_as_it_was(cdd, monkeypatch):
    cdd.done("start", "a")
    cdd.track("a", "plan.md").write_text("")
    real = os.rename

    def failing(source: str, target: str) -> None:
        if "/archive/" in target:
            raise PermissionError(errno.EACCES, "Permission denied", target)
        real(source, target)

    monkeypatch.setattr(os, "rename", failing)
    assert "Permission denied" in cdd.refused("archive", "a")


def test_a_delete_that_was_killed_is_finished_by_the_next_command(cdd):
    cdd.done("init")
    before = cdd.everything()
    shutil.copytree(cdd.track("setup"), cdd.track(".deleting-0123456789ab"))
    shutil.copytree(cdd.track("setup"), cdd.track(".starting-0123456789ab"))
    assert cdd.done("view", "--raw") == "setup\n"
    cdd.done("start", "a")
    cdd.done("delete", "a")
    assert cdd.everything() == before


def test_a_write_that_fails_keeps_the_old_file_and_leaves_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a.md"
    path.write_text("old")

    def failing(*_given: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files.os, "fsync", failing)
    with pytest.raises(OSError):
        files.write(str(path), b"new")
    assert [one.name for one in tmp_path.iterdir()] == ["a.md"]
    assert path.read_text() == "old"


def test_a_text_beyond_all_measure_is_not_read(cdd, monkeypatch):
    cdd.done("start", "a")
    monkeypatch.setattr(files, "LARGEST", 1024 * 1024)
    cdd.track("a", "plan.md").write_text("x" * (1024 * 1024 + 1))
    assert "larger than 1 MiB" in cdd.refused("recite", "a")


def test_two_who_start_the_same_track_do_not_mix(cdd):
    from concurrent.futures import ThreadPoolExecutor

    from cdd.refusals import Refused

    cdd.done("init")

    def attempt(_number: int) -> bool:
        try:
            tracks.start(Workspace(str(cdd.path)), "a")
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(attempt, range(6))) == [False] * 5 + [True]
    assert sorted(path.name for path in cdd.track("").iterdir()) == ["a", "setup"]
