"""Claude Code's hooks."""

from __future__ import annotations

from typing import Final

from haft.surfaces.hook.formats.hook_specific import HookSpecificFormat
from haft.surfaces.hook.formats.tool_table import ToolUse

_HARMLESS: Final = (
    "AskUserQuestion BashOutput CronList EnterPlanMode ExitPlanMode ListAgents ReportFindings SlashCommand TaskCreate"
    " TaskGet TaskList TaskOutput TaskUpdate TodoWrite ToolSearch"
)
_DEFAULT_SECONDS: Final = 120.0

CLAUDE_CODE: Final = HookSpecificFormat(
    {
        "Bash": ToolUse(
            "shell", (), timeout="timeout", default_seconds=_DEFAULT_SECONDS, background="run_in_background"
        ),
        "Monitor": ToolUse("shell", (), background="*"),
        "Edit": ToolUse("edit"),
        "MultiEdit": ToolUse("edit"),
        "Write": ToolUse("write"),
        "NotebookEdit": ToolUse("edit", ("notebook_path",)),
        "Read": ToolUse("read"),
        "LS": ToolUse("list"),
        "Glob": ToolUse("find"),
        "Grep": ToolUse("search"),
        **{name: ToolUse("harmless") for name in _HARMLESS.split()},
    },
    can_ask=True,
)
