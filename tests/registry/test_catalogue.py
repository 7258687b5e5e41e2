import asyncio
import threading

import pytest

from haft.contracts import BadConfig, ToolSpec, UnknownTool
from haft.registry import Catalogue


def names(listings):
    return [listing.spec.name for listing in listings]


def test_an_added_tool_is_found_under_its_name(make_tool):
    catalogue, tool = Catalogue(), make_tool("add")
    listing = catalogue.add(tool)
    assert (listing.state, listing.reason) == ("ready", None)
    assert catalogue.get("add") is tool


@pytest.mark.parametrize("name", ["", "a b", "ä", "a/b", "x" * 65, "a\n"])
def test_a_bad_name_is_refused(make_tool, name):
    with pytest.raises(BadConfig, match="cannot be the name of a tool"):
        Catalogue().add(make_tool(name))


def test_an_unknown_tool_is_told_with_the_near_miss(make_tool):
    catalogue = Catalogue()
    catalogue.add(make_tool("read_file"))
    with pytest.raises(UnknownTool) as raised:
        catalogue.get("read_fil")
    assert raised.value.hint == "did you mean `read_file`?"


def test_the_name_of_an_unknown_tool_cannot_steer_a_terminal(make_tool):
    catalogue = Catalogue()
    catalogue.add(make_tool("add"))
    with pytest.raises(UnknownTool) as raised:
        catalogue.get("\x1b[2J" + "x" * 1_000_000)
    assert "\x1b" not in raised.value.message
    assert len(raised.value.message) < 200


def test_on_a_clash_the_newcomer_is_renamed_and_says_so(make_tool):
    catalogue = Catalogue()
    catalogue.add(make_tool("read_file", kind="builtin", origin="haft"))
    listing = catalogue.add(make_tool("read_file"))
    assert listing.state == "ready"
    assert listing.spec.name == "python__read_file"
    assert "`read_file` is already the builtin tool from haft" in listing.reason
    assert catalogue.get("read_file").spec.kind == "builtin"
    renamed = catalogue.get("python__read_file")
    assert renamed.spec.name == "python__read_file"
    assert asyncio.run(renamed.invoke({}, None)).text == "read_file: {}"
    assert asyncio.run(renamed.preprocess({"a": 1}, None)) == {"a": 1}


def test_a_third_of_the_same_name_is_listed_and_cannot_be_called(make_tool):
    catalogue = Catalogue()
    for _ in range(3):
        last = catalogue.add(make_tool("add"))
    assert last.state == "duplicate"
    assert names(catalogue.listings()) == ["add", "python__add"]
    assert names(catalogue.listings(all=True)) == ["add", "add", "python__add"]
    catalogue.remove("add")
    with pytest.raises(BadConfig, match="it is duplicate"):
        catalogue.get("add")
    catalogue.remove("add")
    with pytest.raises(UnknownTool):
        catalogue.get("add")


def test_a_name_too_long_for_the_prefix_makes_a_duplicate(make_tool):
    catalogue = Catalogue()
    catalogue.add(make_tool("x" * 60))
    assert catalogue.add(make_tool("x" * 60)).state == "duplicate"


def test_built_in_tools_cannot_be_removed(make_tool):
    catalogue = Catalogue()
    catalogue.add(make_tool("shell", kind="builtin"))
    with pytest.raises(BadConfig, match="built in"):
        catalogue.remove("shell")


def test_a_removed_tool_is_gone(make_tool):
    catalogue = Catalogue()
    catalogue.add(make_tool("add"))
    catalogue.remove("add")
    assert catalogue.listings(all=True) == []
    with pytest.raises(UnknownTool):
        catalogue.remove("add")


@pytest.mark.parametrize("schema", [{"type": "array"}, ["not", "a", "schema"], 5])
def test_an_input_schema_that_is_no_object_is_listed_broken(make_tool, schema):
    catalogue = Catalogue()
    listing = catalogue.add(make_tool("add", schema=schema))
    assert listing.state == "broken"
    assert catalogue.listings() == []
    assert catalogue.listings(all=True)[0].to_json()["state"] == "broken"
    with pytest.raises(BadConfig, match="it is broken: its input schema"):
        catalogue.get("add")


def test_a_schema_is_compiled_when_asked_for_and_not_while_listing(make_tool):
    catalogue = Catalogue()
    bad = {"type": "object", "properties": {"a": {"type": "nonsense"}}}
    assert catalogue.add(make_tool("add", schema=bad)).state == "ready"
    version = catalogue.version
    for _ in range(2):
        with pytest.raises(BadConfig, match=r"broken.*JSON Schema"):
            catalogue.get("add")
    assert catalogue.listings(all=True)[0].state == "broken"
    assert catalogue.version == version + 1


def test_a_broken_tool_is_reported_with_its_reason(make_tool):
    catalogue = Catalogue()
    catalogue.report_broken(ToolSpec("x", "python", "", {}, origin="pkg: x"), "ImportError: no")
    with pytest.raises(BadConfig, match="it is broken: ImportError: no") as raised:
        catalogue.get("x")
    assert raised.value.hint == "it comes from pkg: x"
    catalogue.add(make_tool("y"))
    catalogue.report_broken(ToolSpec("y", "python", "", {}), "no")
    assert catalogue.get("y").spec.name == "y"


def test_watchers_get_the_present_then_every_change(make_tool):
    async def scenario():
        catalogue = Catalogue()
        first, second = catalogue.watch(), catalogue.watch()
        assert names(await anext(first)) == []
        catalogue.add(make_tool("a"))
        assert names(await anext(first)) == ["a"]
        assert names(await anext(second)) == ["a"]
        catalogue.remove("a")
        assert names(await anext(first)) == []
        assert names(await anext(second)) == []
        await first.aclose()
        await second.aclose()
        assert not catalogue._watchers

    asyncio.run(scenario())


def test_a_slow_watcher_gets_many_changes_as_one(make_tool):
    async def scenario():
        catalogue = Catalogue()
        watcher = catalogue.watch()
        await anext(watcher)
        for number in range(100):
            catalogue.add(make_tool(f"t{number:03}"))
        assert len(await anext(watcher)) == 100
        waiting = asyncio.ensure_future(anext(watcher))
        done, _ = await asyncio.wait([waiting], timeout=0.02)
        assert not done
        waiting.cancel()

    asyncio.run(scenario())


def test_a_change_from_another_thread_wakes_the_watcher(make_tool):
    async def scenario():
        catalogue = Catalogue()
        watcher = catalogue.watch()
        await anext(watcher)
        thread = threading.Thread(target=catalogue.add, args=(make_tool("a"),))
        thread.start()
        assert names(await asyncio.wait_for(anext(watcher), 5)) == ["a"]
        thread.join()
        await watcher.aclose()

    asyncio.run(scenario())


def test_a_watcher_whose_loop_is_gone_disturbs_nobody(make_tool):
    catalogue = Catalogue()
    loop = asyncio.new_event_loop()
    watcher = catalogue.watch()
    loop.run_until_complete(anext(watcher))
    loop.close()
    catalogue.add(make_tool("a"))
    assert not catalogue._watchers
