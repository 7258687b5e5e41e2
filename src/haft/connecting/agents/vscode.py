"""VS Code with GitHub Copilot. Written from its documentation."""

from __future__ import annotations

from typing import Final

from haft.connecting.agents.agent import DOCUMENTED, Agent, HookFacts, Place

VSCODE: Final = Agent(
    id="vscode",
    title="VS Code",
    executables=("code",),
    client_names=("Visual Studio Code", "vscode"),
    servers_key="servers",
    user_servers=Place(
        "~/.config/Code/User/mcp.json",
        variable="XDG_CONFIG_HOME",
        replaced="~/.config",
        mac="~/Library/Application Support/Code/User/mcp.json",
    ),
    project_servers=Place(".vscode/mcp.json"),
    folders=(
        Place(
            "~/.config/Code",
            variable="XDG_CONFIG_HOME",
            replaced="~/.config",
            mac="~/Library/Application Support/Code",
        ),
        Place("~/.vscode"),
        Place("~/.copilot", variable="COPILOT_HOME", replaced="~/.copilot"),
    ),
    model_hosts=("api.github.com", "api.githubcopilot.com", "*.githubcopilot.com", "github.com"),
    carried=(".config/Code/**/state.vscdb*", ".config/Code/logs/**", ".config/Code/User/workspaceStorage/**"),
    hooks=HookFacts(
        user=Place("~/.copilot/hooks/haft.json", variable="COPILOT_HOME", replaced="~/.copilot"),
        project=Place(".github/hooks/haft.json"),
        before=("PreToolUse",),
        after=("PostToolUse",),
        limit_seconds=300,
        rewriting="off",
        shell_tools=("run_in_terminal",),
        edit_tools=("apply_patch", "create_file", "insert_edit_into_file", "replace_string_in_file"),
    ),
    has_windows=True,
    version=DOCUMENTED,
)
