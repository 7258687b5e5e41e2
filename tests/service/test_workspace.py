"""Which directory is the workspace when nobody says so."""

import os

import pytest

from haft.contracts import BadConfig
from haft.service.workspace import find_workspace


@pytest.mark.parametrize("mark", ["haft.toml", "haft.json", ".git"])
def test_the_nearest_marked_directory_upward_is_taken(tmp_path, mark):
    (tmp_path / "project" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "project" / mark).touch()
    (tmp_path / ".git").mkdir()
    assert find_workspace(str(tmp_path / "project" / "deep" / "er"), "/nowhere") == str(tmp_path / "project")


def test_without_a_mark_the_current_directory_is_taken(tmp_path):
    assert find_workspace(str(tmp_path), "/nowhere") == str(tmp_path)


def test_the_root_the_home_directory_and_the_state_home_are_never_taken_by_themselves(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    (home / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert find_workspace(str(home / "project"), "/nowhere") == str(home / "project")
    for place in ("/", str(home)):
        with pytest.raises(BadConfig) as caught:
            find_workspace(place, "/nowhere")
        assert "-w" in caught.value.hint
    with pytest.raises(BadConfig):
        find_workspace(str(tmp_path), str(tmp_path))


def test_a_link_to_the_home_directory_is_the_home_directory(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    os.symlink(home, tmp_path / "link")
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(BadConfig):
        find_workspace(str(tmp_path / "link"), "/nowhere")
