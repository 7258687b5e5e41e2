from __future__ import annotations

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd import files
from cdd.decisions import Entry, entries, entry_of, log
from cdd.refusals import Refused
from cdd.tracks import Track

MOMENT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
LINES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(
        st.sampled_from(["[2020-01-01 00:00:00] x", "    ", "\n", "\r\n", "\x85", "\u2028", "\x0b", "a", " ", "# b"])
    ).map("".join),
)


@given(st.lists(LINES, max_size=5))
def test_entries_come_back_as_they_were_logged_each_as_one(messages):
    logged, expected = b"# Decisions\n\n", []
    for message in messages:
        lines = message.strip().splitlines()
        if lines:
            logged += entry_of(MOMENT, message)
            expected.append(Entry("2026-03-01 09:30:00", "\n".join(lines)))
        else:
            with pytest.raises(Refused):
                entry_of(MOMENT, message)
    assert entries(logged.decode()) == expected


def test_what_a_person_wrote_between_entries_is_no_part_of_them():
    text = "# D\n[2026-01-01 00:00:00] a\nby hand\n    indented\n[2026-01-01 00:00:01] b\n"
    assert [entry.message for entry in entries(text)] == ["a", "b"]


def test_an_entry_begins_a_line_even_where_the_last_one_was_not_ended(cdd):
    cdd.done("start", "a")
    cdd.track("a", "decisions.md").write_text("by hand")
    cdd.done("log", "a", "x")
    assert cdd.track("a", "decisions.md").read_text().startswith("by hand\n[")


def test_a_log_that_was_removed_begins_anew(cdd):
    cdd.done("start", "a")
    cdd.track("a", "decisions.md").unlink()
    cdd.done("log", "a", "x")
    assert [entry.message for entry in entries(cdd.track("a", "decisions.md").read_text())] == ["x"]


def test_no_entry_is_lost_or_torn_when_many_log_at_once(cdd):
    cdd.done("start", "a")
    cdd.track("a", "decisions.md").write_text("not ended")
    track = Track("a", str(cdd.track("a")))
    wanted = [f"{number} " + "ab" * 3000 + "\nsecond line" for number in range(60)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda message: log(track, message), wanted))
    found = [entry.message for entry in entries(cdd.track("a", "decisions.md").read_text())]
    assert sorted(found) == sorted(wanted)


def test_two_processes_that_log_at_once_both_arrive(cdd):
    cdd.done("start", "a")
    command = [sys.executable, "-m", "cdd", "log", "a"]
    running = [subprocess.Popen([*command, f"from {one}"], cwd=cdd.path, stdout=subprocess.PIPE) for one in range(4)]
    assert [(process.communicate(timeout=60), process.returncode)[1] for process in running] == [0] * 4
    found = [entry.message for entry in entries(cdd.track("a", "decisions.md").read_text())]
    assert sorted(found) == [f"from {one}" for one in range(4)]


def test_an_entry_that_did_not_fit_on_the_disk_leaves_no_piece(cdd, monkeypatch):
    cdd.done("start", "a")
    real, written = os.write, []

    def full(descriptor: int, content: bytes) -> int:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(real(descriptor, content[:5]))
        return written[0]

    monkeypatch.setattr(files.os, "write", full)
    told = cdd.refused("log", "a", "x" * 100)
    assert written and "No space left" in told
