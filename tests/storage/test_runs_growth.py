"""A million runs: what each takes in the database, and that the newest of any kind are found by an index."""

import asyncio
import os

import pytest

from haft import ToolService, tool
from haft.storage import Filter, StateHome, open_stores


@tool(readonly=True)
async def nothing() -> None:
    """Does nothing."""


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """Of a real run."""
    place = tmp_path_factory.mktemp("real")
    (place / "workspace").mkdir()

    async def call():
        async with ToolService.open(
            place / "workspace", tools=[nothing], home=place / "home", installed=False
        ) as service:
            return (await service.call("nothing")).run_id

    run = asyncio.run(call())
    connection = open_stores(StateHome(str(place / "home"))).connect()
    [text] = connection.runs.select(Filter())
    connection.close()
    return run, text


def test_a_run_of_a_trivial_tool_takes_little_more_than_it_says(document, tmp_path):
    run, text = document
    home = StateHome(str(tmp_path))
    home.prepare()
    connection = open_stores(home).connect()
    empty = connection.database.rows("PRAGMA page_count")[0][0]
    for start in range(0, 1000, 100):
        connection.runs.put([text.replace(run, f"r_{start + n:024x}").encode() for n in range(100)])
    pages = connection.database.rows("PRAGMA page_count")[0][0] - empty
    connection.close()
    assert pages * 4096 / 1000 < 2500
    assert os.path.getsize(home.database) > 0


@pytest.mark.parametrize("name", ["tool", "status", "who", "thread", "workspace", "parent", "before", "limit"])
def test_the_newest_runs_of_a_kind_are_found_by_an_index(name, tmp_path):
    home = StateHome(str(tmp_path))
    home.prepare()
    connection = open_stores(home).connect()
    database, asked = connection.database, []
    rows = database.rows
    database.rows = lambda query, values=(): asked.append((query, values)) or rows(query, values)
    connection.runs.select(Filter(**{name: 5 if name == "limit" else "x"}))
    connection.runs.select(Filter(**{name: 5 if name == "limit" else "x", "workspace": "/w"}))
    plan, there = ([each[3] for each in rows(f"EXPLAIN QUERY PLAN {query}", values)] for query, values in asked)
    connection.close()
    if name in ("tool", "who", "thread"):
        assert f"runs_{name}" in there[0], "of one workspace too, by what is rarer"
    assert plan[0].startswith(("SEARCH runs USING INDEX", "SCAN runs USING INDEX")), plan
    assert name == "parent" or not any("TEMP B-TREE" in each for each in plan), plan
    assert name == "limit" or plan[0].startswith("SEARCH"), plan
