"""Resources, prompts, skills and news for MCP clients."""

import asyncio
import base64
import hashlib

import pytest
from mcp.shared.exceptions import MCPError
from tests.surfaces.mcp.raw_client import serving

from haft import Context, Principal, tool

SKILL = "---\nname: tidy-up\ndescription: How to tidy up.\nversion: 2026-01-02\n---\n\nTidy up.\n"


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def skill(places):
    folder = places["workspace"] / ".agents" / "skills" / "tidy-up"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "references" / "more.md").write_text("More.\n")
    (folder / "picture.png").write_bytes(b"\x89PNG\xff")
    (folder / "link").symlink_to("/etc/passwd")
    return folder


@tool(readonly=True)
def flood(lines: int) -> str:
    """Write many lines."""
    return "".join(f"line {number}\n" for number in range(1, lines + 1))


def test_the_whole_output_of_a_run_is_a_resource_in_pages(served, era):
    async def main():
        async with served(era, tools=[flood]) as (client, service):
            run = (await client.call_tool("flood", {"lines": 20_000})).structured_content["run"]
            templates = (await client.list_resource_templates()).resource_templates
            assert templates[0].uri_template == "haft://runs/{run}/output{?offset}"
            pages, uri = [], f"haft://runs/{run}/output"
            while uri is not None:
                (page,) = (await client.read_resource(uri)).contents
                pages.append(page.text)
                uri = (page.meta or {}).get("dev.haft/next")
            assert "".join(pages) == flood(20_000) and len(pages) > 2
            person = await service.call("flood", {"lines": 1})
            with pytest.raises(MCPError, match="not found"):
                await client.read_resource(f"haft://runs/{person.run_id}/output")
            completed = await client.complete(
                {"type": "ref/resource", "uri": "haft://runs/{run}/output{?offset}"}, {"name": "run", "value": run[:9]}
            )
            assert completed.completion.values == [run]

    asyncio.run(main())


def test_a_resource_that_does_not_exist_is_an_error_that_names_it(served, era):
    async def main():
        async with served(era) as (client, _service):
            with pytest.raises(MCPError) as caught:
                await client.read_resource("test://nothing")
            assert caught.value.error.code == (-32002 if era == "legacy" else -32602)
            assert caught.value.error.data == {"uri": "test://nothing"}

    asyncio.run(main())


def test_a_skill_is_a_prompt_and_reading_it_is_recorded(served, era, skill):
    async def main():
        async with served(era) as (client, service):
            prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
            assert prompts["tidy-up"].description == "How to tidy up."
            got = await client.get_prompt("tidy-up")
            assert "Tidy up." in got.messages[0].content.text
            (record,) = await service.runs.find(tool="skill")
            assert (record.who, record.record["arguments"]) == ("agent", {"name": "tidy-up"})
            with pytest.raises(MCPError, match="Unknown prompt"):
                await client.get_prompt("tidy")

    asyncio.run(main())


def test_skills_are_listed_with_the_digests_of_their_files(served, era, skill):
    async def main():
        async with served(era) as (client, _service):
            listed = await _raw(client, "skills/list", {})
            (entry,) = [one for one in listed["skills"] if one["uri"] == "skill://tidy-up/SKILL.md"]
            assert entry["frontmatter"] == {
                "name": "tidy-up",
                "description": "How to tidy up.",
                "version": "2026-01-02",
            }
            files = {one["uri"].removeprefix("skill://tidy-up/"): one for one in entry["resources"]}
            assert files.keys() == {"SKILL.md", "references/more.md", "picture.png"}
            assert files["SKILL.md"]["digest"] == f"sha256:{hashlib.sha256(SKILL.encode()).hexdigest()}"
            assert (await _raw(client, "skills/get", {"uri": entry["uri"]}))["skill"] == entry
            with pytest.raises(MCPError) as caught:
                await _raw(client, "skills/get", {"uri": "skill://other/SKILL.md"})
            assert caught.value.error.code == -32602
            (content,) = (await client.read_resource("skill://tidy-up/SKILL.md")).contents
            assert (content.text, content.mime_type) == (SKILL, "text/markdown")
            (picture,) = (await client.read_resource("skill://tidy-up/picture.png")).contents
            assert base64.b64decode(picture.blob) == (skill / "picture.png").read_bytes()
            for uri in ("skill://tidy-up/link", "skill://tidy-up/../../../a", "skill://tidy-up/no.md"):
                with pytest.raises(MCPError):
                    await client.read_resource(uri)

    asyncio.run(main())


async def _raw(client, method, params):
    if client.session.protocol_version >= "2026":
        params = {**params, "_meta": ENVELOPE}
    return await client.session._dispatcher.send_raw_request(method, params)


def test_without_the_tool_skill_there_are_no_skills(served, era, skill):
    async def main():
        async with served(era, globs=("read_*",)) as (client, _service):
            assert (await client.list_prompts()).prompts == []
            assert (await client.list_resources()).resources == []
            with pytest.raises(MCPError):
                await client.read_resource("skill://tidy-up/SKILL.md")

    asyncio.run(main())


def test_a_new_tool_is_news_for_older_clients(served):
    heard = asyncio.Event()

    async def on_message(message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async def main():
        async with served("legacy", client={"message_handler": on_message}) as (client, service):
            await client.list_tools()
            service.add(flood)
            await asyncio.wait_for(heard.wait(), 10)

    asyncio.run(main())


def test_a_new_tool_is_news_for_clients_that_listen(served):
    async def main():
        async with served("2026-07-28") as (client, service):
            async with client.listen(tools_list_changed=True) as stream:
                service.add(flood)
                event = await asyncio.wait_for(anext(aiter(stream)), 10)
                assert "Tools" in type(event).__name__

    asyncio.run(main())


def test_what_a_tool_says_is_logged_for_clients_that_want_it(served):
    @tool(readonly=True)
    async def talk(context: Context) -> str:
        """Say something."""
        context.progress("one")
        context.progress("two")
        return "done"

    async def main():
        heard = []

        async def on_log(params):
            heard.append((params.level, params.data, params.logger))

        async with served("legacy", tools=[talk], client={"logging_callback": on_log}) as (client, _service):
            await client.call_tool("talk", {})
            assert heard == []
            await _raw(client, "logging/setLevel", {"level": "info"})
            await client.call_tool("talk", {})
            assert heard == [("info", "one", "talk"), ("info", "two", "talk")]
            await _raw(client, "logging/setLevel", {"level": "error"})
            await client.call_tool("talk", {})
            assert len(heard) == 2

    asyncio.run(main())


def test_a_subscription_tells_of_the_end_of_own_runs_only(places):
    go = asyncio.Event()

    @tool(readonly=True)
    async def slow() -> str:
        """Wait for a sign."""
        await go.wait()
        return "at last"

    async def main():
        async with serving(places, tools=[slow]) as served:
            client = await served.connect("2025-11-25")
            other = served.service.call("slow", {}, who=Principal("other", kind="agent"))
            _, own = client.send("tools/call", {"name": "slow", "arguments": {}})
            while len(served.service._host.running().live) < 2:
                await asyncio.sleep(0.01)
            for run in served.service._host.running().live:
                await client.request("resources/subscribe", {"uri": f"haft://runs/{run}/output"})
            go.set()
            await other
            mine = (await own)["result"]["_meta"]["dev.haft/run"]
            await client.request("ping", {})
            told = [each for each in client.notifications if each["method"] == "notifications/resources/updated"]
            assert [each["params"]["uri"] for each in told] == [f"haft://runs/{mine}/output"]

    asyncio.run(main())


def test_a_client_that_reads_nothing_holds_up_no_news_for_others(places):
    class Stuck:
        async def send_tool_list_changed(self):
            await asyncio.Event().wait()

    async def main():
        async with serving(places) as served:
            client = await served.connect("2025-11-25")
            await client.request("ping", {})
            news = served.server.news
            news._connections = {0: Stuck(), **news._connections}
            await asyncio.wait_for(news.tools_changed(), 20)
            await client.request("ping", {})
            assert "notifications/tools/list_changed" in [each["method"] for each in client.notifications]

    asyncio.run(main())
