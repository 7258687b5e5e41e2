"""The form that Claude Code began, and that Codex, VS Code and Antigravity read too: `hookSpecificOutput`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from haft.surfaces.hook.events import HookEvent, Output, Phase, Reply, text_in
from haft.surfaces.hook.formats.tool_table import ToolUse, marked, meaning_of

BEFORE: Final = "PreToolUse"
_PHASES: Final[Mapping[str, Phase]] = {"PreToolUse": "before", "PostToolUse": "after", "PostToolUseFailure": "after"}


class HookSpecificFormat:
    """Reads `hook_event_name`, `tool_name` and `tool_input`; writes `permissionDecision` and `updatedInput`."""

    def __init__(self, tools: Mapping[str, ToolUse], *, can_ask: bool) -> None:
        self.can_ask = can_ask
        self._tools = tools

    def read(self, given: Mapping[str, Any], cwd: str) -> HookEvent:
        name = text_in(given, "hook_event_name", "hookEventName")
        tool = text_in(given, "tool_name", "toolName")
        arguments = given.get("tool_input", {})
        if not name or (name in _PHASES and (not tool or not isinstance(arguments, dict))):
            raise ValueError("it has no event, no tool, or no input of the tool")
        where = text_in(given, "cwd") or cwd
        use = self._tools.get(tool)
        phase = _PHASES.get(name, "other")
        meaning = meaning_of(use, arguments, where) if phase == "before" else meaning_of(None, arguments, where)
        return HookEvent(
            phase=phase,
            tool=tool,
            arguments=arguments if isinstance(arguments, dict) else {},
            session=text_in(given, "session_id", "sessionId"),
            cwd=where,
            meaning=marked(meaning, tool),
            call=text_in(given, "tool_use_id"),
            failure=(text_in(given, "error") or "it failed") if name == "PostToolUseFailure" else None,
            mode=text_in(given, "permission_mode"),
            name=name,
        )

    def write(self, event: HookEvent, reply: Reply) -> Output:
        if event.phase != "before":
            if not reply.note:
                return Output()
            facts: dict[str, Any] = {"hookEventName": event.name, "additionalContext": reply.note}
            return Output(json.dumps({"hookSpecificOutput": facts}).encode())
        if reply.action == "none":
            return Output()
        told: dict[str, Any] = {"hookEventName": event.name or BEFORE}
        if reply.action in ("deny", "ask"):
            told |= {"permissionDecision": reply.action, "permissionDecisionReason": reply.reason}
        elif reply.allows:
            told |= {"permissionDecision": "allow", "permissionDecisionReason": reply.reason}
        if reply.arguments is not None and reply.action != "deny":
            told["updatedInput"] = dict(reply.arguments)
        return Output(json.dumps({"hookSpecificOutput": told}).encode())
