"""The package that a program belongs to: as much as is its own, and nothing that a stranger could choose."""

import os

import pytest

from haft.files.packages import NEVER, interpreter_of, package_of

pytestmark = pytest.mark.every_user


@pytest.fixture
def home(tmp_path, monkeypatch):
    path = tmp_path / "person"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    return path


def tool(folder, name="tool"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    return str(folder / name)


@pytest.mark.parametrize("manifest", ["package.json", "pyproject.toml"])
def test_the_nearest_directory_with_a_manifest_is_the_package(manifest, home):
    path = tool(home / "work/outer/inner/tools/deep")
    (home / "work/outer" / manifest).write_text("{}")
    assert package_of(path) == str(home / "work/outer")
    (home / "work/outer/inner" / manifest).write_text("{}")
    assert package_of(path) == str(home / "work/outer/inner")


def test_a_link_belongs_to_the_package_that_it_leads_to(home):
    path = tool(home / "work/own/tools")
    (home / "work/own/package.json").write_text("{}")
    (home / "link").symlink_to(path)
    assert package_of(str(home / "link")) == str(home / "work/own")


def test_a_repository_without_a_manifest_is_no_package_and_nothing_above_it_is(home):
    path = tool(home / "work/repository/tools")
    (home / "work/package.json").write_text("{}")
    assert package_of(path) == str(home / "work")
    (home / "work/repository/.git").mkdir()
    assert package_of(path) is None


@pytest.mark.parametrize("place", NEVER)
def test_a_home_and_what_is_never_taken_whole_of_it_is_no_package(place, home):
    path = tool(home / place / "a/tools")
    (home / place / "package.json").write_text("{}")
    assert package_of(path) is None
    (home / place / "a/package.json").write_text("{}")
    assert package_of(path) == str(home / place / "a")


def test_nothing_that_holds_a_home_is_a_package(home, tmp_path):
    path = tool(tmp_path / "beside/tools")
    (tmp_path / "package.json").write_text("{}")
    assert package_of(path) is None


def test_the_search_stops_where_everyone_may_write(home):
    path = tool(home / "work/open/own/tools")
    (home / "work/open/package.json").write_text("{}")
    assert package_of(path) == str(home / "work/open")
    for mode in (0o777, 0o1777):
        (home / "work/open").chmod(mode)
        assert package_of(path) is None
    (home / "work/package.json").write_text("{}")
    assert package_of(path) is None, "and does not go on above it"


def test_a_manifest_that_is_a_link_does_not_count(home):
    path = tool(home / "work/tools")
    (home / "work/package.json").symlink_to("/etc/hostname")
    assert package_of(path) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("whose", ["the directory", "the manifest"])
def test_what_belongs_to_another_user_than_the_tool_is_not_its_package(whose, home):
    path = tool(home / "work/tools")
    (home / "work/package.json").write_text("{}")
    for each in (home / "work", home / "work/tools", path):
        os.chown(each, 1234, 1234)
    assert package_of(path) == str(home / "work"), "its own, and the manifest is root's"
    os.chown(home / "work" if whose == "the directory" else home / "work/package.json", 4321, 4321)
    assert package_of(path) is None


# Interpreters.


@pytest.fixture
def installed(home):
    """An interpreter as uv or pyenv installs one."""

    def installed(where, name="cpython-3.12.1"):
        place = home / where / name
        for part in ("bin/python3.12", "lib/python3.12/os.py"):
            (place / part).parent.mkdir(parents=True, exist_ok=True)
            (place / part).touch()
        return place

    return installed


def environment(folder, python):
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    (folder / "bin/python3").symlink_to(python)
    (folder / "bin/python").symlink_to("python3")
    return str(folder)


@pytest.mark.parametrize(
    ("where", "variable", "value"),
    [
        (".local/share/uv/python", None, None),
        (".pyenv/versions", None, None),
        ("pythons", "UV_PYTHON_INSTALL_DIR", "pythons"),
        ("env/versions", "PYENV_ROOT", "env"),
        ("data/uv/python", "XDG_DATA_HOME", "data"),
    ],
)
def test_the_installation_behind_an_environment_is_found_and_nothing_beside_it(
    where, variable, value, installed, home, tmp_path
):
    place = installed(where)
    installed(where, "cpython-3.13.0")
    env = {"HOME": str(home)} | ({variable: str(home / value)} if variable else {})
    assert interpreter_of(environment(tmp_path / "venv", place / "bin/python3.12"), env) == [str(place)]


def test_the_name_that_uv_gives_a_minor_version_leads_there_too(installed, home, tmp_path):
    place = installed(".local/share/uv/python")
    minor = place.parent / "cpython-3.12"
    minor.symlink_to(place.name)
    found = interpreter_of(environment(tmp_path / "venv", minor / "bin/python3.12"), {"HOME": str(home)})
    assert sorted(found) == [str(minor), str(place)]


@pytest.mark.parametrize("target", [".ssh/id/bin/python3.12", ".local/share/uv/python/fake/bin/python3.12", ".ssh/key"])
def test_an_environment_that_leads_elsewhere_shows_nothing(target, home, tmp_path):
    (home / target).parent.mkdir(parents=True)
    (home / target).touch()
    assert interpreter_of(environment(tmp_path / "venv", home / target), {"HOME": str(home)}) == []


def test_a_link_among_the_installations_that_leads_out_of_them_shows_nothing(installed, home, tmp_path):
    elsewhere = installed("secret", "place")
    (home / ".pyenv/versions").mkdir(parents=True)
    (home / ".pyenv/versions/3.12").symlink_to(elsewhere)
    link = home / ".pyenv/versions/3.12/bin/python3.12"
    assert interpreter_of(environment(tmp_path / "venv", link), {"HOME": str(home)}) == []


def test_a_home_named_as_the_place_of_interpreters_shows_nothing(installed, home, tmp_path):
    place = installed("", "cpython-3.12.1")
    env = {"HOME": str(home), "UV_PYTHON_INSTALL_DIR": str(home)}
    assert interpreter_of(environment(tmp_path / "venv", place / "bin/python3.12"), env) == []
