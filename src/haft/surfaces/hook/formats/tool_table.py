"""What the tools of agents mean for haft: one `ToolUse` for each tool that haft knows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final, Literal

from haft.surfaces.hook.events import Meaning, ShellUse, absolute, text_in
from haft.surfaces.hook.formats.patches import files_in_patch
from haft.values import dataclass, replace

NO_LIMIT: Final = 86_400.0
"""The deadline of a command for which the agent sets none."""
OWN_SERVER: Final = "haft"
"""The name that `haft connect` gives haft's MCP server."""
_OWN_PREFIXES: Final = (
    f"mcp__{OWN_SERVER}__",
    f"mcp_{OWN_SERVER}_",
    f"{OWN_SERVER}_",
    f"MCP:{OWN_SERVER}:",
    f"MCP:{OWN_SERVER}_",
)
"""What agents put before the names of haft's tools."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What a tool does, and which of its arguments say what it does it to."""

    kind: Literal["shell", "edit", "write", "patch", "read", "list", "search", "find", "harmless"]
    path: tuple[str, ...] = ("file_path", "filePath", "path")
    """The arguments that may hold the path; for a shell, its directory."""
    command: str = "command"
    timeout: str | None = None
    """The argument with the time limit in milliseconds."""
    default_seconds: float = NO_LIMIT
    background: str | None = None
    """The argument that says whether the command runs in the background; `*` if it always does."""


_AS: Final = {
    "edit": "edit_file",
    "write": "write_file",
    "patch": "edit_file",
    "read": "read_file",
    "list": "list_directory",
}
_SEARCHES: Final = {"search": "search", "find": "find_files"}


def meaning_of(use: ToolUse | None, arguments: Mapping[str, Any], cwd: str) -> Meaning:
    """What a call means. `use` is None for tools that haft does not know."""
    if use is None:
        return Meaning()
    if use.kind == "harmless":
        return Meaning(changes=False)
    if use.kind == "shell":
        return _shell(use, arguments, cwd)
    if use.kind == "patch":
        files = [absolute(path, cwd) for path in files_in_patch(text_in(arguments, *use.path))]
    else:
        named = text_in(arguments, *use.path)
        files = [absolute(named, cwd)] if named else []
    if use.kind in ("edit", "write", "patch"):
        with_ = [{"path": file} for file in files]
        return Meaning(decided_as=_AS[use.kind], decided_with=with_, files=tuple(files))
    path = files[0] if files else cwd
    if use.kind in _SEARCHES:
        pattern = text_in(arguments, "pattern", "query", "regex")
        return Meaning(decided_as=_SEARCHES[use.kind], decided_with=[{"pattern": pattern, "path": path}], changes=False)
    return Meaning(decided_as=_AS[use.kind], decided_with=[{"path": path}], changes=False)


def _shell(use: ToolUse, arguments: Mapping[str, Any], cwd: str) -> Meaning:
    command = arguments.get(use.command)
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = shlex.join(command)
    if not isinstance(command, str):
        raise ValueError(f"the shell call has no {use.command}")  # noqa: TRY004  the input is bad, not the code
    directory = text_in(arguments, *use.path)
    given = arguments.get(use.timeout) if use.timeout is not None else None
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and given > 0
    seconds = given / 1000 if is_number and given is not None else use.default_seconds
    is_background = use.background == "*" or (use.background is not None and arguments.get(use.background) is True)
    return Meaning(
        shell=ShellUse(
            command,
            absolute(directory, cwd) if directory else cwd,
            None if is_background else min(seconds, NO_LIMIT),
            is_background,
            use.command,
        )
    )


def marked(meaning: Meaning, name: str, server: str | None = None) -> Meaning:
    """The meaning of a call of this tool, with a mark if the tool is one of haft's own. `server` is the name of the MCP
    server, if the agent says it. If not, only the tool's name tells: with one underscore in the middle, `haft_x` may be
    the tool `x` of `haft`, and `haft_a_b` the tool `b` of a server `haft_a`."""
    if server is not None:
        return replace(meaning, is_ours=server == OWN_SERVER)
    for prefix in _OWN_PREFIXES:
        if name.startswith(prefix):
            rest = name.removeprefix(prefix)
            is_clear = prefix.endswith("__") and "__" not in f"_{rest}"
            return replace(meaning, is_ours=is_clear, perhaps_ours="" if is_clear else rest)
    return meaning
