"""Claude Code."""

from __future__ import annotations

from typing import Final

from haft.connecting.agents.agent import Agent, Blocking, HookFacts, Place, Replacing

_SETTINGS: Final = Place("~/.claude/settings.json", variable="CLAUDE_CONFIG_DIR", replaced="~/.claude")

CLAUDE_CODE: Final = Agent(
    id="claude-code",
    title="Claude Code",
    executables=("claude",),
    client_names=("claude-code", "claude"),
    servers_key="mcpServers",
    user_servers=Place("~/.claude.json", variable="CLAUDE_CONFIG_DIR", replaced="~"),
    project_servers=Place(".mcp.json"),
    folders=(
        Place("~/.claude", variable="CLAUDE_CONFIG_DIR", replaced="~/.claude"),
        Place("~/.claude.json", variable="CLAUDE_CONFIG_DIR", replaced="~"),
    ),
    model_hosts=("api.anthropic.com", "claude.ai", "console.anthropic.com", "platform.claude.com"),
    key_variables=(
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_MODEL",
        "CLAUDE_CODE_OAUTH_TOKEN",
    ),
    carried=(
        ".claude/.credentials.json",
        ".claude/backups/**",
        ".claude/cache/**",
        ".claude/debug/**",
        ".claude/file-history/**",
        ".claude/history.jsonl",
        ".claude/paste-cache/**",
        ".claude/plans/**",
        ".claude/projects/**",
        ".claude/sessions/**",
        ".claude/statsig/**",
        ".claude/stats-cache.json",
        ".claude/tasks/**",
        ".claude/telemetry/**",
        ".claude/todos/**",
        ".claude/usage-data/**",
    ),
    not_carried=(".claude/projects/*/memory/**",),
    dropped=(".claude/ide/**", ".claude/session-env/**", ".claude/shell-snapshots/**"),
    deciding_keys={
        ".claude.json": (
            "allowedTools",
            "apiKeyHelper",
            "bypassPermissionsModeAccepted",
            "customNotifyCommand",
            "env",
            "hooks",
            "mcpServers",
            "permissions",
            "projects",
        )
    },
    sandbox_off=("--settings", '{"sandbox":{"enabled":false}}'),
    approving=_SETTINGS,
    hooks=HookFacts(
        user=_SETTINGS,
        project=Place(".claude/settings.json"),
        before=("PreToolUse",),
        after=("PostToolUse", "PostToolUseFailure"),
        limit_seconds=300,
        rewriting="with-allow",
        shell_tools=("Bash",),
        edit_tools=("Edit", "MultiEdit", "NotebookEdit", "Write"),
        blocks_on_failure=True,
        passes=("it prints something that is not JSON",),
        own_rules=("where a rule of its own asks, it offers no answer that covers later commands",),
        blocking=Blocking(
            "onFailure",
            since="2.1.295",
            passes_before=(
                "it is killed, or ends with another code than 0 or 2",
                "its program is not there",
                "it takes longer than its time limit",
                "it prints something that is not JSON",
            ),
        ),
    ),
    replacing=Replacing(
        ("Bash", "Monitor", "Edit", "MultiEdit", "NotebookEdit", "Write", "Read", "Glob", "Grep"),
        user=_SETTINGS,
        project=Place(".claude/settings.json"),
    ),
    package="@anthropic-ai/claude-code",
    version_folders=("versions", "claude-code"),
    version="2.1.327",
)
