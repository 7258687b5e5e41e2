"""Clients of others against `haft serve mcp`: the inspector's command line, the `mcp` package in both eras of the
protocol, and fastmcp; over stdio and over HTTP, each against the real program."""

import asyncio
import contextlib
import json
import subprocess

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from served_workspace import ServedWorkspace

import npm_programs
import sampling

TEXT = "a line of the workspace\n"
OWN = {"undo", "redo", "diff", "output", "wait", "cancel", "runs", "search_tools"}
ERAS = ("legacy", "2026-07-28")
TRANSPORTS = ("stdio", "http")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    made = ServedWorkspace(tmp_path_factory.mktemp("clients"), fixtures=False)
    (made.path / "note.txt").write_text(TEXT)
    skill = made.path / ".agents" / "skills" / "counting" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: counting\ndescription: How to count. Use when counting.\n---\nOne, two, three.\n")
    return made


@pytest.fixture(scope="module")
def over_http(workspace):
    """The address and the token of one server for all tests."""
    with workspace.served() as served:
        yield served


def shown(result):
    """All text of a result of a call."""
    return " ".join(block.text for block in result.content if block.type == "text")


# The `mcp` package.


def stdio_transport(workspace):
    command, *args = workspace.command
    parameters = StdioServerParameters(command=command, args=args, env=workspace.env, cwd=str(workspace.path))
    return stdio_client(parameters)


@contextlib.asynccontextmanager
async def http_transport(over_http):
    url, token = over_http
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as carrier:
        async with streamable_http_client(url, http_client=carrier) as streams:
            yield streams


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_client_of_the_mcp_package_works_in_both_eras(request, workspace, transport, era):
    is_http = transport == "http"
    opened = http_transport(request.getfixturevalue("over_http")) if is_http else stdio_transport(workspace)

    async def main():
        async with Client(opened, mode=era) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools.keys() >= OWN | {"read_file", "shell", "search"}
            assert tools["read_file"].annotations.read_only_hint is True
            done = await client.call_tool("read_file", {"path": "note.txt"})
            assert TEXT.strip() in shown(done) and not done.is_error
            wrong = await client.call_tool("read_file", {"path": "nothing.txt"})
            assert wrong.is_error and "nothing.txt" in shown(wrong)
            prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert "counting" in prompts
            prompt = await client.get_prompt("counting")
            assert "One, two, three." in prompt.messages[0].content.text
            runs = await client.call_tool("runs", {})
            assert "read_file" in shown(runs)

    asyncio.run(main())


# fastmcp.


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_client_of_fastmcp_works(request, workspace, transport):
    from fastmcp import Client as FastClient
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if transport == "http":
        url, token = request.getfixturevalue("over_http")
        opened = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    else:
        command, *args = workspace.command
        opened = StdioTransport(command, args, env=workspace.env, cwd=str(workspace.path), keep_alive=False)

    async def main():
        async with FastClient(opened) as client:
            names = {tool.name for tool in await client.list_tools()}
            assert names >= OWN | {"read_file"}
            done = await client.call_tool("read_file", {"path": "note.txt"})
            assert TEXT.strip() in shown(done)
            wrong = await client.call_tool("read_file", {"path": "nothing.txt"}, raise_on_error=False)
            assert wrong.is_error
            found = await client.call_tool("search_tools", {"query": "read a file"})
            assert "read_file" in shown(found)

    asyncio.run(main())


# The inspector.


def inspect(workspace, *words, over=None, era="auto"):
    """What the inspector prints, as JSON."""
    command = [*npm_programs.program("inspector"), "--cli", "--protocol-era", era, *words, "--format", "json"]
    if over is None:
        command += ["--", *workspace.command]
    else:
        url, token = over
        command += ["--server-url", url, "--transport", "http", "--header", f"Authorization: Bearer {token}"]
    env = workspace.env | {"PATH": npm_programs.environment()["PATH"]}
    done = subprocess.run(command, cwd=workspace.path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["result"]


CASES = [(transport, era) for transport in TRANSPORTS for era in ("legacy", "auto", "modern")]


@pytest.mark.parametrize(("transport", "era"), sampling.some(CASES, 1, "inspector"))
def test_the_inspector_lists_and_calls_tools(request, workspace, transport, era):
    over = request.getfixturevalue("over_http") if transport == "http" else None
    listed = inspect(workspace, "--method", "tools/list", "--strict", over=over, era=era)
    assert {tool["name"] for tool in listed["tools"]} >= OWN | {"read_file"}
    words = ["--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=note.txt"]
    done = inspect(workspace, *words, over=over, era=era)
    assert TEXT.strip() in str(done["content"])
