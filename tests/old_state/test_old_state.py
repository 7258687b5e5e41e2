"""A state home that an earlier version wrote is read, undone, applied, approved and verified by this one.

What was made is in `make.py`. It is unpacked where it was made: one test at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import make
from make import HERE, PLACE

VERSION = "0.1.0-before-renaming"
RUNS = json.loads((HERE / f"{VERSION}.json").read_text())

pytestmark = pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="what it changed is root's")


@pytest.fixture
def unpacked():
    with open(f"{PLACE}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield make.unpack
        shutil.rmtree(PLACE, ignore_errors=True)


@pytest.fixture
def haft(warm):
    """A command, and what it prints as JSON."""

    def run(*words, code=0):
        got, out, err = warm.run(words, b"", PLACE / "workspace", make.env())
        assert got == code, err.decode()
        return json.loads(out)

    return run


@pytest.fixture
def ended(unpacked, haft):
    """Calls that ended."""
    unpacked(VERSION)
    return haft


@pytest.fixture
def killed(unpacked, haft):
    """The same, and hosts that were killed."""
    unpacked(f"{VERSION}-killed")
    return haft


def text(name):
    path = PLACE / "workspace" / name
    return path.read_text() if path.exists() else None


def states(haft):
    return {run["id"]: (run["status"], run["outcome"]["changes"]["state"]) for run in haft("log", "--json")}


def test_the_audit_log_is_intact_and_has_the_head_that_it_had(ended):
    verified = ended("audit", "verify", "--json")
    assert (verified["intact"], verified["head"]) == (True, RUNS["head"]["head"])


def test_every_run_is_listed_and_shown(ended):
    found = states(ended)
    assert {name: found[RUNS[name]] for name in ("ended", "failed", "denied", "held", "tried", "rejected")} == {
        "ended": ("done", "committed"),
        "failed": ("error", "none"),
        "denied": ("error", "none"),
        "held": ("error", "held"),
        "tried": ("done", "held"),
        "rejected": ("rejected-by-user", "none"),
    }
    assert found[RUNS["undone"]] == ("done", "undone")
    for run in found:
        assert ended("show", run, "--json")["id"] == run


def test_what_is_held_is_applied_and_dropped(ended):
    ended("changes", "apply", RUNS["held"], "--json")
    ended("changes", "drop", RUNS["tried"], "--json")
    assert (text("half.txt"), text("tried.txt")) == ("half\n", None)


def test_what_was_done_is_undone_and_what_was_undone_is_redone(ended):
    ended("undo", RUNS["ended"], "--json")
    ended("redo", RUNS["undone"], "--json")
    assert (text("a.txt"), text("b.txt"), text("gone.txt")) == ("before\n", None, "gone\n")


def test_what_was_approved_for_always_passes_until_its_file_changes(ended):
    again = ended("tools", "use", "tb__greet", "--who", "you")
    assert (again["status"], again["decision"]["by"]) == ("done", "rule")
    tool = PLACE / "workspace/.agents/tools/greet"
    tool.write_text(tool.read_text() + "# changed\n")
    asked = ended("tools", "use", "tb__greet", "--who", "you", code=3)
    assert asked["status"] == "rejected-by-user"


def test_a_rule_that_was_written_down_still_holds(ended):
    passed = ended("tools", "use", "shell", "--command", "touch allowed.txt")
    assert (passed["status"], text("allowed.txt")) == ("done", "")


def test_a_skill_that_was_activated_is_active(ended):
    assert "notes" in [skill["name"] for skill in ended("skills", "list", "--json") if skill["active"]]


def test_an_executable_that_was_exported_is_still_taken_for_its_tool(ended):
    read = ended("tools", "use", str(PLACE / "exported/read_file"), "--path", "notes.txt")
    assert read["output"] == "buy milk\n"


def test_hosts_that_were_killed_are_cleaned_up_after(killed):
    found = states(killed)
    assert found[RUNS["journalled"]] == ("done", "committed")
    assert [found[RUNS[name]][0] for name in ("killed", "unfinished")] == ["error", "error"]
    assert (text("journalled.txt"), text("killed.txt"), text("unfinished.txt")) == ("j\n", None, None)
    assert killed("audit", "verify", "--json")["intact"]
    killed("undo", RUNS["journalled"], "--json")
    assert text("journalled.txt") is None


def test_a_call_that_waited_for_a_person_is_approved_and_then_passes_once(killed):
    (waiting,) = killed("inbox", "--json")
    assert waiting["run"] == RUNS["pending"]
    killed("approve", waiting["id"], "--json")
    again = killed("tools", "use", "shell", "--command", "echo pending > pending.txt")
    assert (again["status"], text("pending.txt")) == ("done", "pending\n")
