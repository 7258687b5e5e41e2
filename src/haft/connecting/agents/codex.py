"""Codex."""

from __future__ import annotations

from typing import Final

from haft.connecting.agents.agent import Agent, HookFacts, Place, Replacing

_CONFIG: Final = Place("~/.codex/config.toml", variable="CODEX_HOME", replaced="~/.codex")

CODEX: Final = Agent(
    id="codex",
    title="Codex",
    executables=("codex",),
    client_names=("codex-mcp-client", "codex"),
    servers_key="mcp_servers",
    user_servers=_CONFIG,
    project_servers=Place(".codex/config.toml"),
    folders=(Place("~/.codex", variable="CODEX_HOME", replaced="~/.codex"),),
    model_hosts=("api.openai.com", "auth.openai.com", "chatgpt.com"),
    key_variables=("CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    carried=(
        ".codex/*.sqlite*",
        ".codex/.codex-global-state.json",
        ".codex/archived_sessions/**",
        ".codex/auth.json",
        ".codex/history.jsonl",
        ".codex/installation_id",
        ".codex/log/**",
        ".codex/models_cache.json",
        ".codex/session_index.jsonl",
        ".codex/sessions/**",
        ".codex/version.json",
    ),
    dropped=(".codex/shell_snapshots/**", ".codex/tmp/**"),
    sandbox_off=("--sandbox", "danger-full-access"),
    hooks=HookFacts(
        user=Place("~/.codex/hooks.json", variable="CODEX_HOME", replaced="~/.codex"),
        project=Place(".codex/hooks.json"),
        before=("PreToolUse",),
        after=("PostToolUse",),
        limit_seconds=300,
        rewriting="with-allow",
        shell_tools=("Bash",),
        edit_tools=("apply_patch",),
        passes=(
            "it is killed, or ends with another code than 0 or 2",
            "its program is not there",
            "it takes longer than its time limit",
            "it prints something that is not JSON",
        ),
        own_rules=(
            "its `allow` rules cover no line of haft: commands stay in its sandbox",
            "it asks again about each command that the model wants to run outside of its sandbox",
        ),
        unseen=("input for a command that runs already (`write_stdin`)",),
    ),
    replacing=Replacing(
        ("shell_tool",),
        user=_CONFIG,
        project=Place(".codex/config.toml"),
        left=("apply_patch, Codex's own way to edit files",),
    ),
    version="0.169.0",
)
