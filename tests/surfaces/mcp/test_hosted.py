"""Resources and prompts of the MCP servers that haft hosts, as clients of haft see them."""

import asyncio
import sys

import pytest
from mcp.shared.exceptions import MCPError

from haft.sources.mcp import read_log

SERVER = """
import sys
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
    print("completes:", params.model_dump_json(by_alias=True, exclude_none=True), file=sys.stderr, flush=True)
    return types.CompleteResult(completion=types.Completion(values=[params.argument.value + "!"]))

async def main():
    server = Server("hosted", on_list_resources=resources, on_list_resource_templates=templates,
        on_read_resource=read, on_list_prompts=prompts, on_get_prompt=prompt, on_completion=complete)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

anyio.run(main)
"""


RULES = (
    '[[permissions]]\ntool = "read_resource"\nmatches = {uri = "test://many/secret"}\naction = "reject"\n'
    '[[permissions]]\ntool = "read_resource"\naction = "allow"\n'
    '[[permissions]]\ntool = "get_prompt"\naction = "allow"\n'
)
PROMPT = {"type": "ref/prompt", "name": "greet"}
TEMPLATE = {"type": "ref/resource", "uri": "test://many/{id}"}


@pytest.fixture
def host(tmp_path, monkeypatch):
    """`host(rules)` makes haft host the server, under these rules."""
    config = tmp_path / "config" / "haft"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def write(rules, server=SERVER):
        (tmp_path / "server.py").write_text(server)
        config.mkdir(parents=True)
        (config / "haft.toml").write_text(
            f'[providers.mine]\ncommand = "{sys.executable}"\nargs = ["{tmp_path}/server.py"]\n{rules}'
        )

    return write


@pytest.fixture
def hosting(host):
    host(RULES)


def completions_sent(places):
    """What the server says that it was asked to complete."""
    log = read_log(str(places["home"]), "mine")
    return [line.partition("completes: ")[2] for line in log.splitlines() if "completes: " in line]


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


@pytest.mark.parametrize(
    "rules",
    [
        '[[permissions]]\ntool = "get_prompt"\naction = "reject"\n'
        '[[permissions]]\ntool = "read_resource"\naction = "reject"\n',
        "",  # Without rules, both tools need approval.
        '[[permissions]]\ntool = "*"\naction = "delegate"\nto = "true"\n',
    ],
    ids=["reject", "ask", "delegate"],
)
def test_a_completion_that_is_not_allowed_sends_the_server_nothing_and_asks_nobody(served, places, host, rules):
    host(rules)

    async def main():
        async with served("2026-07-28") as (client, service):
            await service.providers.describe("mine")
            for ref, name in ((PROMPT, "who"), (TEMPLATE, "id")):
                completed = await client.complete(ref, {"name": name, "value": "SECRET-DATA"}, {"more": "SECRET-MORE"})
                assert completed.completion.values == []
            assert await service.approvals.waiting() == []
            resource, prompt = await service.runs.find(tool="complete")
            assert (resource.status, prompt.status) == ("rejected-by-user", "rejected-by-user")
            assert (prompt.who, prompt.record["arguments"]["tool"]) == ("agent", "get_prompt")
            assert prompt.record["decision"]["action"] == "reject"
        assert completions_sent(places) == [] and "SECRET" not in read_log(str(places["home"]), "mine")

    asyncio.run(main())


def test_a_completion_that_the_rules_allow_is_answered_and_on_record(served, places, hosting):
    async def main():
        async with served("2026-07-28") as (client, service):
            await service.providers.describe("mine")
            completed = await client.complete(PROMPT, {"name": "who", "value": "A"}, {"how": "kindly"})
            assert completed.completion.values == ["A!"]
            (record,) = await service.runs.find(tool="complete")
            call = {"server": "mine", "name": "greet", "arguments": {"how": "kindly", "who": "A"}}
            assert record.record["arguments"] == {"tool": "get_prompt", "arguments": call, "argument": "who"}
            assert (record.status, record.who, record.record["decision"]["action"]) == ("done", "agent", "allow")
            assert len(completions_sent(places)) == 1

    asyncio.run(main())


def test_a_completion_of_a_template_is_decided_like_reading_the_resource(served, places, hosting):
    async def main():
        async with served("2026-07-28") as (client, service):
            await service.providers.describe("mine")
            for value, values in (("7", ["7!"]), ("secret", [])):
                completed = await client.complete(TEMPLATE, {"name": "id", "value": value}, {"other": "SECRET-DATA"})
                assert completed.completion.values == values
            rejected, done = await service.runs.find(tool="complete")
            assert [run.record["arguments"]["arguments"] for run in (rejected, done)] == [
                {"server": "mine", "uri": "test://many/secret"},
                {"server": "mine", "uri": "test://many/7"},
            ]
            unknown = await client.complete(TEMPLATE, {"name": "other", "value": "SECRET-DATA"})
            concrete = await client.complete(
                {"type": "ref/resource", "uri": "test://many/7"}, {"name": "id", "value": "SECRET-DATA"}
            )
            assert unknown.completion.values == concrete.completion.values == []
            (sent,) = completions_sent(places)
            assert "SECRET-DATA" not in sent and "secret" not in sent

    asyncio.run(main())
