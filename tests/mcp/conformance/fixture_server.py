"""The MCP server behind haft that has the prompts and the resources that the conformance suite wants.

haft hosts it (`[providers.fixture]`), and `haft serve mcp` passes its prompts and resources on. It has no tools.
"""

import asyncio
import json
import re
import sys

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEMPLATE = re.compile(r"test://template/([^/]+)/data")
RESOURCES = [
    {"uri": "test://static-text", "name": "static-text", "description": "A text.", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "static-binary", "description": "A picture.", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched", "description": "It may change.", "mimeType": "text/plain"},
]
PROMPTS = [
    {"name": "test_simple_prompt", "description": "A prompt without arguments."},
    {
        "name": "test_prompt_with_arguments",
        "description": "A prompt with two arguments.",
        "arguments": [
            {"name": "arg1", "description": "First test argument", "required": True},
            {"name": "arg2", "description": "Second test argument", "required": True},
        ],
    },
    {
        "name": "test_prompt_with_embedded_resource",
        "description": "A prompt with a resource.",
        "arguments": [{"name": "resourceUri", "description": "The URI of the resource", "required": True}],
    },
    {"name": "test_prompt_with_image", "description": "A prompt with a picture."},
    {"name": "test_input_required_result_prompt", "description": "A prompt that asks for its context."},
]
CONTEXT = {
    "mode": "form",
    "message": "What context should the prompt use?",
    "requestedSchema": {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]},
}


def user(content):
    return {"role": "user", "content": content}


def text(words):
    return {"type": "text", "text": words}


async def list_resources(context, params):
    return types.ListResourcesResult.model_validate({"resources": RESOURCES}, by_name=False)


async def list_templates(context, params):
    template = {
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data of an id.",
        "mimeType": "application/json",
    }
    return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": [template]}, by_name=False)


async def read_resource(context, params):
    uri = str(params.uri)
    if uri == "test://static-text":
        content = {"mimeType": "text/plain", "text": "This is the content of the static text resource."}
    elif uri == "test://static-binary":
        content = {"mimeType": "image/png", "blob": PIXEL}
    elif uri == "test://watched-resource":
        content = {"mimeType": "text/plain", "text": "Watched resource content"}
    elif found := TEMPLATE.fullmatch(uri):
        data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        content = {"mimeType": "application/json", "text": json.dumps(data)}
    else:
        raise MCPError(code=-32602, message="Resource not found", data={"uri": uri})
    return types.ReadResourceResult.model_validate({"contents": [{"uri": uri, **content}]}, by_name=False)


async def list_prompts(context, params):
    return types.ListPromptsResult.model_validate({"prompts": PROMPTS}, by_name=False)


async def get_prompt(context, params):
    name, given = params.name, params.arguments or {}
    if name == "test_simple_prompt":
        messages = [user(text("This is a simple prompt for testing."))]
    elif name == "test_prompt_with_arguments":
        messages = [user(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))]
    elif name == "test_prompt_with_embedded_resource":
        resource = {"uri": given["resourceUri"], "mimeType": "text/plain", "text": "Embedded resource content."}
        messages = [
            user({"type": "resource", "resource": resource}),
            user(text("Please process the embedded resource above.")),
        ]
    elif name == "test_prompt_with_image":
        image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
        messages = [user(image), user(text("Please analyze the image above."))]
    elif name == "test_input_required_result_prompt":
        answers = params.input_responses or {}
        if "user_context" not in answers:
            question = {"method": "elicitation/create", "params": CONTEXT}
            return types.InputRequiredResult.model_validate(
                {"resultType": "input_required", "inputRequests": {"user_context": question}}, by_name=False
            )
        messages = [user(text(f"Use this context: {answers['user_context']}"))]
    else:
        raise MCPError(code=-32602, message=f"Unknown prompt: {name}")
    return types.GetPromptResult.model_validate({"messages": messages}, by_name=False)


async def complete(context, params):
    values = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return types.CompleteResult.model_validate({"completion": {"values": values, "hasMore": False}}, by_name=False)


async def accept(context, params):
    return types.EmptyResult()


SERVER = Server(
    "fixture",
    version="1",
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=accept,
    on_unsubscribe_resource=accept,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
)


async def main():
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options(NotificationOptions()))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
