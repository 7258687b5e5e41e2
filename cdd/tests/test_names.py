"""Names that cannot be tracks are refused by every command, before anything is read or written."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd.names import checked
from cdd.refusals import Refused

BAD = {
    "parent": "../x",
    "separator": "a/b",
    "backslash": "a\\b",
    "empty": "",
    "long": "a" * 300,
    "one-too-long": "a" * 101,
    "too-many-bytes": "字" * 90,
    "newline": "a\nb",
    "escape": "\x1b[31m",
    "nul": "a\0b",
    "delete": "a\x7f",
    "c1": "a\x9b",
    "line-separator": "a\u2028b",
    "turned-round": "a\u202eb",
    "surrogate": "a\udcff",
    "dots": "..",
    "dot": ".",
    "hidden": ".a",
    "inner-dots": "a..b",
    "last-dot": "a.",
    "dash": "-a",
    "space-first": " a",
    "space-last": "a ",
    "space-alone": " ",
    "no-break-space": "a\u00a0b",
    "absolute": "/tmp",
    "star": "*",
}
CALLS = {
    "start": ["start", "--", "NAME"],
    "recite": ["recite", "--", "NAME"],
    "log": ["log", "--", "NAME", "message"],
    "log-from-input": ["log", "--", "NAME"],
    "archive": ["archive", "--", "NAME"],
    "view": ["view", "--", "NAME"],
    "view-archived": ["view", "--archived", "--", "NAME"],
    "view-inbox": ["view", "--inbox", "--", "NAME"],
    "view-raw": ["view", "--raw", "--plan", "--", "NAME"],
    "delete": ["delete", "--yes", "--", "NAME"],
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_bad_names_are_refused_by_every_command_and_nothing_is_written(cdd, call):
    for state in ("nothing", "a workspace"):
        if state == "a workspace":
            cdd.done("init")
            cdd.write("x/plan.md", "")
        for name in BAD.values():
            told = cdd.refused(*(name if word == "NAME" else word for word in call), given="message")
            assert "cannot be a track's name" in told and "use letters" in told
            assert "\x1b" not in told and len(told) < 400


def test_a_bad_name_as_another_process_gets_it_is_refused(cdd):
    for name in ("../x", "a/b", "", "a" * 300, "a\x1bb"):
        result = cdd.process("start", name)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: ")
    assert cdd.everything() == {}


@pytest.mark.parametrize(
    "name", ["a", "add-login", "v2.1_cleanup", "_x", "7", "größe", "ログイン", "हिन्दी", "a" * 100, "a b"]
)
def test_letters_and_digits_of_any_script_are_names(cdd, name):
    cdd.done("start", name)
    assert name in cdd.done("view", "--raw").splitlines()
    cdd.done("delete", name)


def test_a_track_whose_name_has_spaces_lives_as_any_other(cdd):
    told = cdd.done("start", "add the login")
    assert "cdd recite 'add the login'" in told
    assert "already" in (refused := cdd.refused("start", "add the login")) and "`cdd recite 'add the login'`" in refused
    assert "`cdd recite 'add the login'`" in cdd.done("recite", "add the login")
    cdd.done("log", "add the login", "one")
    assert "] one" in cdd.done("view", "add the login", "--log")
    assert "`cdd recite 'add the login'`" in cdd.refused("archive", "add the login")
    cdd.track("add the login", "plan.md").write_text("- [x] a\n")
    assert "cdd archive 'add the login'" in cdd.done("recite", "add the login")
    assert "_add the login after" in cdd.done("archive", "add the login")
    assert "`cdd view 'add the login' --archived`" in cdd.refused("recite", "add the login")
    assert "- [x] a" in cdd.done("view", "add the login", "--archived")
    assert "`cdd start 'b c'`" in cdd.refused("delete", "b c")


def test_a_name_is_the_same_however_it_is_composed(cdd):
    cdd.done("start", unicodedata.normalize("NFD", "größe"))
    assert "already" in cdd.refused("start", unicodedata.normalize("NFC", "größe"))


@given(st.text(max_size=120))
def test_a_name_that_passes_is_harmless(name):
    try:
        word = checked(name)
    except Refused:
        return
    assert word and not word.startswith((".", "-")) and ".." not in word
    assert word.isprintable() and not set(word) & set("/\\\t\n\"'$`*?;&|<>")
    assert word.strip() == word
    assert len(f"20260101000000_{word}".encode()) <= 255
    assert checked(word) == word
