"""Antigravity, the editor and its command line `agy`. Written from its documentation."""

from __future__ import annotations

from typing import Final

from haft.connecting.agents.agent import DOCUMENTED, Agent, HookFacts, Place

ANTIGRAVITY: Final = Agent(
    id="antigravity",
    title="Antigravity",
    executables=("agy", "antigravity"),
    client_names=("antigravity",),
    servers_key="mcpServers",
    user_servers=Place("~/.gemini/config/mcp_config.json", others=("~/.gemini/antigravity/mcp_config.json",)),
    project_servers=Place(".agents/mcp_config.json"),
    folders=(Place("~/.gemini"), Place("~/.antigravity")),
    model_hosts=(
        "accounts.google.com",
        "antigravity.google",
        "cloudcode-pa.googleapis.com",
        "daily-cloudcode-pa.googleapis.com",
        "oauth2.googleapis.com",
        "www.googleapis.com",
    ),
    carried=(".gemini/antigravity*/**",),
    hooks=HookFacts(
        user=Place("~/.gemini/config/hooks.json"),
        project=Place(".agents/hooks.json"),
        before=("PreToolUse",),
        after=("PostToolUse",),
        limit_seconds=300,
        rewriting="off",
        shell_tools=("run_command",),
        edit_tools=("multi_replace_file_content", "replace_file_content", "write_to_file"),
    ),
    version=DOCUMENTED,
)
