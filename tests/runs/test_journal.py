"""A journal: whole lines or none, and every order of rotation."""

import os
from pathlib import Path

from haft.contracts import HostId
from haft.runs import Journal
from haft.runs.journal import journal_paths, read_journal

HOST = HostId("h_test")


def test_lines_come_back_in_order_across_rotations(home, entry):
    journal = Journal(home.hosts, HOST)
    entries = [entry() for _ in range(6)]
    for number, one in enumerate(entries):
        journal.append(one.line)
        if number % 2:
            assert journal.rotate() is not None
    assert journal.rotate() is None
    assert [one.run for path in journal_paths(home.hosts, HOST) for one in read_journal(path)] == [
        one.run for one in entries
    ]


def test_a_torn_line_is_ignored_wherever_it_is_torn(home, entry):
    journal = Journal(home.hosts, HOST)
    first, second = entry(), entry()
    journal.append(first.line)
    journal.append(second.line)
    path = journal.rotate()
    whole = Path(path).read_bytes()
    for size in range(len(first.line), len(whole)):
        os.truncate(path, 0)
        with open(path, "wb") as file:
            file.write(whole[:size])
        assert [one.run for one in read_journal(path)] == [first.run]


def test_journals_of_other_hosts_are_not_taken_for_ones_own(home, entry):
    for host in ("h_1", "h_2"):
        journal = Journal(home.hosts, HostId(host))
        journal.append(entry().line)
        journal.rotate()
    assert len(journal_paths(home.hosts)) == 2
    assert len(journal_paths(home.hosts, HostId("h_1"))) == 1


def test_a_state_home_with_odd_characters_in_its_name_has_journals_too(tmp_path, entry):
    hosts = tmp_path / "[odd] *?"
    hosts.mkdir()
    journal = Journal(str(hosts), HOST)
    journal.append(entry().line)
    assert len(journal_paths(str(hosts))) == 1
    journal.rotate()
