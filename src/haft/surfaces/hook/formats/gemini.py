"""Gemini CLI's hooks. It gives calls no id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from haft.surfaces.hook.events import HookEvent, Output, Phase, Reply, text_in
from haft.surfaces.hook.formats.tool_table import ToolUse, marked, meaning_of

_PHASES: Final[Mapping[str, Phase]] = {"BeforeTool": "before", "AfterTool": "after"}
_TOOLS: Final = {
    "run_shell_command": ToolUse("shell", ("dir_path", "directory"), background="is_background"),
    "replace": ToolUse("edit"),
    "write_file": ToolUse("write"),
    "read_file": ToolUse("read", ("file_path", "absolute_path", "path")),
    "list_directory": ToolUse("list", ("dir_path", "path")),
    "glob": ToolUse("find", ("dir_path", "path")),
    "grep_search": ToolUse("search", ("dir_path", "path")),
    "search_file_content": ToolUse("search", ("dir_path", "path")),
    **{
        name: ToolUse("harmless")
        for name in ("write_todos", "update_topic", "enter_plan_mode", "exit_plan_mode", "list_background_processes",
                     "read_background_output", "activate_skill", "ask_user")
    },
}  # fmt: skip


class GeminiFormat:
    """Reads `BeforeTool` and `AfterTool`; writes `decision` and `hookSpecificOutput.tool_input`."""

    can_ask = False

    def read(self, given: Mapping[str, Any], cwd: str) -> HookEvent:
        name, tool, arguments = (
            text_in(given, "hook_event_name"),
            text_in(given, "tool_name"),
            given.get("tool_input", {}),
        )
        if not name or (name in _PHASES and (not tool or not isinstance(arguments, dict))):
            raise ValueError("it has no event, no tool, or no input of the tool")
        where = text_in(given, "cwd") or cwd
        phase = _PHASES.get(name, "other")
        response = given.get("tool_response")
        failure = response.get("error") if isinstance(response, dict) else None
        return HookEvent(
            phase=phase,
            tool=tool,
            arguments=arguments if isinstance(arguments, dict) else {},
            session=text_in(given, "session_id"),
            cwd=where,
            meaning=marked(
                meaning_of(_TOOLS.get(tool) if phase == "before" else None, arguments, where), tool, _server(given)
            ),
            failure=None if not failure else failure if isinstance(failure, str) else json.dumps(failure),
            name=name,
        )

    def write(self, event: HookEvent, reply: Reply) -> Output:
        if event.phase != "before":
            facts: dict[str, Any] = {"hookEventName": event.name, "additionalContext": reply.note}
            return Output(json.dumps({"hookSpecificOutput": facts}).encode()) if reply.note else Output()
        if reply.action == "deny":
            return Output(json.dumps({"decision": "deny", "reason": reply.reason}).encode())
        if reply.arguments is None:
            return Output()
        facts = {"hookEventName": event.name, "tool_input": dict(reply.arguments)}
        told = {"decision": "allow"} if reply.allows else {}
        return Output(json.dumps({**told, "hookSpecificOutput": facts}).encode())


def _server(given: Mapping[str, Any]) -> str | None:
    """The MCP server of a call; None if Gemini CLI does not say that it is a call of one."""
    context = given.get("mcp_context")
    name = context.get("server_name") if isinstance(context, dict) else None
    return name if isinstance(name, str) else None


GEMINI: Final = GeminiFormat()
