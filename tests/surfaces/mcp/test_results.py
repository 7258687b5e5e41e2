"""An outcome as the result of an MCP call: everything that the model must read stands in the text and in the structured
content."""

import asyncio
import json

import pytest

from haft import Failure, Outcome, ToolResult, tool
from haft.contracts import Change, Changes
from haft.surfaces.mcp.results import outcome_schema, result_of

PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def outcome(status="done", **more):
    return Outcome("r_1", "t", status, "agent", "T-1", **more)


def text_of(result):
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def test_text_alone_is_text_alone():
    result = result_of(outcome(output="hello"))
    assert result["content"] == [{"type": "text", "text": "hello"}]
    assert "structuredContent" not in result
    assert result["_meta"] == {"dev.haft/run": "r_1", "dev.haft/status": "done"}


def test_the_output_of_a_server_is_marked_and_what_haft_says_is_not():
    rejected = outcome("rejected-by-user", error=Failure("rejected", "a rule rejects it", None))
    assert result_of(rejected, server="s")["content"][0]["text"].startswith("[haft] run r_1")
    result = result_of(outcome(output="yes", result={"a": 1}, notes=("a note",)), server="s")
    structured = result["structuredContent"]
    assert result["content"][0]["text"] == structured["output"] == "[MCP server s] yes"
    assert (structured["result"], structured["notes"]) == ({"a": 1}, ["a note"])


@pytest.mark.parametrize("status", ["error", "cancelled", "rejected-by-user"])
def test_whatever_went_wrong_stands_in_both(status):
    failure = Failure("tool-failed", "it broke", "mend it", retryable=True)
    files = Changes("overlay", True, None, "held", (Change("a.txt", "modify", "file"),))
    result = result_of(outcome(status, output="half of it", error=failure, changes=files, notes=("a note",)))
    assert result["isError"] is True
    assert result["structuredContent"] == {
        "run": "r_1",
        "status": status,
        "output": "half of it",
        "error": {"code": "tool-failed", "message": "it broke", "hint": "mend it", "retryable": True},
        "changes": {"state": "held", "files": [{"path": "a.txt", "type": "modify"}]},
        "notes": ["a note"],
    }
    for words in ("r_1", status, "half of it", "tool-failed", "it broke", "mend it", "held", "a.txt", "a note"):
        assert words in text_of(result)


def test_an_error_without_output_begins_with_the_error():
    result = result_of(outcome("error", error=Failure("timed-out", "it took too long", None)))
    assert "it took too long" in result["content"][0]["text"]


@pytest.mark.parametrize("code", ["sandbox-denied", "rejected"])
def test_a_model_is_not_told_how_to_open_the_sandbox(code):
    failure = Failure(code, "the sandbox denied a connection", "call it with `--network=example.org`")
    result = result_of(outcome("error", error=failure, notes=("X was withheld: `--env X` passes it", "other")))
    said = json.dumps(result)
    assert "--network" not in said and "--env" not in said
    assert "`haft show r_1`" in said and "other" in said


def test_pictures_go_as_they_are_and_nothing_hides_them():
    result = result_of(outcome(output="see", content=(PICTURE,)))
    assert result["content"] == [{"type": "text", "text": "see"}, PICTURE]
    assert "structuredContent" not in result_of(outcome(result={"a": 1}, content=(PICTURE,)))
    assert result_of(outcome(content=(PICTURE,)))["content"] == [PICTURE]


def test_the_schema_of_a_result_keeps_its_definitions_at_the_top():
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object"}}}
    wrapped = outcome_schema(schema)
    assert wrapped["properties"]["result"] == {"$ref": "#/$defs/Node"}
    assert wrapped["$defs"] == {"Node": {"type": "object"}}
    assert outcome_schema({"properties": {"next": {"$ref": "#"}}})["properties"]["result"] == {}


def test_a_tool_that_declares_its_result_is_checked_by_the_client(served, era):
    @tool(readonly=True)
    def weather(city: str) -> dict[str, int]:
        """The weather."""
        if city == "nowhere":
            raise ValueError("there is no such city")
        return {"degrees": 20}

    @tool(readonly=True)
    def draw() -> ToolResult:
        """Draw."""
        return ToolResult(text="drawn", content=[PICTURE])

    async def main():
        async with served(era, tools=[weather, draw]) as (client, _service):
            await client.list_tools()
            good = await client.call_tool("weather", {"city": "x"})
            assert good.structured_content["result"] == {"degrees": 20}
            bad = await client.call_tool("weather", {"city": "nowhere"})
            assert bad.is_error and "no such city" in bad.structured_content["error"]["message"]
            drawn = await client.call_tool("draw", {})
            assert [block.type for block in drawn.content] == ["text", "image"]

    asyncio.run(main())
