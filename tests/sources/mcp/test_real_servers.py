"""MCP servers of others: three from npm, two from PyPI, and servers on two Python frameworks."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import npm_programs
import sampling
from haft.contracts import ApprovalAnswer

MORE = pytest.mark.skipif(not sampling.IS_WHOLE, reason="runs with HAFT_MORE")
BIN = Path(sys.executable).parent


def npm_server(place, name, *args, **more):
    command, *words = npm_programs.program(name)
    place.add_table("s", {"command": command, "args": [*words, *args], **more})


def approve(request):
    """Fill in every form with something that fits, and visit every page."""
    if request.question is None or request.question.schema is None:
        return True
    values = {}
    for name, field in request.question.schema["properties"].items():
        samples = {"string": "Ada", "integer": field.get("minimum", 1), "number": 1, "boolean": True}
        email = "ada@example.org" if field.get("format") == "email" else samples.get(field.get("type"))
        choices = field.get("enum") or [each["const"] for each in field.get("oneOf", ())]
        values[name] = field.get("default", choices[0] if choices else email)
    return ApprovalAnswer(True, arguments={name: value for name, value in values.items() if value is not None})


def test_the_server_everything_can_be_used_with_all_its_kinds_of_tools(place):
    npm_server(place, "server-everything", "stdio")
    echo, total, structured, image, links, progress, asked = place.call(
        ("echo", {"message": "hi"}),
        ("get-sum", {"a": 1, "b": 2}),
        ("get-structured-content", {"location": "New York"}),
        ("get-tiny-image", {}),
        ("get-resource-links", {"count": 2}),
        ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
        ("trigger-elicitation-request", {}),
        approver=approve,
        answers_questions=True,
    )
    assert echo.output == "Echo: hi" and "3" in total.output
    assert structured.result["conditions"]
    assert [block["type"] for block in image.content] == ["image"]
    assert [block["type"] for block in links.content] == ["resource_link"] * 2
    assert progress.status == "done"
    assert "Ada" in asked.output


EVERYTHING = {
    "echo": ({"message": "hi"}, "Echo: hi"),
    "get-annotated-message": ({"messageType": "error", "includeImage": True}, "Operation failed", "image"),
    "get-env": ({}, "PATH"),
    "get-resource-links": ({"count": 2}, "2 resource links", "resource_link", "resource_link"),
    "get-resource-reference": ({"resourceType": "Text", "resourceId": 1}, "Resource 1", "resource"),
    "get-structured-content": ({"location": "New York"}, "conditions"),
    "get-sum": ({"a": 1, "b": 2}, "1 and 2 is 3"),
    "get-tiny-image": ({}, "image you requested", "image"),
    "gzip-file-as-resource": (
        {"name": "a.gz", "data": "data:text/plain;base64,aGFmdA==", "outputType": "resource"},
        "",
        "resource",
    ),
    "simulate-research-query": ({"topic": "tides"}, "Research Report: tides"),
    "toggle-simulated-logging": ({}, "Started simulated"),
    "toggle-subscriber-updates": ({}, "Started simulated"),
    "trigger-elicitation-request": ({}, "Name: Ada"),
    "trigger-long-running-operation": ({"duration": 0.2, "steps": 2}, "operation completed"),
    "trigger-url-elicitation": ({"url": "https://example.org/x"}, "URL: https://example.org/x"),
}
"""The tools that `server-everything` offers to a client with haft's capabilities: the arguments of a call, a part of
its output, and its content."""


@contextlib.contextmanager
def listening(command, sign, **env):
    """Run a program until it writes a line with `sign` to stderr, and end it with the block."""
    process = subprocess.Popen(
        command, env=os.environ | env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        said = []
        while sign not in "".join(said[-1:]):
            said.append(process.stderr.readline())
            assert said[-1], "".join(said)
        yield
    finally:
        process.terminate()
        process.communicate()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


@contextlib.contextmanager
def everything(place, transport):
    if transport == "stdio":
        npm_server(place, "server-everything", "stdio")
        yield
        return
    port = free_port()
    place.add_table("s", {"url": f"http://127.0.0.1:{port}/mcp"})
    with listening([*npm_programs.program("server-everything"), "streamableHttp"], "listening on port", PORT=port):
        yield


@MORE
@pytest.mark.parametrize("transport", ["stdio", "streamableHttp"])
def test_all_tools_of_the_server_everything_are_listed_and_answer(place, transport):
    asked = []

    def answer(request):
        asked.append(request.question and request.question.params.get("url"))
        return approve(request)

    async def work(service):
        await service.call("mcp__s__echo", {"message": "the first call starts it"})
        names = {each.spec.name for each in service.tools() if each.spec.name.startswith("mcp__s__")}
        outcomes = {name: await service.call(f"mcp__s__{name}", given) for name, (given, *_) in EVERYTHING.items()}
        asked.clear()
        url = {"url": "https://example.org/x", "errorPath": True}
        return names, outcomes, await service.call("mcp__s__trigger-url-elicitation", url)

    with everything(place, transport):
        names, outcomes, visited = place.run(work, approver=answer, answers_questions=True)
    assert names == {f"mcp__s__{name}" for name in EVERYTHING}
    for name, (_given, words, *content) in EVERYTHING.items():
        outcome = outcomes[name]
        found = outcome.status, words in outcome.output, [block["type"] for block in outcome.content]
        assert found == ("done", True, content), (name, outcome)
    assert "URL: https://example.org/x" in visited.output
    assert asked == [None, "https://modelcontextprotocol.io", "https://example.org/x"], "the error names another page"


@MORE
def test_who_declines_to_visit_the_page_of_an_error_makes_the_call_fail(place):
    npm_server(place, "server-everything", "stdio")

    def answer(request):
        return request.question is None

    url = {"url": "https://example.org/x"}
    refused, failed = place.call(
        ("trigger-url-elicitation", url),
        ("trigger-url-elicitation", {**url, "errorPath": True}),
        approver=answer,
        answers_questions=True,
    )
    assert refused.status == "done" and "declined" in refused.output
    assert failed.error.code == "tool-failed" and "nobody agreed" in failed.error.message


@MORE
def test_the_tool_of_the_server_everything_that_needs_a_task_runs_as_one(place):
    npm_server(place, "server-everything", "stdio")
    (outcome,) = place.call(
        ("simulate-research-query", {"topic": "tides", "ambiguous": True}), approver=approve, answers_questions=True
    )
    assert outcome.status == "done" and "tides" in outcome.output


def test_a_resource_link_of_a_result_can_be_read_on(place):
    npm_server(place, "server-everything", "stdio")

    async def work(service):
        links = await service.call("mcp__s__get-resource-links", {"count": 1})
        return await service.call("read_resource", {"server": "s", "uri": links.content[0]["uri"]})

    assert place.run(work).result["contents"][0]["uri"]


def test_what_the_server_filesystem_writes_is_in_the_diff_and_undone(place):
    npm_server(place, "server-filesystem", str(place.workspace), grant={"write": ["."]})
    path = place.workspace / "note.txt"

    async def work(service):
        outcome = await service.call("mcp__s__write_file", {"path": str(path), "content": "hello"})
        made = path.read_text()
        await service.undo(outcome.run_id)
        return outcome, made

    outcome, made = place.run(work)
    assert ([each.path for each in outcome.changes.files], made) == (["note.txt"], "hello")
    assert not path.exists()


@MORE
def test_the_server_memory_remembers_in_a_file_that_it_may_write(place):
    npm_server(
        place,
        "server-memory",
        env={"MEMORY_FILE_PATH": str(place.workspace / "memory.jsonl")},
        grant={"write": ["."]},
    )
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    made, found = place.call(("create_entities", {"entities": [entity]}), ("read_graph", {}))
    assert [each.path for each in made.changes.files] == ["memory.jsonl"]
    assert "writes programs" in found.output


@MORE
def test_the_servers_git_and_time_from_pypi_answer(place):
    subprocess.run(["git", "init", "-q", place.workspace], check=True)
    place.add_table("git", {"command": str(BIN / "mcp-server-git")})
    place.add_table("time", {"command": str(BIN / "mcp-server-time")})

    async def work(service):
        return (
            await service.call("mcp__git__git_status", {"repo_path": str(place.workspace)}),
            await service.call("mcp__time__get_current_time", {"timezone": "Europe/Berlin"}),
        )

    status, now = place.run(work)
    assert "No commits yet" in status.output
    assert json.loads(now.output)["timezone"] == "Europe/Berlin"


FRAMEWORKS = {
    "mcp": "from mcp.server import MCPServer\nserver = MCPServer('adder')\n",
    "fastmcp": "from fastmcp import FastMCP\nserver = FastMCP('adder')\n",
}


@MORE
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_server_on_a_python_framework_is_used_in_the_era_that_it_speaks(place, tmp_path, framework):
    program = tmp_path / "adder.py"
    program.write_text(
        FRAMEWORKS[framework]
        + "@server.tool()\ndef add(a: int, b: int) -> int:\n    'Add two numbers.'\n    return a + b\n"
        + "server.run()\n"
    )
    place.add_table("s", {"command": sys.executable, "args": [str(program)]})

    async def work(service):
        outcome = await service.call("mcp__s__add", {"a": 1, "b": 2})
        return outcome, service._host.discovery.source("mcp").servers["s"].known["era"]

    outcome, era = place.run(work)
    assert outcome.result == {"result": 3}
    assert era >= "2025"


@MORE
def test_a_server_on_fastmcp_is_used_over_http(place, tmp_path):
    program, port = tmp_path / "adder.py", free_port()
    program.write_text(
        FRAMEWORKS["fastmcp"]
        + "@server.tool()\ndef add(a: int, b: int) -> int:\n    'Add two numbers.'\n    return a + b\n"
        + "@server.tool()\ndef fail():\n    'Fail.'\n    raise OSError('no luck')\n"
        + f"server.run(transport='http', host='127.0.0.1', port={port})\n"
    )
    place.add_table("s", {"url": f"http://127.0.0.1:{port}/mcp"})
    with listening([sys.executable, str(program)], "Uvicorn running"):
        total, failed = place.call(("add", {"a": 1, "b": 2}), ("fail", {}))
    assert total.result == {"result": 3} and total.changes.reason.startswith("it runs elsewhere")
    assert failed.error.code == "tool-failed" and "no luck" in failed.error.message


def test_a_server_on_the_mcp_package_that_keeps_the_reason_for_its_log_gets_the_line_to_add(place, tmp_path):
    program = tmp_path / "writer.py"
    program.write_text(
        FRAMEWORKS["mcp"]
        + "@server.tool()\ndef put(path: str) -> str:\n    'Write a file.'\n"
        + "    open(path, 'w').write('x')\n    return 'ok'\n"
        + "server.run()\n"
    )
    place.add_table("s", {"command": sys.executable, "args": [str(program)]})
    inside, deep, system = place.call(
        ("put", {"path": "a.txt"}),
        ("put", {"path": f"{tmp_path}/{'long-name-' * 12}.txt"}),
        ("put", {"path": "/usr/a.txt"}),
    )
    assert inside.output == "Error executing tool put", "the answer does not say why"
    assert [each.error.code for each in (inside, deep, system)] == ["sandbox-denied"] * 3
    assert inside.error.hint.startswith('to allow it: grant = {write = ["."]} below `[providers.s]`')
    assert f'grant = {{write = ["{tmp_path}"]}}' in deep.error.hint
    assert "no grant is suggested" in system.error.hint


@MORE
def test_a_server_in_a_virtual_environment_of_the_user_finds_its_libraries(place):
    place.add_table("s", {"command": str(BIN / "python"), "args": ["-m", "mcp_server_time"]})
    (outcome,) = place.call(("get_current_time", {"timezone": "UTC"}))
    assert outcome.status == "done"
    assert os.path.exists(BIN.parent / "pyvenv.cfg")
