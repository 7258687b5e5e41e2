"""opencode."""

from __future__ import annotations

from typing import Final

from haft.connecting.agents.agent import Agent, HookFacts, Place, Replacing

_CONFIG: Final = Place(
    "~/.config/opencode/opencode.json",
    variable="XDG_CONFIG_HOME",
    replaced="~/.config",
    others=("opencode.jsonc", "config.json"),
)
_PROJECT: Final = Place(
    "opencode.json", others=("opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc")
)

OPENCODE: Final = Agent(
    id="opencode",
    title="opencode",
    executables=("opencode",),
    client_names=("opencode",),
    servers_key="mcp",
    user_servers=_CONFIG,
    project_servers=_PROJECT,
    folders=(
        Place("~/.config/opencode", variable="XDG_CONFIG_HOME", replaced="~/.config"),
        Place("~/.local/share/opencode", variable="XDG_DATA_HOME", replaced="~/.local/share"),
        Place("~/.local/state/opencode", variable="XDG_STATE_HOME", replaced="~/.local/state"),
        Place("~/.cache/opencode", variable="XDG_CACHE_HOME", replaced="~/.cache"),
    ),
    model_hosts=("api.anthropic.com", "api.openai.com", "models.dev", "opencode.ai", "openrouter.ai"),
    key_variables=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY"),
    carried=(".local/share/opencode/**", ".local/state/opencode/**"),
    not_carried=(".local/share/opencode/worktree/**",),
    dropped=(".cache/opencode/**", ".local/share/opencode/bin/**", ".local/share/opencode/snapshot/**"),
    hooks=HookFacts(
        user=Place("~/.config/opencode/plugins/haft.js", variable="XDG_CONFIG_HOME", replaced="~/.config"),
        project=Place(".opencode/plugins/haft.js"),
        before=("tool.execute.before",),
        after=("tool.execute.after",),
        limit_seconds=300,
        rewriting="plain",
        shell_tools=("bash",),
        edit_tools=("apply_patch", "edit", "multiedit", "patch", "write"),
        blocks_on_failure=True,
        passes=("the file of the plugin is removed",),
    ),
    replacing=Replacing(("bash", "edit", "read", "grep", "glob", "list"), user=_CONFIG, project=_PROJECT),
    version="1.18.18",
)
