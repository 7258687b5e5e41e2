"""An agent of tests: it calls the hook as the real one does, and runs what the hook tells it to run."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from haft.surfaces.hook.line import hook_words


class Hook:
    """Calls the hook of one agent, in one workspace."""

    words: Sequence[str] | None = None
    """The words of the hook, if they are not those in the person's own files."""

    def __init__(self, home: Path, workspace: Path, agent: str = "claude-code", **variables: str) -> None:
        self.home = home
        self.workspace = workspace
        self.agent = agent
        self._variables = variables
        self._calls = 0

    def run(self, given: Any, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Start the hook with these words on stdin."""
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return subprocess.run(
            self.words or hook_words(self.agent),
            input=given if isinstance(given, str) else json.dumps(given),
            capture_output=True,
            text=True,
            cwd=cwd or self.workspace,
            env={**env, **self._variables, "HAFT_HOME": str(self.home)},
        )

    def event(self, name: str, tool: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
        """What the agent writes about a call."""
        told = {
            "session_id": "session-1",
            "cwd": str(self.workspace),
            "permission_mode": "default",
            "hook_event_name": name,
            "tool_name": tool,
            "tool_input": arguments,
            "tool_use_id": f"call-{self._calls}",
        }
        return {**told, **more}

    def before(self, tool: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
        """The answer to a call that is about to be made; empty if the hook has nothing against it."""
        self._calls += 1
        ended = self.run(self.event("PreToolUse", tool, arguments, **more))
        assert ended.returncode == 0, ended.stderr
        assert ended.stderr == ""
        return json.loads(ended.stdout)["hookSpecificOutput"] if ended.stdout else {}

    def after(self, tool: str, arguments: dict[str, Any], name: str = "PostToolUse", **more: Any) -> None:
        """Tell the hook that the call before has ended."""
        ended = self.run(self.event(name, tool, arguments, **more))
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line as the agent's own shell does."""
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=self.workspace)
