"""The scripted model names its calls as each agent offers the tools, in the APIs of all agents."""

import json
import urllib.request

import pytest

from haft.testing.scripted_model import ScriptedModel, call, say

REQUESTS = {
    "/v1/messages": {
        "max_tokens": 500,
        "tools": [{"name": "mcp__haft__shell"}],
        "messages": [{"role": "user", "content": "PROMPT"}],
    },
    "/v1/responses": {
        "tools": [{"type": "namespace", "name": "mcp__haft", "tools": [{"name": "shell"}]}],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "PROMPT"}]}],
    },
    "/v1/chat/completions": {
        "tools": [{"type": "function", "function": {"name": "haft_shell"}}],
        "messages": [{"role": "user", "content": "PROMPT"}],
    },
    "/v1beta/models/m:generateContent": {
        "tools": [{"functionDeclarations": [{"name": "mcp_haft_shell"}]}],
        "contents": [{"role": "user", "parts": [{"text": "PROMPT"}]}],
    },
}


@pytest.fixture(scope="module")
def model():
    with ScriptedModel() as made:
        yield made


def answer(model, path, prompt, **more):
    body = json.dumps(REQUESTS[path] | more).replace("PROMPT", prompt)
    with urllib.request.urlopen(urllib.request.Request(model.url + path, body.encode(), method="POST")) as response:
        return response.read().decode()


@pytest.mark.parametrize("path", REQUESTS)
@pytest.mark.parametrize("streams", [False, True])
def test_a_call_is_said_with_the_offered_name(model, path, streams):
    prompt = model.task(call("shell", command="ls"), say("finished"))
    text = answer(model, path, prompt, stream=streams)
    assert "shell" in text and "ls" in text and "finished" not in text


@pytest.mark.parametrize("path", REQUESTS)
def test_a_tool_that_is_not_offered_is_named(model, path):
    assert "TOOL NOT OFFERED: nothing" in answer(model, path, model.task(call("nothing")))


def test_a_request_without_a_task_gets_a_short_answer(model):
    assert "ok" in answer(model, "/v1/messages", "make a title")
