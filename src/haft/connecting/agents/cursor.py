"""Cursor, the editor and its command line `cursor-agent`. Written from its documentation."""

from __future__ import annotations

from typing import Final

from haft.connecting.agents.agent import DOCUMENTED, Agent, HookFacts, Place, Replacing

CURSOR: Final = Agent(
    id="cursor",
    title="Cursor",
    executables=("cursor-agent", "cursor"),
    client_names=("cursor",),
    servers_key="mcpServers",
    user_servers=Place("~/.cursor/mcp.json"),
    project_servers=Place(".cursor/mcp.json"),
    folders=(Place("~/.cursor"), Place("~/.config/cursor", variable="XDG_CONFIG_HOME", replaced="~/.config")),
    model_hosts=("api2.cursor.sh", "api3.cursor.sh", "api4.cursor.sh", "api5.cursor.sh", "authenticator.cursor.sh"),
    key_variables=("CURSOR_API_KEY",),
    carried=(".config/cursor/auth.json", ".cursor/chats/**", ".cursor/projects/**", ".cursor/prompt_history.json"),
    sandbox_off=("--sandbox", "disabled"),
    hooks=HookFacts(
        user=Place("~/.cursor/hooks.json"),
        project=Place(".cursor/hooks.json"),
        before=("preToolUse",),
        after=("postToolUse", "postToolUseFailure"),
        limit_seconds=300,
        rewriting="off",
        shell_tools=("Shell",),
        edit_tools=("Delete", "Write"),
        blocks_on_failure=True,
    ),
    replacing=Replacing(
        ("Shell(**)", "Write(**)"),
        user=Place("~/.cursor/cli-config.json"),
        project=Place(".cursor/cli.json"),
        left=("all tools of the editor: only the command line `cursor-agent` reads the list of denied tools",),
    ),
    version=DOCUMENTED,
)
