"""opencode's hooks: the plugin that `haft connect` writes starts the hook, and obeys `{"deny": REASON}` or `{"args":
{…}}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from haft.surfaces.hook.events import HookEvent, Output, Phase, Reply, text_in
from haft.surfaces.hook.formats.tool_table import ToolUse, marked, meaning_of

_PHASES: Final[Mapping[str, Phase]] = {"tool.execute.before": "before", "tool.execute.after": "after"}
_TOOLS: Final = {
    "bash": ToolUse("shell", ("workdir",), timeout="timeout", default_seconds=120.0),
    "edit": ToolUse("edit"),
    "multiedit": ToolUse("edit"),
    "write": ToolUse("write"),
    "patch": ToolUse("patch", ("patchText", "patch", "input")),
    "apply_patch": ToolUse("patch", ("patchText", "patch", "input")),
    "read": ToolUse("read"),
    "list": ToolUse("list"),
    "glob": ToolUse("find"),
    "grep": ToolUse("search"),
    **{name: ToolUse("harmless") for name in ("todowrite", "todoread", "question", "skill", "invalid")},
}


class OpencodeFormat:
    """Reads what the plugin sends, and writes what the plugin obeys."""

    can_ask = False

    def read(self, given: Mapping[str, Any], cwd: str) -> HookEvent:
        name, tool, arguments = text_in(given, "hook_event_name"), text_in(given, "tool"), given.get("args", {})
        if not name or (name in _PHASES and not tool):
            raise ValueError("it has no event or no tool")
        phase = _PHASES.get(name, "other")
        if not isinstance(arguments, dict):
            if phase == "before":
                raise ValueError("it has no arguments of the tool")
            arguments = {}
        where = text_in(given, "directory") or cwd
        return HookEvent(
            phase=phase,
            tool=tool,
            arguments=arguments,
            session=text_in(given, "sessionID"),
            cwd=where,
            meaning=marked(meaning_of(_TOOLS.get(tool) if phase == "before" else None, arguments, where), tool),
            call=text_in(given, "callID"),
            name=name,
        )

    def write(self, event: HookEvent, reply: Reply) -> Output:
        if event.phase != "before":
            return Output()
        if reply.action == "deny":
            return Output(json.dumps({"deny": reply.reason}).encode())
        if reply.arguments is None:
            return Output()
        changed = {key: value for key, value in reply.arguments.items() if event.arguments.get(key) != value}
        return Output(json.dumps({"args": changed}).encode())


OPENCODE: Final = OpencodeFormat()
