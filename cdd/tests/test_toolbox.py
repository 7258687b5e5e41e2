from __future__ import annotations

import ast
import os
import sys
from importlib import resources
from typing import Any

import pytest
from click.testing import CliRunner

from cdd import cli, toolbox


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


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A `cdd` beside the `cdd-toolbox` that was called."""
    folder = tmp_path / "it's a bin"
    folder.mkdir()
    (folder / "cdd").write_text("#!/bin/sh\n")
    (folder / "cdd").chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(folder / "cdd-toolbox")])
    monkeypatch.chdir(tmp_path)
    return folder / "cdd"


def command_of(path) -> dict[str, Any]:
    """What an executable says of the command that it runs."""
    (found,) = [
        node.value
        for node in ast.parse(path.read_bytes()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMMAND"
    ]
    return ast.literal_eval(found)


def test_pinned_executables_run_the_program_beside_and_are_the_same_otherwise(program, tmp_path):
    assert run("--to", "tools").exit_code == 0
    assert run("--to", "pinned", "--pin").exit_code == 0
    assert placed(tmp_path / "tools").keys() == placed(tmp_path / "pinned").keys() != set()
    for path in (tmp_path / "tools").iterdir():
        one, other = command_of(path), command_of(tmp_path / "pinned" / path.name)
        assert (one["program"], other["program"]) == (["cdd"], [str(program)])
        assert {**one, "program": None} == {**other, "program": None}


def test_pinning_what_was_placed_unpinned_needs_force(program, tmp_path):
    run("--to", "tools")
    before = placed(tmp_path / "tools")
    assert "--force" in run("--to", "tools", "--pin").stderr
    assert placed(tmp_path / "tools") == before
    assert run("--to", "tools", "--pin", "--force").exit_code == 0
    assert run("--to", "tools", "--pin").exit_code == 0


def test_where_no_program_is_beside_the_one_on_path_is_pinned(program, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "cdd-toolbox")])
    monkeypatch.setenv("PATH", str(program.parent))
    assert run("--to", "pinned", "--pin").exit_code == 0
    assert command_of(tmp_path / "pinned/cdd-init")["program"] == [str(program)]
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("--to", "lost", "--pin")
    assert result.exit_code == 1 and "cdd was not found" in result.stderr
    assert not (tmp_path / "lost").exists()


def test_every_command_has_an_executable_that_takes_what_the_command_takes(program, tmp_path):
    run("--to", "tools")
    found = {path.name: command_of(path) for path in (tmp_path / "tools").iterdir()}
    assert found.keys() == {f"cdd-{name}" for name in cli.main.commands}
    for name, command in cli.main.commands.items():
        told = found[f"cdd-{name}"]
        assert (told["name"], told["words"]) == (f"cdd-{name}", [name])
        taken = {one.name: one.required for one in command.params if one.expose_value}
        assert {one["name"]: one["required"] for one in told["parameters"]} == taken
