"""The MCP programs from npm are there, in the locked versions, with a Node of our own."""

import json
import subprocess

import pytest

import npm_programs
from npm_programs import LISTS


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Nothing is installed yet, and no registry answers."""
    monkeypatch.setattr(npm_programs, "PLACE", tmp_path / "npm")
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    npm_programs.installed.cache_clear()
    yield tmp_path / "npm"
    npm_programs.installed.cache_clear()


def test_each_program_is_installed_in_the_version_that_the_list_names():
    wanted = json.loads((LISTS / "package.json").read_text())["dependencies"]
    names = [name.removeprefix("@modelcontextprotocol/") for name in wanted]
    assert [npm_programs.program(name)[0] for name in names] == [str(npm_programs.node())] * len(names)
    assert {f"@modelcontextprotocol/{name}": npm_programs.version(name) for name in names} == wanted


def test_the_lock_names_no_address_to_download_from():
    lock = json.loads((LISTS / "package-lock.json").read_text())
    assert lock["packages"] and not any("resolved" in entry for entry in lock["packages"].values())
    assert all("integrity" in entry for name, entry in lock["packages"].items() if name)


def test_the_node_of_the_tests_is_new_enough_for_the_suite():
    words = subprocess.run([npm_programs.node(), "--version"], capture_output=True, text=True, check=True).stdout
    assert int(words[1:].split(".")[0]) >= 22


def test_without_a_registry_nothing_half_installed_stays_and_later_tests_do_not_try_again(elsewhere, monkeypatch):
    with pytest.raises(npm_programs.CannotInstall, match=r"npm could not install the MCP programs: .*ECONNREFUSED"):
        npm_programs.installed()
    assert not [path for path in elsewhere.iterdir() if path.is_dir()]
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("tried again"))
    with pytest.raises(npm_programs.CannotInstall):
        npm_programs.installed()
    with pytest.raises(pytest.skip.Exception):
        npm_programs.program("inspector")
