"""Which directory is the workspace when nobody says so."""

import os
import tempfile
from pathlib import Path

import pytest

from haft.config import workspace
from haft.config.trust_store import trust
from haft.config.workspace import find_workspace
from haft.contracts import BadConfig

BOB = 65533
NOBODY = 65534
by_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture(autouse=True)
def nothing_above(tmp_path, monkeypatch):
    """Let the search end below the directory of the test: above it, there may be workspaces of others."""
    seen = workspace._is_marked
    bases = (str(tmp_path), "/var/tmp/")
    monkeypatch.setattr(workspace, "_is_marked", lambda place: place.startswith(bases) and seen(place))


def repository(directory: Path) -> None:
    """Make what marks a git repository."""
    (directory / ".git").mkdir()
    (directory / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


@pytest.mark.parametrize("mark", ["haft.toml", "haft.json", ".git"])
def test_the_nearest_marked_directory_upward_is_taken(tmp_path, mark):
    (tmp_path / "project" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "project" / mark).touch()
    repository(tmp_path)
    assert find_workspace(str(tmp_path / "project" / "deep" / "er"), "/nowhere") == str(tmp_path / "project")


def test_without_a_mark_the_current_directory_is_taken(tmp_path):
    assert find_workspace(str(tmp_path), "/nowhere") == str(tmp_path)


def test_a_git_without_a_repository_is_no_mark(tmp_path):
    inner = tmp_path / "project" / "below"
    (inner / ".git").mkdir(parents=True)
    repository(tmp_path / "project")
    assert find_workspace(str(inner), "/nowhere") == str(tmp_path / "project")
    (inner / ".git" / "HEAD").symlink_to("refs/heads/main")
    assert find_workspace(str(inner), "/nowhere") == str(inner)


@pytest.mark.every_user
def test_an_empty_git_above_is_not_even_named(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / ".git").mkdir()
    tmp_path.chmod(0o1777)
    assert told(tmp_path) == (str(tmp_path / "below"), [])


def test_the_root_the_home_directory_and_the_state_home_are_never_taken_by_themselves(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    repository(home)
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


# Whose a workspace is.


def marked(directory: Path, mark: str = "haft.toml") -> Path:
    (directory / "below").mkdir(parents=True)
    (directory / mark).touch()
    return directory


def told(directory: Path, home: str = "/nowhere") -> tuple[str, list[str]]:
    """The workspace below a directory, and what was said of those that do not count."""
    strangers = []
    return find_workspace(str(directory / "below"), home, strangers.append), [each.sentence() for each in strangers]


@by_root
@pytest.mark.parametrize("mark", ["haft.toml", "haft.json", ".git"])
@pytest.mark.parametrize("whose", ["mark", "directory"])
def test_a_marker_that_is_not_the_persons_or_in_a_directory_that_is_not_is_passed_over_and_named(tmp_path, mark, whose):
    place = marked(tmp_path / "place", mark)
    theirs = place / mark if whose == "mark" else place
    os.chown(theirs, BOB, BOB)
    found, (said,) = told(place)
    assert found == str(place / "below")
    assert said.endswith(f"{theirs} belongs to uid {BOB}, not to you or root")


@by_root
@pytest.mark.parametrize("name", [".agents", ".agents/tools", ".agents/skills", ".claude", ".claude/skills"])
def test_a_workspace_of_the_persons_own_in_which_others_put_tools_or_skills_does_not_count(tmp_path, name):
    place = marked(tmp_path / "place")
    (place / name).mkdir(parents=True)
    os.chown(place / name, BOB, BOB)
    found, (said,) = told(place)
    assert found == str(place / "below") and f"{place / name} belongs" in said


@by_root
def test_of_a_link_both_it_and_what_it_leads_to_must_be_the_persons(tmp_path):
    (tmp_path / "theirs").touch()
    os.chown(tmp_path / "theirs", BOB, BOB)
    place = tmp_path / "place"
    (place / "below").mkdir(parents=True)
    (place / "haft.toml").symlink_to(tmp_path / "theirs")
    assert told(place)[0] == str(place / "below")
    (place / "haft.toml").unlink()
    (tmp_path / "ours").touch()
    (place / "haft.toml").symlink_to(tmp_path / "ours")
    assert told(place) == (str(place), [])
    os.lchown(place / "haft.toml", BOB, BOB)
    assert told(place)[0] == str(place / "below")


@pytest.mark.every_user
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_what_everybody_can_write_does_not_count(tmp_path, mode):
    place = marked(tmp_path / "place")
    assert told(place) == (str(place), [])
    place.chmod(mode)
    assert told(place) == (
        str(place / "below"),
        [f"haft does not use the workspace {place}: {place} can be written by every user"],
    )
    place.chmod(0o775)
    assert told(place) == (str(place), [])
    (place / "haft.toml").chmod(0o666)
    assert told(place)[0] == str(place / "below")


@by_root
def test_the_search_goes_on_above_a_workspace_that_does_not_count(tmp_path):
    outer = marked(tmp_path / "outer")
    inner = marked(outer / "below" / "inner")
    os.chown(inner, BOB, BOB)
    found, (said,) = told(inner)
    assert found == str(outer) and str(inner) in said
    assert find_workspace(str(inner), "/nowhere") == str(outer)


@by_root
def test_the_current_directory_of_someone_else_is_not_taken_with_what_it_brings(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    os.chown(place, BOB, BOB)
    assert find_workspace(str(place), "/nowhere") == str(place), "it brings nothing"
    repository(place)
    assert find_workspace(str(place), "/nowhere") == str(place), "that marks, and brings nothing"
    (place / ".agents" / "tools").mkdir(parents=True)
    with pytest.raises(BadConfig, match=f"{place} belongs to uid {BOB}, not to you or root") as caught:
        find_workspace(str(place), "/nowhere")
    assert f"`-w {place}`" in caught.value.hint and f"`haft trust {place}`" in caught.value.hint


@by_root
def test_a_trusted_workspace_counts_as_long_as_its_directory_has_the_same_owner(tmp_path):
    place = marked(tmp_path / "place")
    os.chown(place, BOB, BOB)
    trust(str(tmp_path / "home"), str(place), None, "me")
    assert told(place, str(tmp_path / "home")) == (str(place), [])
    os.chown(place, NOBODY, NOBODY)
    assert told(place, str(tmp_path / "home"))[0] == str(place / "below")


@by_root
def test_for_an_ordinary_user_roots_files_count_and_those_of_others_do_not():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        base = Path(made)
        base.chmod(0o755)
        places = {owner: marked(base / str(owner)) for owner in (0, NOBODY, BOB)}
        for owner, place in places.items():
            for path in (place / "haft.toml", place / "below", place):
                os.chown(path, owner, owner)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setresuid(NOBODY, NOBODY, NOBODY)
            counts = [owner for owner, place in places.items() if told(place)[0] == str(place)]
            os.write(writing, repr(counts).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with open(reading) as said:
            assert said.read() == repr([0, NOBODY])
