"""Steps of a scripted model with each agent's own tools, and with haft's tools as the agent names them."""

from __future__ import annotations

import json
from pathlib import Path

from haft.testing.scripted_model import call, text_call

AGENT_NAMES = ("claude-code", "codex", "opencode", "gemini")
SHELLS = {"claude-code": "Bash", "codex": "exec_command", "opencode": "bash", "gemini": "run_shell_command"}
HAFTS = {"claude-code": "mcp__haft__", "codex": "mcp__haft__", "opencode": "haft_", "gemini": "mcp_haft_"}
"""How each agent begins the names of haft's tools."""


def shell(agent: str, command: str, **more):
    """A step: the agent's own shell."""
    if agent == "codex":
        return call(SHELLS[agent], cmd=command, **({"yield_time_ms": 30000} | more))
    return call(SHELLS[agent], command=command, **({"description": "run it"} | more))


def edit(agent: str, path: Path, old: str, new: str) -> list:
    """Steps: the agent's own edit of one line of a file, which it reads first where it must."""
    if agent == "claude-code":
        return [call("Read", file_path=str(path)), call("Edit", file_path=str(path), old_string=old, new_string=new)]
    if agent == "codex":
        lines = ["*** Begin Patch", f"*** Update File: {path.name}", "@@", f"-{old}", f"+{new}", "*** End Patch", ""]
        patch = "\n".join(lines)
        return [text_call("apply_patch", patch)]
    if agent == "opencode":
        read, fields = "read", {"filePath": str(path), "oldString": old, "newString": new}
        return [call(read, filePath=str(path)), call("edit", **fields)]
    fields = {"file_path": str(path), "instruction": "Change it.", "old_string": old, "new_string": new}
    return [call("read_file", file_path=str(path)), call("replace", **fields)]


def haft(agent: str, tool: str, **arguments):
    """A step: a tool of haft."""
    return call(f"{HAFTS[agent]}{tool}", **arguments)


def options(agent: str) -> tuple[str, ...]:
    """Options besides: a model of Codex that has `apply_patch`."""
    return ("-c", 'model="gpt-5.5"') if agent == "codex" else ()


def shown(value) -> str:
    """JSON on one line."""
    return json.dumps(value)
