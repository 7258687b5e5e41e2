"""Change sets are found by the paths that they changed, without looking at the others."""

import os
import sqlite3
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haft.storage import Row, StateHome, open_stores
from haft.storage.sqlite.database import Database

ODD = os.fsdecode(b"odd-\xff")


def row(number, workspace="/w", **more):
    facts = {
        "seq": 0, "run": f"r_{number:04}", "workspace": workspace, "area": "/a", "who": "me", "thread": "T",
        "parent": None, "verb": "call", "reverses": (), "engine": "overlay", "state": "committed", "reason": None,
        "at": float(number + 1), "files": 1, "kept": True, "latest": f"r_{number:04}",
    }  # fmt: skip
    return Row(**{**facts, **more})


@pytest.fixture
def ledger(tmp_path):
    home = StateHome(str(tmp_path))
    home.prepare()
    connection = open_stores(home).connect()
    yield connection.ledger
    connection.close()


def names(rows):
    return [int(each.run[2:]) for each in rows]


def test_change_sets_are_found_by_any_of_their_paths_in_the_order_of_the_list(ledger):
    for number in range(30):
        ledger.put(row(number), paths=[f"f{number % 3}", "d/all", ODD])
    ledger.put(row(30, "/other"), paths=["f1"])
    assert names(ledger.touching("/w", ["f1"], limit=3)) == [28, 25, 22]
    assert names(ledger.touching("/w", ["f1", "f2"], after=3, limit=3, newest_first=False)) == [4, 5, 7]
    seqs = {each.run: each.seq for each in ledger.all()}
    assert names(ledger.touching("/w", ["f1"], before=seqs["r_0022"], limit=2)) == [19, 16]
    assert names(ledger.touching("/w", [f"no/{n}" for n in range(600)] + ["f1"], limit=1)) == [28]
    assert names(ledger.touching("/w", [ODD], limit=1)) == [29]
    assert ledger.touching("/nowhere", ["f1"], limit=3) == []
    assert ledger.touched("/w", ["f0", "f1", "d", ODD, "none"], after=seqs["r_0028"]) == {ODD}
    assert ledger.touched("/w", ["f0", "f1", "d/all"], after=seqs["r_0026"]) == {"f0", "f1", "d/all"}


def test_one_that_moves_to_the_end_of_the_list_is_found_there_and_no_longer_where_it_was(ledger):
    ledger.put(row(0, state="held"), paths=["f"])
    ledger.put(row(1), paths=["f"])
    ledger.put(row(0), paths=["f"])
    assert names(ledger.touching("/w", ["f"], limit=9)) == [0, 1]


def test_the_way_to_a_path_is_an_index_and_not_the_whole_list(ledger):
    ledger.put(row(0), paths=["f"])
    asked = []
    database = ledger._connection.database
    rows = database.rows
    database.rows = lambda query, values=(): asked.append((query, values)) or rows(query, values)
    ledger.touching("/w", ["f", "g"], limit=5)
    ledger.touched("/w", ["f", "g"], 0)
    assert len(asked) == 2
    for query, values in asked:
        plan = [each[3] for each in rows(f"EXPLAIN QUERY PLAN {query}", values)]
        assert any("change_paths USING PRIMARY KEY (workspace=? AND path=?" in each for each in plan), plan
        assert not [each for each in plan if each.startswith("SCAN") and "change" in each], plan


def test_change_sets_of_an_earlier_format_are_found_by_the_paths_of_their_runs(tmp_path):
    home = StateHome(str(tmp_path))
    home.prepare()
    database = Database(home.database)
    database.execute("DROP TABLE change_paths")
    database.execute("DROP TABLE workspaces")
    database.execute("DROP TABLE run_hosts")
    database.execute("DROP TABLE request_keys")
    for name in ("change_sets_held", "change_sets_undoable"):
        database.execute(f"DROP INDEX {name}")
    database.execute("PRAGMA user_version = 4")
    database.close()
    connection = sqlite3.connect(home.database)
    columns = [each for each in Row.__dataclass_fields__ if each not in ("seq", "reverses")]
    for each in (row(7), row(8, files=2), row(9, state="held"), row(10, "/other")):
        connection.execute(
            f"INSERT INTO change_sets (reverses, {', '.join(columns)}) VALUES ('[]', {', '.join('?' * len(columns))})",
            [getattr(each, name) for name in columns],
        )
    connection.executemany("INSERT INTO run_paths VALUES (?, ?)", [("f", "r_0007"), ("h", "r_0008")])
    connection.commit()
    connection.close()
    opened = open_stores(home).connect()
    assert names(opened.ledger.touching("/w", ["f"], limit=5)) == [8, 7], (
        "one path of 8 is not known: its host was killed"
    )
    assert names(opened.ledger.touching("/w", ["h"], limit=5)) == [8]
    assert names(opened.ledger.touching("/w", ["f"], limit=1, newest_first=False)) == [7]
    first, second = (opened.ledger.get(run).seq for run in ("r_0007", "r_0008"))
    assert opened.ledger.touched("/w", ["f", "any"], after=first) == {"f", "any"}
    assert opened.ledger.touched("/w", ["f", "any"], after=second) == set()
    assert names(opened.ledger.touching("/other", ["f"], limit=5)) == [10]
    opened.ledger.put(row(9), paths=["g"])
    assert names(opened.ledger.touching("/w", ["g"], limit=5)) == [9, 8]
    assert opened.ledger.touching("/w", [], limit=5) == []
    opened.close()


NAMES = [
    "a", "A", "a/b", "a/B", "a/b/c", "a0", "a.b", "ab", "é", "e\u0301", "\ufffd", ODD, os.fsdecode(b"odd-\xfe"), "%",
    "_", "1", "1.0", "null", "a\nb", "'", '"', "\\", " ", "a ", "\U0001f600",
]  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from(["/w", "/W", "/w/a"]), st.sets(st.sampled_from(NAMES), min_size=1)), max_size=25
    ),
    st.sampled_from(["/w", "/W", "/w/a", "/none"]),
    st.sets(st.sampled_from(NAMES), min_size=1, max_size=5),
    st.integers(0, 25),
    st.sampled_from([None, *range(25)]),
    st.integers(1, 26),
    st.booleans(),
)
@settings(max_examples=60, deadline=None, database=None)
def test_what_the_index_finds_is_what_a_look_at_every_change_set_finds(
    put, workspace, paths, after, before, limit, newest_first
):
    with tempfile.TemporaryDirectory() as directory:
        home = StateHome(directory)
        home.prepare()
        connection = open_stores(home).connect()
        ledger = connection.ledger
        for number, (place, changed) in enumerate(put):
            ledger.put(row(number, place), paths=changed)
        alike = {os.fsencode(path).decode(errors="replace") for path in paths}
        met = [
            (number + 1, {os.fsencode(path).decode(errors="replace") for path in changed} & alike)
            for number, (place, changed) in enumerate(put)
            if place == workspace
        ]
        between = [seq - 1 for seq, shared in met if shared and seq > after and (before is None or seq < before)]
        found = ledger.touching(workspace, paths, after=after, before=before, limit=limit, newest_first=newest_first)
        assert names(found) == (between[::-1] if newest_first else between)[:limit]
        later = {key for seq, shared in met if seq > after for key in shared}
        assert {os.fsencode(path).decode(errors="replace") for path in ledger.touched(workspace, paths, after)} == later
        connection.close()
