"""Cursor's hooks, from its documentation: `preToolUse`, `postToolUse` and `postToolUseFailure`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from haft.surfaces.hook.events import HookEvent, Output, Phase, Reply, text_in
from haft.surfaces.hook.formats.tool_table import ToolUse, marked, meaning_of

_PHASES: Final[Mapping[str, Phase]] = {"preToolUse": "before", "postToolUse": "after", "postToolUseFailure": "after"}
_TOOLS: Final = {
    "Shell": ToolUse("shell", ("working_directory", "cwd"), timeout="timeout"),
    "Write": ToolUse("write", ("file_path", "path", "target_file")),
    "Delete": ToolUse("edit", ("file_path", "path", "target_file")),
    "Read": ToolUse("read", ("file_path", "path", "target_file")),
    "Grep": ToolUse("search"),
}


class CursorFormat:
    """Reads `conversation_id`, `tool_name` and `tool_input`; writes `permission`."""

    can_ask = False

    def read(self, given: Mapping[str, Any], cwd: str) -> HookEvent:
        name, tool, arguments = (
            text_in(given, "hook_event_name"),
            text_in(given, "tool_name"),
            given.get("tool_input", {}),
        )
        if not name or (name in _PHASES and (not tool or not isinstance(arguments, dict))):
            raise ValueError("it has no event, no tool, or no input of the tool")
        roots = given.get("workspace_roots")
        root = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else cwd
        where = text_in(given, "cwd") or root
        phase = _PHASES.get(name, "other")
        return HookEvent(
            phase=phase,
            tool=tool,
            arguments=arguments if isinstance(arguments, dict) else {},
            session=text_in(given, "conversation_id", "session_id"),
            cwd=where,
            meaning=marked(meaning_of(_TOOLS.get(tool) if phase == "before" else None, arguments, where), tool),
            call=text_in(given, "tool_use_id"),
            failure=(text_in(given, "error_message", "error") or "it failed") if name == "postToolUseFailure" else None,
            name=name,
        )

    def write(self, event: HookEvent, reply: Reply) -> Output:
        if event.phase == "before" and reply.action == "deny":
            told = {"permission": "deny", "user_message": reply.reason, "agent_message": reply.reason}
            return Output(json.dumps(told).encode())
        return Output(b"{}")


CURSOR: Final = CursorFormat()
