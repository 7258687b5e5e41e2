"""Antigravity's hooks, from its documentation."""

from __future__ import annotations

from typing import Final

from haft.surfaces.hook.formats.hook_specific import HookSpecificFormat
from haft.surfaces.hook.formats.tool_table import ToolUse

_FILE: Final = ("TargetFile", "AbsolutePath", "file_path", "path")

ANTIGRAVITY: Final = HookSpecificFormat(
    {
        "run_command": ToolUse("shell", ("Cwd", "cwd"), command="CommandLine"),
        "multi_replace_file_content": ToolUse("edit", _FILE),
        "replace_file_content": ToolUse("edit", _FILE),
        "write_to_file": ToolUse("write", _FILE),
        "view_file": ToolUse("read", _FILE),
        "list_dir": ToolUse("list", ("DirectoryPath", "path")),
        "grep_search": ToolUse("search", ("SearchPath", "path")),
    },
    can_ask=False,
)
