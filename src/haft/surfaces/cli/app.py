"""The table of all commands. A command's module is imported only when the command runs, or for its completion or help.

The help lines are in this table for the same reason: `haft --help` imports no command.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

import click

from haft.contracts import BadUsage, near_miss
from haft.surfaces.cli.globals import HaftGroup

COMPLETE_VARIABLE: Final = "_HAFT_COMPLETE"
"""The variable that the completion scripts set. If it is set, haft prints completions for the shell and runs no
command."""

Place = tuple[str, str]
"""Where to import a command from, as `module:attribute` below `commands`; and the command's help line."""


class LazyGroup(HaftGroup):
    """A group that lists its commands by name and imports each when it is needed."""

    def __init__(
        self,
        name: str,
        about: str,
        places: Mapping[str, Place | LazyGroup],
        short_forms: Mapping[str, tuple[str, str]] | None = None,
        synonyms: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, help=about, context_settings={"help_option_names": ["--help", "-h"]})
        self._places = places
        self._short_forms = short_forms or {}
        """Commands that may be called without the name of their group: for each, the group and the command."""
        self._synonyms = synonyms or {}
        """Names that other programs use for a command, each with haft's name for it. The hint of an error suggests
        haft's name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self._short_forms:
            group, name = self._short_forms[cmd_name]
            below = self._places[group]
            assert isinstance(below, LazyGroup)
            return below.get_command(ctx, name)
        place = self._places.get(cmd_name)
        if place is None or isinstance(place, LazyGroup):
            return place
        module, _, attribute = place[0].partition(":")
        command = getattr(import_module(f"haft.surfaces.cli.commands.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            raise self._unknown(ctx, name)
        return name, command, args[1:]

    def _unknown(self, ctx: click.Context, name: str) -> BadUsage:
        below = next((f"{group} {name}" for group, place in self._places.items() if _has(place, name)), None)
        near = below or self._synonyms.get(name) or near_miss(name, self._places)
        hint = f"did you mean `{ctx.command_path} {near}`?" if near else f"the commands are {', '.join(self._places)}"
        return BadUsage(f"there is no command `{ctx.command_path} {name}`", hint=hint)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, place.help or "" if isinstance(place, LazyGroup) else place[1])
                    for name, place in self._places.items()
                ]
                + [(name, f"Short for `{' '.join(whole)}`.") for name, whole in self._short_forms.items()]
            )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[click.shell_completion.CompletionItem]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=place.help if isinstance(place, LazyGroup) else place[1])
            for name, place in self._places.items()
            if name.startswith(incomplete)
        ]


def _has(place: Place | LazyGroup, name: str) -> bool:
    return isinstance(place, LazyGroup) and name in place._places


TOOLS: Final = LazyGroup(
    "tools",
    "List, inspect, call, make and check tools.",
    {
        "list": ("tools:list_tools", "List the tools: name, kind, and the first line of the description."),
        "show": ("tools:show_tool", "Show one tool: its description, parameters and effects."),
        "use": ("use:use_tool", "Call a tool."),
        "batch": ("batch:call_batch", "Make several calls at once."),
        "search": ("tools:search_tools", "Find tools by name, description and parameters."),
        "make": ("make:make_tool", "Make a new tool, with example code that works."),
        "check": ("check:check_tools", "Find problems in tools, and say how to fix each problem."),
        "test": ("test:test_tools", "Run test scenarios of tools."),
        "fuzz": ("fuzz:fuzz_tool", "Look for arguments that break a tool."),
    },
)

CHANGES: Final = LazyGroup(
    "changes",
    "List, apply or drop held changes, which are not in the workspace yet.",
    {
        "list": ("changes:list_held", "List the runs with held changes, each with the reason."),
        "apply": ("changes:apply_changes", "Apply the held changes of a run to the workspace."),
        "drop": ("changes:drop_changes", "Discard the held changes of a run."),
    },
)

AUDIT: Final = LazyGroup(
    "audit",
    "Verify, list or export the audit log, which has records of every call.",
    {
        "verify": ("audit:verify_record", "Check whether someone altered the audit log."),
        "list": ("audit:list_record", "List the newest records."),
        "export": ("audit:export_record", "Export all records as JSON lines, oldest first."),
    },
)

CONFIG: Final = LazyGroup(
    "config",
    "Show the settings.",
    {"show": ("config:show_config", "Show each setting, its value and its origin.")},
)

PERMISSIONS: Final = LazyGroup(
    "permissions",
    "List, test and change the rules that decide about calls.",
    {
        "list": ("permissions.list:list_rules", "List the rules, in the order in which haft applies them."),
        "test": ("permissions.test:test_rules", "Say how haft would decide about a call, and why."),
        "add": ("permissions.change:add_rule", "Add a rule to your own haft.toml, or to the workspace's haft.toml."),
        "remove": ("permissions.change:remove_rule", "Remove a rule or a remembered answer."),
        "edit": ("permissions.edit:edit_rules", "Open your own haft.toml in your editor."),
        "replay": (
            "permissions.replay:replay_rules",
            "Decide about past calls again, and list the decisions that differ.",
        ),
        "suggest": (
            "permissions.suggest:suggest_rules",
            "Suggest rules for calls that a person approved.",
        ),
    },
)

AGENT: Final = LazyGroup(
    "agent",
    "Start sub-agents, and list, show and check their types.",
    {
        "run": ("agent.run:run_agent", "Start a sub-agent, and print its report."),
        "resume": ("agent.run:resume_agent", "Go on with a task that has ended."),
        "list": ("agent.list:list_agents", "List the types of sub-agents, also those that cannot be used."),
        "show": ("agent.show:show_agent", "Show a type: its tools, model, limits and system prompt."),
        "check": ("agent.check:check_agents", "Find problems in files that define types of sub-agents."),
    },
)

SKILLS: Final = LazyGroup(
    "skills",
    "List, show, activate, make and install skills: instructions for agents, often with tools.",
    {
        "list": ("skills:list_skills", "List the skills, and say which of them are active."),
        "show": ("skills:show_skill", "Show the SKILL.md of a skill, or another text of the skill."),
        "activate": ("skills:activate_skill", "Make the tools of a skill available."),
        "deactivate": ("skills:deactivate_skill", "Make the tools of a skill unavailable again."),
        "make": ("skills:make_skill", "Make a new skill."),
        "install": ("skills:install_skill", "Install skills from a folder or an archive."),
    },
)

PLUGINS: Final = LazyGroup(
    "plugins",
    "List the configured plugins, and update git plugins.",
    {
        "list": ("plugins:list_plugins", "List the plugins, each with its origin and its tools."),
        "update": ("plugins:update_plugins", "Fetch the newest commits of git plugins."),
    },
)

PROVIDERS: Final = LazyGroup(
    "providers",
    "List, add, trust, restart and remove MCP servers, log in at them, and read their logs and resources.",
    {
        "list": ("providers:list_providers", "List the MCP servers, each with its state."),
        "add": ("providers:add_provider", "Add an MCP server, or import those of another agent."),
        "trust": ("providers:trust_provider", "Let an MCP server start, as it is configured now."),
        "restart": ("providers:restart_provider", "Start an MCP server, and ask it for its tools again."),
        "login": ("providers:login_at_provider", "Log in at a remote MCP server."),
        "remove": ("providers:remove_provider", "Remove an MCP server."),
        "logs": ("providers:print_logs", "Print what an MCP server wrote to stderr."),
        "read": ("providers:read_resource", "Read a resource of an MCP server."),
    },
)

TEMPLATES: Final = LazyGroup(
    "templates",
    "Check, pack, install, list, build and remove Agent Studio templates.",
    {
        "check": ("templates:check_templates", "Find problems in templates."),
        "pack": ("templates:pack_templates", "Write templates into one ZIP file."),
        "install": ("templates:install_templates", "Install the templates in a ZIP file."),
        "list": ("templates:list_templates", "List the templates."),
        "build": ("templates:build_environment", "Build the environment of a template."),
        "remove": ("templates:remove_template", "Remove a template."),
    },
)

TOOLBOX: Final = LazyGroup(
    "toolbox",
    "Write executables that agents can use as tools, in Amp's toolbox protocol.",
    {
        "wrap": ("toolbox:wrap_program", "Write an executable for each command of a program."),
        "export": ("toolbox:export_tools", "Write an executable for each tool that haft lists."),
    },
)

SERVE: Final = LazyGroup(
    "serve",
    "Offer the tools to other programs.",
    {
        "mcp": ("serve:serve_mcp", "Offer the tools to MCP clients, such as agents."),
        "http": ("serve:serve_http", "Serve an HTTP API, MCP and the console for people, on one port."),
    },
)

STORE: Final = LazyGroup(
    "store",
    "Show or prune the stored data of past runs: outputs, and earlier contents of files.",
    {
        "show": ("store:show_store", "Show how much disk space the stored data uses, and how many runs can be undone."),
        "prune": ("store:prune_store", "Delete old stored data."),
        "backup": ("backup:backup_store", "Copy the whole state home, while hosts run."),
        "restore": ("backup:restore_store", "Make the state home of a backup."),
        "verify": ("backup:verify_stored", "Check the whole state home."),
    },
)

APPROVAL: Final = LazyGroup(
    "approval",
    "Protect your answers with a passphrase.",
    {"secret": ("approval:set_secret", "Set, change or remove the passphrase that answers then need.")},
)

TOKENS: Final = LazyGroup(
    "tokens",
    "Make, list and revoke what agents and people reach haft over HTTP with: tokens, links and sessions.",
    {
        "add": ("tokens:add_token", "Make a token for an agent or a person, and print it once."),
        "list": ("tokens:list_tokens", "List who has a token."),
        "revoke": ("tokens:revoke_token", "Make a token invalid, at once."),
        "link": ("tokens:make_link", "Print a link that signs you in to a server in your browser."),
        "sessions": ("tokens:list_sessions", "List who is signed in, or end a session."),
    },
)

HAFT: Final = LazyGroup(
    "haft",
    "Run the tools of AI agents: under your rules, in a sandbox, with undo and an audit log.",
    {
        "tools": TOOLS,
        "run": ("run.command:run_program", "Run a whole program, such as an agent, in one confined run."),
        "log": ("log:log_runs", "List runs, newest first."),
        "show": ("log:show_run", "Show one run: its states, decision, limits, sandbox, arguments and changes."),
        "output": ("output:print_output", "Print the stored output of a run."),
        "watch": ("watch:watch_run", "Follow a run, even if another process started it."),
        "cancel": ("cancel:cancel_runs", "Stop a run, even if another process started it."),
        "diff": ("diff:print_diff", "Print the changes of a run as a patch."),
        "blame": ("blame:blame_file", "Print for each line of a file the run that wrote it."),
        "undo": ("undo:undo_runs", "Undo the file changes of runs."),
        "redo": ("undo:redo_runs", "Bring back file changes that were undone."),
        "changes": CHANGES,
        "inbox": ("inbox:list_inbox", "List the calls that wait for a person's answer."),
        "approve": ("inbox:approve_request", "Approve a waiting call."),
        "reject": ("inbox:reject_request", "Reject a waiting call."),
        "approval": APPROVAL,
        "permissions": PERMISSIONS,
        "agent": AGENT,
        "skills": SKILLS,
        "plugins": PLUGINS,
        "providers": PROVIDERS,
        "templates": TEMPLATES,
        "toolbox": TOOLBOX,
        "serve": SERVE,
        "connect": ("connect:connect_agent", "Write haft into the configuration of an agent, or take it out again."),
        "hook": ("hook:run_hook", "Answer an agent that is about to use one of its own tools."),
        "store": STORE,
        "tokens": TOKENS,
        "audit": AUDIT,
        "config": CONFIG,
        "trust": (
            "trust:trust_workspace",
            "Trust the configuration file of a workspace, so that all its settings take effect.",
        ),
        "doctor": ("doctor:examine", "Say what haft can do on this machine, and what is broken."),
        "completion": ("completion:print_completion", "Print the completion script for a shell."),
        "help": ("help:print_help", "Print the help of a command."),
        "version": ("help:print_version", "Print the version."),
    },
    {"use": ("tools", "use"), "list": ("tools", "list")},
    {"ls": "list", "call": "use", "exec": "use"},
)
