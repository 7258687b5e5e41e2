"""Which templates lie in a directory, and removing one of them."""

import os

import pytest

from haft.authoring.studio.installer import install
from haft.authoring.studio.remover import find_template, remove
from haft.authoring.studio.template_folders import problems_of, templates_in
from haft.contracts import BadUsage, HaftError


@pytest.fixture
def filled(zip_of, make, place):
    """One for everybody, one of a workflow with the same name, and a plain folder."""
    install(str(zip_of()), str(place))
    install(str(zip_of()), str(place), workflow="W")
    make("plain_one").rename(place / "plain_one")
    (place / "notes").mkdir()
    (place / ".hidden").mkdir()
    (place / "README.md").touch()
    return place


def test_installed_and_plain_templates_are_found(filled):
    found = templates_in(str(filled))
    installed = {(one.name, one.workflow, one.slug) for one in found if one.id is not None}
    assert installed == {("JSON Reader", None, "json_reader"), ("JSON Reader", "W", "json_reader")}
    (plain,) = [one for one in found if one.id is None]
    assert (plain.name, plain.workflow) == ("plain one", None)
    assert templates_in(plain.folder) == [plain], "a template is the only one in itself"
    assert templates_in(str(filled / "none")) == []


def test_problems_are_errors_of_the_check_and_names_that_are_taken(filled, make):
    found = templates_in(str(filled))
    assert [problems_of(one, found) for one in found] == [[], [], []]
    (filled / "plain_one/tool.py").write_text("def (")
    make("Plain_One").rename(filled / "Plain_One")
    found = templates_in(str(filled))
    problems = next(problems_of(one, found) for one in found if one.folder.endswith("plain_one"))
    assert problems[0].startswith("python-parse: ") and problems[-1] == f"{filled}/Plain_One has the same name"


def test_a_template_is_chosen_by_name_slug_folder_or_path(filled):
    places = [str(filled)]
    plain = str(filled / "plain_one")
    for word in ("plain one", "plain_one", "Plain One", plain):
        assert find_template(word, places).folder == plain
    with pytest.raises(BadUsage, match="`JSON Reader` is the name of several templates: "):
        find_template("JSON Reader", places)
    assert find_template("JSON Reader", places, workflow="W").workflow == "W"
    assert find_template(plain, []).folder == plain, "a path is enough"


def test_what_is_no_template_stays(filled, tmp_path, monkeypatch):
    with pytest.raises(BadUsage, match="is not a template"):
        find_template(str(filled / "notes"), [str(filled)])
    with pytest.raises(BadUsage, match="is not a template"):
        find_template(str(filled / "README.md"), [str(filled)])
    with pytest.raises(BadUsage, match="does not exist"):
        find_template(str(filled / "none"), [str(filled)])
    with pytest.raises(BadUsage, match="is not of the workflow `V`"):
        find_template(str(filled / "plain_one"), [], workflow="V")
    with pytest.raises(BadUsage, match="there is no template called `plain tow`") as caught:
        find_template("plain tow", [str(filled)])
    assert caught.value.hint == "did you mean `plain one`?"
    monkeypatch.chdir(filled)
    with pytest.raises(BadUsage, match="there is no template called `plain_one`") as caught:
        find_template("plain_one", [])
    assert "`./plain_one`" in caught.value.hint


def test_removing_takes_the_folder_and_nothing_that_it_leads_to(filled, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/x").touch()
    (filled / "plain_one/link").symlink_to(tmp_path / "precious")
    before = set(os.listdir(filled))
    remove(find_template("plain one", [str(filled)]))
    assert set(os.listdir(filled)) == before - {"plain_one"}
    assert (tmp_path / "precious/x").exists()


def test_a_link_to_a_template_goes_alone(filled, make):
    elsewhere = make("elsewhere")
    (filled / "elsewhere").symlink_to(elsewhere)
    remove(find_template("elsewhere", [str(filled)]))
    assert not os.path.lexists(filled / "elsewhere") and (elsewhere / "tool.py").exists()


def test_what_holds_the_workspace_stays(filled):
    workspace = filled / "plain_one" / "inner"
    workspace.mkdir()
    with pytest.raises(BadUsage, match="was not removed"):
        remove(find_template("plain one", [str(filled)]), keeping=[str(workspace)])
    assert workspace.exists()


def test_one_that_cannot_be_moved_away_is_as_before(filled, monkeypatch):
    def fail(*_, **__):
        raise OSError(13, "Permission denied")

    one = find_template("plain one", [str(filled)])
    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(HaftError, match="was not removed"):
        remove(one)
    assert (filled / "plain_one/tool.py").exists() and not [n for n in os.listdir(filled) if n.startswith(".haft")]
