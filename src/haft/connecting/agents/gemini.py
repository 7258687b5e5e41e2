"""Gemini CLI."""

from __future__ import annotations

from typing import Final

from haft.connecting.agents.agent import Agent, HookFacts, Place, Replacing

GEMINI: Final = Agent(
    id="gemini",
    title="Gemini CLI",
    executables=("gemini",),
    client_names=("gemini-cli",),
    servers_key="mcpServers",
    user_servers=Place("~/.gemini/settings.json"),
    project_servers=Place(".gemini/settings.json"),
    folders=(Place("~/.gemini"),),
    model_hosts=(
        "accounts.google.com",
        "cloudcode-pa.googleapis.com",
        "generativelanguage.googleapis.com",
        "oauth2.googleapis.com",
        "www.googleapis.com",
    ),
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL"),
    carried=(
        ".gemini/gemini-credentials.json",
        ".gemini/google_accounts.json",
        ".gemini/installation_id",
        ".gemini/mcp-oauth-tokens.json",
        ".gemini/oauth_creds.json",
        ".gemini/projects.json",
        ".gemini/state.json",
        ".gemini/tmp/**",
        ".gemini/user_id",
    ),
    not_carried=(".gemini/tmp/*/memory/**",),
    dropped=(".gemini/history/**", ".gemini/tmp/bin/**"),
    sandbox_off=("--sandbox=false",),
    sandbox_off_variables={"GEMINI_SANDBOX": "false"},
    hooks=HookFacts(
        user=Place("~/.gemini/settings.json"),
        project=Place(".gemini/settings.json"),
        before=("BeforeTool",),
        after=("AfterTool",),
        limit_seconds=300,
        rewriting="plain",
        shell_tools=("run_shell_command",),
        edit_tools=("replace", "write_file"),
        passes=(
            "it is killed, or ends with another code than 0 or 2",
            "it takes longer than its time limit",
            "it prints something that is not JSON",
        ),
    ),
    replacing=Replacing(
        (
            "run_shell_command",
            "replace",
            "write_file",
            "read_file",
            "read_many_files",
            "list_directory",
            "glob",
            "grep_search",
            "search_file_content",
        ),
        user=Place("~/.gemini/settings.json"),
        project=Place(".gemini/settings.json"),
        # A list of excluded tools would also exclude haft's tools with the same names.
        kept=(
            "activate_skill",
            "ask_user",
            "enter_plan_mode",
            "exit_plan_mode",
            "google_web_search",
            "invoke_agent",
            "list_mcp_resources",
            "read_mcp_resource",
            "save_memory",
            "update_topic",
            "web_fetch",
            "write_todos",
            "mcp_*",
        ),
    ),
    version="0.61.0",
)
