"""Resources and prompts of the MCP servers that haft hosts, as clients of haft see them."""

import asyncio
import sys

import pytest
from mcp.shared.exceptions import MCPError

SERVER = """
import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def resources(context, params):
    return types.ListResourcesResult(resources=[types.Resource(uri="test://one", name="one")])

async def templates(context, params):
    template = types.ResourceTemplate(uri_template="test://many/{id}", name="many")
    return types.ListResourceTemplatesResult(resource_templates=[template])

async def read(context, params):
    text = types.TextResourceContents(uri=params.uri, text=f"content of {params.uri}")
    return types.ReadResourceResult(contents=[text])

async def prompts(context, params):
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[types.PromptArgument(name="who")])])

async def prompt(context, params):
    words = types.TextContent(type="text", text=f"Greet {params.arguments['who']}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=words)])

async def complete(context, params):
    return types.CompleteResult(completion=types.Completion(values=[params.argument.value + "!"]))

async def main():
    server = Server("hosted", on_list_resources=resources, on_list_resource_templates=templates,
        on_read_resource=read, on_list_prompts=prompts, on_get_prompt=prompt, on_completion=complete)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

anyio.run(main)
"""


@pytest.fixture
def hosting(places, tmp_path, monkeypatch):
    (tmp_path / "server.py").write_text(SERVER)
    config = tmp_path / "config" / "haft"
    config.mkdir(parents=True)
    (config / "haft.toml").write_text(
        f'[providers.mine]\ncommand = "{sys.executable}"\nargs = ["{tmp_path}/server.py"]\n'
        '[[permissions]]\ntool = "read_resource"\nmatches = {uri = "test://many/secret"}\naction = "reject"\n'
        '[[permissions]]\ntool = "read_resource"\naction = "allow"\n'
        '[[permissions]]\ntool = "get_prompt"\naction = "allow"\n'
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_they_are_passed_on_under_rules_and_recorded(served, hosting):
    async def main():
        async with served("2026-07-28") as (client, service):
            await service.providers.describe("mine")
            assert "test://one" in [one.uri for one in (await client.list_resources()).resources]
            templates = (await client.list_resource_templates()).resource_templates
            assert "test://many/{id}" in [one.uri_template for one in templates]
            for uri in ("test://one", "test://many/7"):
                (content,) = (await client.read_resource(uri)).contents
                assert content.text == f"content of {uri}"
            with pytest.raises(MCPError, match="reject"):
                await client.read_resource("test://many/secret")
            assert [record.status for record in await service.runs.find(tool="read_resource")] == [
                "rejected-by-user",
                "done",
                "done",
            ]
            prompts = {one.name: one for one in (await client.list_prompts()).prompts}
            assert prompts["greet"].arguments[0].name == "who"
            got = await client.get_prompt("greet", {"who": "Ada"})
            assert got.messages[0].content.text == "Greet Ada."
            (record,) = await service.runs.find(tool="get_prompt")
            assert (record.who, record.record["arguments"]["server"]) == ("agent", "mine")
            completed = await client.complete({"type": "ref/prompt", "name": "greet"}, {"name": "who", "value": "A"})
            assert completed.completion.values == ["A!"]
            there = await client.complete(
                {"type": "ref/resource", "uri": "test://many/{id}"}, {"name": "id", "value": "7"}
            )
            assert there.completion.values == ["7!"]
        async with served("legacy", globs=("read_file",)) as (client, service):
            assert (await client.list_resources()).resources == []
            assert (await client.list_prompts()).prompts == []
            for reading in (client.read_resource("test://one"), client.get_prompt("greet", {"who": "x"})):
                with pytest.raises(MCPError):
                    await reading

    asyncio.run(main())
