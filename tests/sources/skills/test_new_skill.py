"""A fresh skill, and where it goes."""

import os
import stat

import pytest

from haft.authoring.skills.new_skill import make_place, place_for, write_skill
from haft.contracts import BadUsage, PathEscapes


@pytest.fixture
def here(place):
    return place_for(str(place.workspace), str(place.home), is_global=False)


def test_it_can_be_used_at_once_and_explains_itself(place, here):
    folder = write_skill(here, "my-skill", None, force=False)
    skill = place.skills().get("my-skill")
    assert (skill.folder, skill.provenance, skill.problem) == (folder, "workspace", None)
    text = place.skills().text(skill)
    for word in ("1024", "references/", "tools/", "haft tools make NAME --skill my-skill"):
        assert word in text
    assert skill.tool_folders == (f"{folder}/tools",) and skill.references() == []


@pytest.mark.parametrize(
    "description",
    [
        'Use when: "quoted": \\ and\ttab',
        "- dash",
        "{brace",
        "日本 🍏",
        "# no comment",
        "two\nlines",
        "'",
        "yes",
        "a\u2028b",
    ],
)
def test_any_description_arrives(place, here, description):
    write_skill(here, "one", description, force=False)
    assert place.own()[0].description == " ".join(description.split()) and place.own()[0].is_usable


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "A", "a b", "a_b", "a" * 65, "ä", "a\n", "-h", "--force", "-"]
)
def test_a_name_that_is_none_is_refused(here, name, place):
    with pytest.raises(BadUsage, match="not a valid name for a skill"):
        write_skill(here, name, None, force=False)
    assert place.own() == []


def test_a_description_without_words_or_with_too_many_is_refused(here):
    for description in ("  \n", "x" * 1025):
        with pytest.raises(BadUsage, match="1 to 1024 characters"):
            write_skill(here, "one", description, force=False)


def test_nothing_is_overwritten_and_with_force_only_the_text(place, here):
    folder = place.make(".agents/skills/one", "mine")
    (folder / "notes.md").write_text("kept")
    with pytest.raises(BadUsage, match="exists already"):
        write_skill(here, "one", None, force=False)
    assert (folder / "SKILL.md").read_text() == "mine"
    write_skill(here, "one", None, force=True)
    assert place.own()[0].is_usable and (folder / "notes.md").read_text() == "kept"


def test_the_users_own_place_is_made_where_it_is_missing(place):
    write_skill(place_for("", str(place.home), is_global=True), "one", None, force=False)
    assert [(skill.name, skill.provenance) for skill in place.own()] == [("one", "user")]


def test_a_workspace_cannot_have_it_written_elsewhere(place, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (place.workspace / ".agents").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathEscapes):
        place_for(str(place.workspace), str(place.home), is_global=False)
    (place.workspace / ".agents").unlink()
    here = place_for(str(place.workspace), str(place.home), is_global=False)
    (place.workspace / ".agents/skills/one").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathEscapes):
        write_skill(here, "one", None, force=True)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_home_that_is_no_absolute_path_gets_nothing(place, monkeypatch):
    monkeypatch.chdir(place.home)
    with pytest.raises(BadUsage, match="not an absolute path"):
        place_for("", "home", is_global=True)
    assert list(place.home.iterdir()) == []


def test_directories_made_for_nothing_go_again_and_those_that_were_there_stay(place):
    (place.workspace / ".agents").mkdir()
    with pytest.raises(BadUsage), make_place(str(place.workspace), "", is_global=False) as here:
        write_skill(here, "../x", None, force=False)
    assert [path.name for path in place.workspace.rglob("*")] == [".agents"]


def test_what_is_made_can_be_used_whatever_the_umask(place):
    old = os.umask(0o777)
    try:
        folder = write_skill(place_for(str(place.workspace), "", is_global=False), "one", None, force=False)
    finally:
        os.umask(old)
    made = [folder, f"{folder}/references", f"{folder}/tools", os.path.dirname(folder)]
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in made] == [0o700] * 4
    assert stat.S_IMODE(os.stat(f"{folder}/SKILL.md").st_mode) == 0o600
