"""The agents from npm, in the versions that `npm/` names, installed into `.venv` on first use.

Their install scripts do not run: each agent's own program is started directly. Where no registry answers, the tests
that need an agent are skipped and say so.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import npm_programs

LISTS = Path(__file__).parent / "npm"
PLACE = Path(sys.prefix) / "npm-agents"
MACHINE = {"aarch64": "arm64", "x86_64": "x64"}.get(platform.machine(), platform.machine())

PACKAGES = {
    "claude-code": f"@anthropic-ai/claude-code-linux-{MACHINE}",
    "codex": "@openai/codex",
    "opencode": f"opencode-linux-{MACHINE}",
    "gemini": "@google/gemini-cli",
}
PROGRAMS = {
    "claude-code": "claude",
    "codex": f"../codex-linux-{MACHINE}/vendor/*/bin/codex",
    "opencode": "bin/opencode",
    "gemini": "bundle/gemini.js",
}


def installed() -> Path:
    """The directory `node_modules` with all agents, installed if it is not there."""
    return npm_programs.installed(LISTS, PLACE)


def command(agent: str) -> list[str]:
    """The command that starts an agent."""
    (found,) = (installed() / PACKAGES[agent]).parent.glob(f"{Path(PACKAGES[agent]).name}/{PROGRAMS[agent]}")
    program = str(found.resolve())
    return [str(npm_programs.node()), program] if program.endswith(".js") else [program]


def version(agent: str) -> str:
    """The installed version of an agent."""
    return json.loads((installed() / PACKAGES[agent] / "package.json").read_text())["version"]


if __name__ == "__main__":
    try:
        installed()
    except npm_programs.CannotInstall as problem:
        sys.exit(f"{problem}: agents cannot be tested")
