"""A real agent that `haft connect` connected, and the person beside it with haft's commands.

agent = Connected("codex", base, model.url, "--hooks")
agent.real.run(prompt); agent.runs(); agent.haft("undo", ...)
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from real_agents import AGENTS

RULES = """[approval]
expires_seconds = {patience}

{rules}
"""
ALLOW_ALL = """[[permissions]]
tool = "*"
action = "allow"
"""


class Connected:
    """The agent, its workspace, and the person's configuration of haft."""

    def __init__(self, name: str, base: Path, model: str, *options: str, rules: str = ALLOW_ALL, patience: int = 60):
        self.real = AGENTS[name](base, model)
        self.workspace = self.real.workspace
        own = self.real.home / ".config" / "haft" / "haft.toml"
        own.parent.mkdir(parents=True)
        own.write_text(RULES.format(rules=rules, patience=patience))
        self.env = {key: value for key, value in self.real.env.items() if not key.endswith("_PROXY")}
        # The agent finds `haft` by name, as people who installed it do.
        self.real.env["PATH"] = self.env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{self.real.env['PATH']}"
        self.shown = self.haft("connect", name, *options, "--yes", cwd=self.real.home)

    def haft(self, *words: str, cwd: Path | None = None, fails: bool = False) -> str:
        """What a command of haft prints to a person. It must succeed, unless `fails`."""
        done = subprocess.run(
            [sys.executable, "-m", "haft", *words],
            cwd=cwd or self.workspace,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert (done.returncode != 0) == fails, f"haft {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout + (done.stderr if fails else "")

    def runs(self) -> list[dict]:
        """All runs, the oldest first."""
        found = json.loads(self.haft("log", "--limit", "1000", "--json"))
        return sorted(found, key=lambda run: run["startedAt"])

    def audit(self) -> str:
        """The audit log, as text."""
        return self.haft("audit", "export")

    def waiting(self) -> list[dict]:
        """The calls that wait for an answer."""
        return json.loads(self.haft("inbox", "--json"))

    def alone(self) -> list[str]:
        """The command lines of processes that are left of the agent and of haft, after the helpers that end by
        themselves were told to."""
        mark = f"HAFT_HOME={self.real.env['HAFT_HOME']}".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if mark in (process / "environ").read_bytes().split(b"\0") and "--resident" not in words:
                    found.append(words)
        return found

    def end(self) -> None:
        """End everything that was started here."""
        mark = f"HAFT_HOME={self.real.env['HAFT_HOME']}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
