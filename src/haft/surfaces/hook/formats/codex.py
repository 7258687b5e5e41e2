"""Codex's hooks: the form of Claude Code, with tools of its own. Codex cannot ask because of a hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from haft.surfaces.hook.events import HookEvent
from haft.surfaces.hook.formats.hook_specific import HookSpecificFormat
from haft.surfaces.hook.formats.patches import patch_in_command
from haft.surfaces.hook.formats.tool_table import ToolUse, meaning_of
from haft.values import replace

_PATCH: Final = ToolUse("patch", ("command", "input", "patch"))


class CodexFormat(HookSpecificFormat):
    """Codex applies a patch itself if a shell command consists only of it: such a command is an edit."""

    def read(self, given: Mapping[str, Any], cwd: str) -> HookEvent:
        event = super().read(given, cwd)
        patch = None if event.meaning.shell is None else patch_in_command(event.meaning.shell.command)
        return event if patch is None else replace(event, meaning=meaning_of(_PATCH, {"patch": patch}, event.cwd))


CODEX: Final = CodexFormat(
    {
        "Bash": ToolUse("shell", ("workdir",)),
        "apply_patch": _PATCH,
        "view_image": ToolUse("read"),
        "update_plan": ToolUse("harmless"),
        "get_goal": ToolUse("harmless"),
        "tool_search": ToolUse("harmless"),
        "request_user_input": ToolUse("harmless"),
    },
    can_ask=False,
)
