from __future__ import annotations

import os
from importlib import resources

import pytest
from click.testing import CliRunner

from cdd import toolbox


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installation with two executables, and things that are none."""
    folder = tmp_path / "package"
    (folder / "wrappers/__pycache__").mkdir(parents=True)
    (folder / "wrappers/cdd-init").write_bytes(b"#!/bin/sh\necho init\n")
    (folder / "wrappers/cdd-start").write_bytes(b"#!/bin/sh\necho start \xff\n")
    (folder / "wrappers/.gitkeep").write_bytes(b"")
    (folder / "wrappers/__init__.py").write_bytes(b"")
    monkeypatch.setattr(resources, "files", lambda _name: folder)
    monkeypatch.chdir(tmp_path)
    return folder


def run(*words: str):
    return CliRunner().invoke(toolbox.main, list(words), catch_exceptions=False)


def placed(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_executables_are_placed_in_a_directory_that_is_made(package, tmp_path):
    result = run("--to", "new/tools")
    assert result.stdout == "new/tools/cdd-init\nnew/tools/cdd-start\n"
    for name in ("cdd-init", "cdd-start"):
        path = tmp_path / "new/tools" / name
        assert path.read_bytes() == (package / "wrappers" / name).read_bytes()
        assert path.stat().st_mode & 0o7777 == 0o755
    assert len(placed(tmp_path / "new/tools")) == 2


def test_the_home_directory_can_be_written_short(package, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run("--to", "~/tools").exit_code == 0
    assert (tmp_path / "tools/cdd-init").exists()


def test_placing_again_is_no_conflict_and_mends_the_mode(package, tmp_path):
    run("--to", "tools")
    (tmp_path / "tools/cdd-init").chmod(0o600)
    assert run("--to", "tools").exit_code == 0
    assert (tmp_path / "tools/cdd-init").stat().st_mode & 0o7777 == 0o755


def test_a_file_that_differs_is_left_alone_and_nothing_is_placed(package, tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/cdd-start").write_bytes(b"mine")
    result = run("--to", "tools")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "tools/cdd-start" in result.stderr and "--force" in result.stderr
    assert placed(tmp_path / "tools") == {"cdd-start": b"mine"}


def test_force_overwrites_and_replaces_a_link_instead_of_following_it(package, tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "tools/cdd-start").symlink_to(tmp_path / "mine")
    (tmp_path / "tools/cdd-init").symlink_to(tmp_path / "nowhere")
    assert run("--to", "tools").exit_code == 1
    assert run("--to", "tools", "--force").exit_code == 0
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert not os.path.islink(tmp_path / "tools/cdd-start") and not os.path.islink(tmp_path / "tools/cdd-init")


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_folder_in_the_way_is_refused(package, tmp_path, force):
    (tmp_path / "tools/cdd-start").mkdir(parents=True)
    result = run("--to", "tools", *force)
    assert result.exit_code == 1 and "is a folder" in result.stderr
    assert not (tmp_path / "tools/cdd-init").exists()


def test_a_file_in_the_directorys_place_is_refused(package, tmp_path):
    (tmp_path / "tools").write_bytes(b"")
    assert "is not a directory" in run("--to", "tools").stderr
    assert run("--to", "").exit_code == 1


@pytest.mark.parametrize("left", ["an empty folder", "no folder"])
def test_an_installation_without_executables_says_so_and_makes_nothing(package, tmp_path, left):
    for path in (package / "wrappers").iterdir():
        path.rmdir() if path.is_dir() else path.unlink()
    if left == "no folder":
        (package / "wrappers").rmdir()
    result = run("--to", "tools")
    assert result.exit_code == 1
    assert "no toolbox executables" in result.stderr
    assert not (tmp_path / "tools").exists()


def test_without_a_directory_it_is_wrong_usage(package):
    assert run().exit_code == 2
