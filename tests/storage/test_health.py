"""The health of the database: a small one is checked as a whole, of a large one the newest rows."""

from haft.storage import StateHome
from haft.storage.sqlite import health
from haft.storage.sqlite.database import Database


def test_a_large_database_is_not_read_as_a_whole_and_that_is_said(tmp_path, monkeypatch):
    path = str(tmp_path / "haft.db")
    Database(path).close()
    asked = []
    rows = Database.rows
    monkeypatch.setattr(
        Database, "rows", lambda self, query, values=(): asked.append(query) or rows(self, query, values)
    )
    whole = health.health_of(StateHome(str(tmp_path)))
    assert (whole.is_sound, whole.summary.endswith("WAL")) == (True, True)
    assert "PRAGMA quick_check(1)" in asked
    asked.clear()
    monkeypatch.setattr(health, "MAX_CHECKED", 1000)
    large = health.health_of(StateHome(str(tmp_path)))
    assert large.is_sound
    assert "of each table the newest 1000 rows were read" in large.summary
    assert not [query for query in asked if "check" in query]
    selects = [query for query in asked if query.startswith("SELECT * FROM")]
    assert len(selects) >= 8
    database = Database(path)
    for query in selects:
        plan = [each[3] for each in rows(database, f"EXPLAIN QUERY PLAN {query}")]
        assert not [each for each in plan if "TEMP B-TREE" in each], (query, plan)
    database.close()
