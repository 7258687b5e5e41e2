"""Names and definitions of tools, as MCP clients see them."""

import asyncio

from haft import tool
from haft.service.offered_names import LONGEST_NAME, offered_name
from haft.surfaces.mcp.offers.hosted import _offers, matches


def test_long_names_are_cut_with_a_hash_that_never_changes():
    long = "mcp__a_server_with_a_long_name__a_tool_with_a_long_name_too"
    assert offered_name("short") == "short"
    assert offered_name("x" * LONGEST_NAME) == "x" * LONGEST_NAME
    assert offered_name(long) == "mcp__a_server_with_a_long_name__a_tool_wi_22022fd6"
    assert len(offered_name(long)) == LONGEST_NAME
    assert offered_name(long) != offered_name(long + "x")


def test_a_tool_under_a_cut_name_or_with_the_name_of_an_own_tool_can_be_called(served, era):
    def long(x: int) -> int:
        """Give it back."""
        return x

    long.__name__ = "a_tool_with_a_name_of_more_than_fifty_characters_in_it"

    def runs() -> str:
        """Not haft's."""
        return "mine"

    async def main():
        tools = [tool(readonly=True)(long), tool(readonly=True)(runs)]
        async with served(era, tools=tools) as (client, _service):
            listed = {one.name: one for one in (await client.list_tools()).tools}
            assert max(map(len, listed)) <= LONGEST_NAME
            cut = offered_name(long.__name__)
            assert (await client.call_tool(cut, {"x": 7})).content[0].text == "7"
            (mine,) = [name for name in listed if name.startswith("runs_")]
            assert (await client.call_tool(mine, {})).content[0].text == "mine"
            assert "runs" in (await client.call_tool("runs", {})).structured_content
            assert listed[cut].meta == {"dev.haft/name": long.__name__}

    asyncio.run(main())


def test_runs_of_a_tool_with_the_name_of_an_own_tool_are_listed_by_its_offered_name(served):
    def runs() -> str:
        """Not haft's."""
        return "mine"

    def undo() -> str:
        """Not haft's either."""
        return "mine"

    rules = {"permissions": [{"tool": "write_file", "action": "allow"}]}

    async def main():
        tools = [tool(readonly=True)(runs), tool(readonly=True)(undo)]
        async with served("legacy", tools=tools, settings=rules) as (client, _service):

            async def listed(**wanted):
                found = (await client.call_tool("runs", wanted)).structured_content["runs"]
                return [run["tool"] for run in found]

            names = {one.meta["dev.haft/name"]: one.name for one in (await client.list_tools()).tools if one.meta}
            for called in (names["runs"], names["undo"]):
                assert (await client.call_tool(called, {})).content[0].text == "mine"
            await client.call_tool("write_file", {"path": "a", "content": "x"})
            await client.call_tool("undo", {})
            assert names["runs"] != "runs" and names["undo"] != "undo"
            assert await listed() == ["undo", "write_file", names["undo"], names["runs"]]
            for name in ("undo", names["undo"], names["runs"]):
                assert await listed(tool=name) == [name]
            assert await listed(tool="runs") == []

    asyncio.run(main())


def test_a_name_that_two_servers_give_displaces_nobody():
    found = [("one", {"name": "ask"}), ("two", {"name": "ask"}), ("two", {"name": "tidy"})]
    offers = _offers(found, "name", "{server}__{name}", {"tidy"})
    assert [(offer.server, offer.name, offer.form["name"]) for offer in offers] == [
        ("one", "ask", "ask"),
        ("two", "ask", "two__ask"),
        ("two", "tidy", "two__tidy"),
    ]


def test_templates_match_only_the_uris_that_they_describe():
    assert matches("test://template/{id}/data", "test://template/7/data")
    assert not matches("test://template/{id}/data", "test://other/7/data")
    assert not matches("test://{", "test://{")
