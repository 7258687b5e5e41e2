"""The hooks of agents in VS Code, from its documentation."""

from __future__ import annotations

from typing import Final

from haft.surfaces.hook.formats.hook_specific import HookSpecificFormat
from haft.surfaces.hook.formats.tool_table import ToolUse

VSCODE: Final = HookSpecificFormat(
    {
        "run_in_terminal": ToolUse("shell", (), background="isBackground"),
        "apply_patch": ToolUse("patch", ("input", "patch")),
        "create_file": ToolUse("write"),
        "insert_edit_into_file": ToolUse("edit"),
        "replace_string_in_file": ToolUse("edit"),
        "read_file": ToolUse("read"),
        "list_dir": ToolUse("list"),
        "file_search": ToolUse("find", ()),
        "grep_search": ToolUse("search", ()),
    },
    can_ask=True,
)
