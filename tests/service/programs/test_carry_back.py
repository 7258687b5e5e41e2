"""The private copy of an agent's files, while others use the originals."""

from __future__ import annotations

import pytest

from haft.changes import Owner
from haft.service.programs.carry_back import CarryBack, matches
from haft.service.programs.private_home import PrivateHome
from haft.service.programs.program import AgentFiles


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
    ],
)
def test_patterns(name, pattern, fits):
    assert matches(name, (pattern,)) is fits
