"""The tools that the conformance suite calls, as ordinary haft tools of an installed package.

Nothing here knows MCP beyond the blocks of a result and the questions of a tool. `task_tools` has most of those that
run as tasks, `schema_tools` and `header_tools` those whose schemas no Python signature can write, and `fixture_server`
the prompts and the resources.
"""

import time
from pathlib import Path

from haft import Context, Question, ToolResult, tool

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
NAME = {"name": {"type": "string"}}


def asked(key: str, message: str, properties: dict, required=None) -> Question:
    return Question.form(message, properties, required, key=key)


def sampled(key: str, text: str, tokens: int = 100) -> Question:
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return Question("sampling/createMessage", {"messages": messages, "maxTokens": tokens}, key=key)


def roots(key: str) -> Question:
    return Question("roots/list", {}, key=key)


def said(answer) -> str:
    return f"action={answer.action}, content={answer.content}"


# Content.


@tool(readonly=True)
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@tool(readonly=True)
def test_image_content() -> ToolResult:
    """Return an image."""
    return ToolResult(content=[{"type": "image", "data": PIXEL, "mimeType": "image/png"}])


@tool(readonly=True)
def test_audio_content() -> ToolResult:
    """Return a sound."""
    return ToolResult(content=[{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}])


@tool(readonly=True)
def test_embedded_resource() -> ToolResult:
    """Return a resource."""
    resource = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource."}
    return ToolResult(content=[{"type": "resource", "resource": resource}])


@tool(readonly=True)
def test_multiple_content_types() -> ToolResult:
    """Return a text, an image and a resource."""
    resource = {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"test": "data"}'}
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    return ToolResult("Multiple content types test:", content=[image, {"type": "resource", "resource": resource}])


@tool(readonly=True)
def test_error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool intentionally returns an error for testing")


# What a tool says while it runs.


def speak(context: Context) -> None:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.progress(words)
        time.sleep(0.05)


@tool(readonly=True)
def test_tool_with_logging(context: Context) -> str:
    """Say three things while it runs."""
    speak(context)
    return "Tool with logging executed successfully"


@tool(readonly=True)
def test_logging_tool(context: Context) -> str:
    """Say three things while it runs."""
    speak(context)
    return "logged"


@tool(readonly=True)
def test_tool_with_progress(context: Context) -> str:
    """Report progress three times."""
    for fraction in (0.0, 0.5, 1.0):
        context.progress(fraction=fraction)
        time.sleep(0.05)
    return "done"


@tool(readonly=True)
def test_reconnection(context: Context) -> str:
    """Take a moment, in which a client may lose its connection and come back."""
    context.progress("Before disconnect")
    time.sleep(0.2)
    context.progress("After reconnect")
    return "Reconnection test completed"


# Questions.


@tool(readonly=True)
def test_sampling(prompt: str, context: Context) -> str:
    """Ask the client's model something."""
    (answer,) = context.ask(sampled("answer", prompt))
    if answer.action != "accept":
        raise RuntimeError("nobody could ask a model")
    return f"LLM response: {answer.content['content']['text']}"


@tool(readonly=True)
def test_elicitation(message: str, context: Context) -> str:
    """Ask the person for a name and an address."""
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    (answer,) = context.ask(asked("user", message, fields))
    return f"User response: {said(answer)}"


@tool(readonly=True)
def test_elicitation_sep1034_defaults(context: Context) -> str:
    """Ask with a form whose fields have default values."""
    fields = {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    }
    (answer,) = context.ask(asked("user", "Please review the form", fields, []))
    return f"Elicitation completed: {said(answer)}"


@tool(readonly=True)
def test_elicitation_sep1330_enums(context: Context) -> str:
    """Ask with all kinds of choices."""
    plain, values = ["option1", "option2", "option3"], ("value1", "value2", "value3")
    titled = [{"const": value, "title": f"Option {value[-1]}"} for value in values]
    names = ["Option One", "Option Two", "Option Three"]
    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    (answer,) = context.ask(asked("choices", "Please choose", fields, []))
    return f"Elicitation completed: {said(answer)}"


@tool(readonly=True)
def test_streaming_elicitation(context: Context) -> str:
    """Report progress, then ask."""
    context.progress("asking soon", fraction=0.5)
    return said(*context.ask(asked("user_name", "What is your name?", NAME)))


@tool(readonly=True)
def test_input_required_result_elicitation(context: Context) -> str:
    """Ask for a name."""
    (answer,) = context.ask(asked("user_name", "What is your name?", NAME))
    return f"Hello, {(answer.content or {}).get('name', 'nobody')}!"


@tool(readonly=True)
def test_input_required_result_sampling(context: Context) -> str:
    """Ask the client's model for a capital."""
    (answer,) = context.ask(sampled("capital_question", "What is the capital of France?"))
    return said(answer)


@tool(readonly=True)
def test_input_required_result_list_roots(context: Context) -> str:
    """Ask for the client's directories."""
    (answer,) = context.ask(roots("client_roots"))
    return said(answer)


@tool(readonly=True)
def test_input_required_result_request_state(context: Context) -> str:
    """Ask for a confirmation."""
    (answer,) = context.ask(asked("confirm", "Please confirm", {"ok": {"type": "boolean"}}))
    return "state-ok" if answer.action == "accept" else said(answer)


@tool(readonly=True)
def test_input_required_result_tampered_state(context: Context) -> str:
    """Ask for a confirmation."""
    (answer,) = context.ask(asked("confirm", "Please confirm", {"ok": {"type": "boolean"}}))
    return said(answer)


@tool(readonly=True)
def test_input_required_result_multiple_inputs(context: Context) -> str:
    """Ask three things at once."""
    name = asked("user_name", "What is your name?", NAME)
    answers = context.ask(name, sampled("greeting", "Generate a greeting", 50), roots("client_roots"))
    return "; ".join(map(said, answers))


@tool(readonly=True)
def test_input_required_result_multi_round(context: Context) -> str:
    """Ask one thing after the other."""
    (name,) = context.ask(asked("step1", "Step 1: What is your name?", NAME))
    (colour,) = context.ask(asked("step2", "Step 2: What is your favorite color?", {"color": {"type": "string"}}))
    return f"{said(name)}; {said(colour)}"


@tool(readonly=True)
def test_input_required_result_capabilities(context: Context) -> str:
    """Ask what the client can answer."""
    questions = [asked("user_name", "What is your name?", NAME), sampled("greeting", "Generate a greeting", 50)]
    return "; ".join(map(said, context.ask(*(each for each in questions if context.can_ask(each.method)))))


@tool(readonly=True)
def test_missing_capability(context: Context) -> str:
    """Ask the client's model, which this tool cannot do without."""
    (answer,) = context.ask(sampled("greeting", "Generate a greeting", 50))
    if answer.action != "accept":
        raise RuntimeError("this tool needs a model")
    return said(answer)


# Changes of the lists.


@tool
def test_trigger_tool_change(context: Context) -> str:
    """Add a tool to the workspace, or remove it."""
    path = Path(".agents/tools/later")
    if path.exists():
        path.unlink()
        return "removed"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nprintf 'name: later\\ndescription: A new tool. Use when testing.\\n'\n")
    path.chmod(0o755)
    return "added"


@tool
def test_trigger_prompt_change(context: Context) -> str:
    """Add a skill to the workspace, or remove it."""
    path = Path(".agents/skills/later/SKILL.md")
    if path.exists():
        path.unlink()
        return "removed"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\nname: later\ndescription: A skill that comes later. Use when testing.\n---\nNothing.\n")
    return "added"


# A task that begins with a question.


@tool(readonly=True, task_support="required")
def test_tool_with_task(context: Context) -> str:
    """Ask for a name, then work for a while."""
    (answer,) = context.ask(asked("user_name", "What is your name?", NAME))
    time.sleep(0.5)
    return f"Hello, {(answer.content or {}).get('name', 'nobody')}!"


TOOLS = [each for name, each in list(globals().items()) if name.startswith("test_")]
"""What the entry point names."""
