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
        "list": ("tools:list_tools", "List every tool: its name, its kind, and the first line of its description."),
        "show": ("tools:show_tool", "Show one tool: its description, parameters and effects, or its definition."),
        "use": ("use:use_tool", "Call a tool."),
        "search": ("tools:search_tools", "Find tools by name, description and parameters."),
        "make": ("make:make_tool", "Make a new tool that works at once."),
        "check": ("check:check_tools", "Find problems in tools, and say how to fix them."),
    },
)

CHANGES: Final = LazyGroup(
    "changes",
    "Apply or drop held changes: changes that are not in the workspace yet.",
    {
        "list": ("changes:list_held", "List the runs with held changes, and why they are held."),
        "apply": ("changes:apply_changes", "Apply the held changes of a run to the workspace."),
        "drop": ("changes:drop_changes", "Discard the held changes of a run."),
    },
)

AUDIT: Final = LazyGroup(
    "audit",
    "Verify, list or export the audit log, which has records of every call.",
    {
        "verify": ("audit:verify_record", "Check that nobody altered the audit log; exit 1 if somebody did."),
        "list": ("audit:list_record", "List the newest records."),
        "export": ("audit:export_record", "Export all records as JSON lines, oldest first."),
    },
)

CONFIG: Final = LazyGroup(
    "config",
    "The settings.",
    {"show": ("config:show_config", "Show the settings in force, and where each comes from.")},
)

PERMISSIONS: Final = LazyGroup(
    "permissions",
    "The rules that decide about calls.",
    {
        "list": ("permissions.list:list_rules", "List the rules, in the order in which they apply."),
        "test": ("permissions.test:test_rules", "Say how haft would decide about a call, by which rule, and why."),
        "add": ("permissions.change:add_rule", "Add a rule to your own haft.toml, or to the workspace's."),
        "remove": ("permissions.change:remove_rule", "Remove a rule or a remembered answer."),
        "edit": ("permissions.edit:edit_rules", "Open your own haft.toml in your editor."),
        "replay": ("permissions.replay:replay_rules", "List past calls that changed rules decide otherwise."),
        "suggest": (
            "permissions.suggest:suggest_rules",
            "Suggest narrow rules for calls that a person approved.",
        ),
    },
)

SKILLS: Final = LazyGroup(
    "skills",
    "Skills: instructions for agents, and the tools that come with them.",
    {
        "list": ("skills:list_skills", "List the skills, and which are active."),
        "show": ("skills:show_skill", "Show one skill: its text, or one of its references."),
        "activate": ("skills:activate_skill", "Make a skill's tools available."),
        "deactivate": ("skills:deactivate_skill", "Make a skill's tools unavailable again."),
        "make": ("skills:make_skill", "Make a new skill."),
        "install": ("skills:install_skill", "Install skills from a folder or an archive."),
    },
)

PLUGINS: Final = LazyGroup(
    "plugins",
    "List the configured plugins, and update those from git.",
    {
        "list": ("plugins:list_plugins", "List the plugins, and where each comes from."),
        "update": ("plugins:update_plugins", "Fetch the newest commits of git plugins, and write them to haft.lock."),
    },
)

TEMPLATES: Final = LazyGroup(
    "templates",
    "Check, pack, install, list, build and remove Agent Studio templates.",
    {
        "check": ("templates:check_templates", "Find problems in templates."),
        "pack": ("templates:pack_templates", "Write templates into one ZIP."),
        "install": ("templates:install_templates", "Install the templates of a ZIP."),
        "list": ("templates:list_templates", "List the templates."),
        "build": ("templates:build_environment", "Build a template's environment."),
        "remove": ("templates:remove_template", "Remove a template."),
    },
)

TOOLBOX: Final = LazyGroup(
    "toolbox",
    "Write toolbox executables, for any agent that speaks the toolbox protocol.",
    {
        "wrap": ("toolbox:wrap_program", "Write an executable for each command of a program."),
        "export": ("toolbox:export_tools", "Write an executable for each tool of haft. The executable calls haft."),
    },
)

STORE: Final = LazyGroup(
    "store",
    "Show or prune what haft stores about past runs: earlier file contents, and outputs.",
    {
        "show": ("store:show_store", "Show how much disk the stored data takes, and how many runs can be undone."),
        "prune": ("store:prune_store", "Delete stored data that is too large or too old."),
    },
)

HAFT: Final = LazyGroup(
    "haft",
    "One handle for every agent tool: host, decide, run, record.",
    {
        "tools": TOOLS,
        "log": ("log:log_runs", "List runs, newest first."),
        "show": ("log:show_run", "Show one run: its states, decision, limits, sandbox, arguments and changes."),
        "output": ("output:print_output", "Print the output that haft kept of a run."),
        "watch": ("watch:watch_run", "Follow a run, whichever process started it."),
        "cancel": ("cancel:cancel_runs", "Stop a run, whichever process started it."),
        "diff": ("diff:print_diff", "Print the changes of a run as a patch."),
        "undo": ("undo:undo_runs", "Undo the changes of runs, and no other changes."),
        "redo": ("undo:redo_runs", "Redo the changes of runs that were undone."),
        "changes": CHANGES,
        "inbox": ("inbox:list_inbox", "List the calls that wait for a person."),
        "approve": ("inbox:approve_request", "Approve a waiting call."),
        "reject": ("inbox:reject_request", "Reject a waiting call."),
        "permissions": PERMISSIONS,
        "skills": SKILLS,
        "plugins": PLUGINS,
        "templates": TEMPLATES,
        "toolbox": TOOLBOX,
        "store": STORE,
        "audit": AUDIT,
        "config": CONFIG,
        "trust": ("trust:trust_workspace", "Trust a workspace's configuration file: then all settings in it count."),
        "doctor": ("doctor:examine", "Say what this machine can do and what is broken."),
        "completion": ("completion:print_completion", "Print the completion script of a shell."),
        "help": ("help:print_help", "Print how a command is used."),
        "version": ("help:print_version", "Print the version."),
    },
    {"use": ("tools", "use"), "list": ("tools", "list")},
    {"ls": "list", "run": "use", "call": "use", "exec": "use"},
)
