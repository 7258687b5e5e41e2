"""`haft tools test --record RUN` and `--record-session DIR`, as people type them."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.takes_turns


def last_run(haft):
    return haft("log", "--json").json[0]["id"]


def test_a_run_is_recorded_and_its_scenario_passes(haft):
    haft("tools", "use", "edit_file", "--path", "a.txt", "--old_string", "two", "--new_string", "2", "--approve")
    said = haft("tools", "test", "--record", last_run(haft)[:14], "--to", "edit.scenario.yaml")
    assert (said.code, said.out) == (0, f"{haft.workspace}/edit.scenario.yaml\n")
    assert said.err == ""
    assert "old_string: two" in (haft.workspace / "edit.scenario.yaml").read_text()
    replay = haft.start("tools", "test", "edit.scenario.yaml")  # Its worker processes need a process from nothing.
    replay.communicate()
    assert replay.returncode == 0


def test_what_cannot_be_recorded_is_said_with_the_next_step(haft):
    haft("tools", "use", "shell", "--command", "cat $(echo a*.txt)", "--approve")
    refused = haft("tools", "test", "--record", last_run(haft))
    assert (refused.code, refused.out) == (1, "")
    assert "a replay of it did something else" in refused.err
    assert "`--files GLOB` adds files" in refused.err
    noted = haft("tools", "test", "--record", last_run(haft), "--files", "a.*", "--to", "noted.scenario.yaml").err
    assert "note: the tool may read files that its arguments do not name" in noted
    added = haft("tools", "test", "--record", last_run(haft), "--files", "a.*", "--json").json
    assert (added["tool"], added["run"]) == ("shell", last_run(haft))
    assert haft("tools", "test", "--files", "a.*").code == 2
    assert haft("tools", "test", "--record", "r_nosuchrun").code == 2


def test_a_session_records_every_call_until_it_is_interrupted(haft):
    session = haft.start("tools", "test", "--record-session", "recorded", stderr=subprocess.PIPE)
    assert session.stderr.readline().startswith(b"recording calls in ")
    edit = ("tools", "use", "edit_file", "--path", "a.txt", "--approve", "--old_string")
    haft(*edit, "two", "--new_string", "2")
    first = session.stdout.readline().decode().strip()
    for _ in range(2):
        haft("tools", "use", "read_file", "--path", "a.txt")
    haft("tools", "use", "shell", "--command", "cat $(echo a*.txt)", "--approve")
    second = session.stdout.readline().decode().strip()
    said = b""
    while b"did something else" not in said:
        said += session.stderr.readline()
    session.send_signal(signal.SIGINT)
    said += session.communicate()[1]
    assert session.returncode == 0
    assert [os.path.dirname(each) for each in (first, second)] == [f"{haft.workspace}/recorded"] * 2
    assert "tool: edit_file" in Path(first).read_text()
    assert "tool: read_file" in Path(second).read_text()
    assert b"was not recorded: an equal scenario was recorded before" in said
    assert said.endswith(b"2 scenarios were recorded\n")


def test_options_of_recordings_are_checked(haft):
    for words in (
        ("--to", "x.yaml"),
        ("--record", "r_1", "--record-session", "x"),
        ("--record", "r_1", "path"),
        ("--record", "r_1", "--watch"),
        ("--record-session", "x", "-k", "a"),
    ):
        said = haft("tools", "test", *words)
        assert (said.code, said.out) == (2, "")
