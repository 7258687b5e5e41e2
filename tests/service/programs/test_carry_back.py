"""The private copy of an agent's files, while others use the originals."""

from __future__ import annotations

import os

import pytest

from haft.changes import Owner
from haft.service.programs.carry_back import CarryBack, matches, parsed
from haft.service.programs.private_home import PrivateHome
from haft.service.programs.program import AgentFiles
from haft.values import replace


@pytest.fixture
def private(tmp_path):
    home, directory = tmp_path / "home", tmp_path / "run"
    (home / ".agent").mkdir(parents=True)
    directory.mkdir()
    (home / ".agent" / "history.jsonl").write_text("one\n")
    (home / ".agent" / "login").write_text("old")
    agent = AgentFiles("Agent", ((str(home / ".agent"), ".agent"),), (".agent/history.jsonl", ".agent/login"))
    made = PrivateHome(str(directory), str(home), agent)
    made.make()
    return made, home / ".agent", directory / "home" / ".agent"


def carry(made):
    def nothing_is_held(_directory):
        raise AssertionError

    return CarryBack(made, Owner("r_0", "me", "T"), nothing_is_held).run()


def test_lines_that_others_added_meanwhile_stay(private):
    made, original, copy = private
    with (copy / "history.jsonl").open("a") as file:
        file.write("mine\n")
    with (original / "history.jsonl").open("a") as file:
        file.write("other\n")
    carry(made)
    assert (original / "history.jsonl").read_text() == "one\nother\nmine\n"


def test_the_newer_login_counts(private):
    made, original, copy = private
    (copy / "login").write_text("mine")
    (original / "login").write_text("newer")
    carry(made)
    assert (original / "login").read_text() == "newer"
    (copy / "login").write_text("newest")
    carry(made)
    assert (original / "login").read_text() == "newest"


def test_nothing_happens_if_nothing_changed(private):
    made, original, _copy = private
    (original / "login").write_text("changed by others")
    assert carry(made).carried == ()
    assert (original / "login").read_text() == "changed by others"


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        (".a/b/c", ".a/b/**", True),
        (".a/b", ".a/b/**", False),
        (".a/bc/d", ".a/b/**", False),
        (".a/x.sqlite-wal", ".a/*.sqlite*", True),
        (".a/b/x.sqlite", ".a/*.sqlite*", False),
        (".a/one/memory/x", ".a/*/memory/**", True),
        (".a/one/two/memory/x", ".a/*/memory/**", False),
    ],
)
def test_patterns(name, pattern, fits):
    assert matches(name, (pattern,)) is fits


@pytest.mark.parametrize("keys", [(), ("hooks", "secret")])
def test_a_link_in_the_copy_is_never_followed(private, tmp_path, keys):
    made, original, copy = private
    secret = tmp_path / "secret.json"
    secret.write_text('{"secret": 1}')
    made.agent = replace(made.agent, deciding_keys={".agent/keys.json": keys})
    (copy / "keys.json").symlink_to(secret)
    with pytest.raises(AssertionError):  # The link itself would be held.
        carry(made)
    assert secret.read_text() == '{"secret": 1}'
    assert not (original / "keys.json").exists()


def test_a_link_in_place_of_the_whole_copy_leads_nowhere(private, tmp_path):
    made, original, copy = private
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "login").write_text("secret")
    copy.rename(tmp_path / "moved")
    copy.symlink_to(secrets)
    found = carry(made)
    assert (found.carried, found.held, found.problem) == ((), (), None)
    assert sorted(each.name for each in original.iterdir()) == ["history.jsonl", "login"]
    assert (original / "login").read_text() == "old"


def test_a_fifo_in_the_copy_holds_nothing_up(private):
    made, original, copy = private
    made.agent = replace(made.agent, deciding_keys={".agent/keys.json": ("hooks",)})
    os.mkfifo(copy / "keys.json")
    (copy / "history.jsonl").unlink()
    os.mkfifo(copy / "history.jsonl")
    (copy / "login").write_text("refreshed")
    assert carry(made).carried == (".agent/login",)
    assert (original / "login").read_text() == "refreshed"
    assert (original / "history.jsonl").read_text() == "one\n"


def test_a_file_that_cannot_be_written_back_does_not_stop_the_others(private):
    made, original, copy = private
    (copy / "history.jsonl").write_text("one\nmine\n")
    (copy / "login").write_text("refreshed")
    (original / "history.jsonl").unlink()
    (original / "history.jsonl").mkdir()
    found = carry(made)
    assert found.carried == (".agent/login",)
    assert found.problem is not None and "history.jsonl" in found.problem


def test_json_that_is_nested_too_deep_is_no_object():
    assert parsed(b'{"a":' * 200_000) is None


def test_files_that_run_later_are_neither_carried_nor_held_if_the_agent_makes_them_again(private):
    made, original, copy = private
    made.agent = replace(made.agent, carried=(".agent/**",), dropped=(".agent/bin/**",))
    (copy / "bin").mkdir()
    (copy / "bin" / "rg").write_text("echo planted")
    found = carry(made)
    assert (found.carried, found.held) == ((), ())
    assert not (original / "bin").exists()


def test_changes_outside_the_home_directory_are_not_staged_elsewhere(tmp_path):
    home, outside, directory = tmp_path / "a" / "b" / "home", tmp_path / "outside", tmp_path / "run"
    for each in (home, outside, directory):
        each.mkdir(parents=True)
    (outside / "settings").write_text("old")
    made = PrivateHome(str(directory), str(home), AgentFiles("Agent", ((str(outside), ".agent"),)))
    made.make()
    (directory / "0" / "outside" / "settings").write_text("new")
    found = carry(made)
    assert found.held == ()
    assert found.problem is not None and "outside the home directory" in found.problem
    assert (outside / "settings").read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "outside", "run"]
