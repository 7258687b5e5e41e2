"""Every command, on one page. A command's module is imported when it is run, completed or asked for help.

The help lines stand here for the same reason: `haft --help` imports nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

import click

from haft.contracts import BadUsage, near_miss
from haft.surfaces.cli.globals import HaftGroup

COMPLETE_VARIABLE: Final = "_HAFT_COMPLETE"
"""Set by the completion scripts: the program then answers a shell instead of running a command."""

Place = tuple[str, str]
"""Where a command lies, as `module:attribute` of `commands`, and what it does."""


class LazyGroup(HaftGroup):
    """A group that knows its commands by name and loads them when wanted."""

    def __init__(
        self,
        name: str,
        about: str,
        places: Mapping[str, Place | LazyGroup],
        short_forms: Mapping[str, tuple[str, str]] | None = None,
        meant: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, help=about, context_settings={"help_option_names": ["--help", "-h"]})
        self._places = places
        self._short_forms = short_forms or {}
        """Commands of a group below that may be called without its name: the group and the command."""
        self._meant = meant or {}
        """Words that other programs have for a command, and the command."""

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
        near = below or self._meant.get(name) or near_miss(name, self._places)
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
    "The tools there are, and calling them.",
    {
        "list": ("tools:list_tools", "Name, kind and first line of every tool."),
        "show": ("tools:show_tool", "One tool: description, parameters, effects, or its definition in another form."),
        "use": ("use:use_tool", "Call a tool."),
        "search": ("tools:search_tools", "Find tools by name, description and parameters."),
        "make": ("make:make_tool", "A fresh tool that works at once."),
        "check": ("check:check_tools", "What is wrong with tools, and how to mend it."),
    },
)

CHANGES: Final = LazyGroup(
    "changes",
    "Changes that are held back: tried, in conflict, touching a protected path, over a limit.",
    {
        "list": ("changes:list_held", "The runs that hold changes, and why."),
        "apply": ("changes:apply_changes", "Commit what a run holds."),
        "drop": ("changes:drop_changes", "Throw away what a run holds."),
    },
)

AUDIT: Final = LazyGroup(
    "audit",
    "The audit log: every call, in a chain that shows tampering.",
    {
        "verify": ("audit:verify_record", "Check every record and the head; exit 1 where something was altered."),
        "list": ("audit:list_record", "The newest records."),
        "export": ("audit:export_record", "All records as JSON lines, oldest first."),
    },
)

CONFIG: Final = LazyGroup(
    "config",
    "The settings.",
    {"show": ("config:show_config", "The settings in force, and where each comes from.")},
)

PERMISSIONS: Final = LazyGroup(
    "permissions",
    "The rules: which there are, and which one decides.",
    {
        "list": ("permissions.listing:list_rules", "The rules, in the order in which they count."),
        "test": ("permissions.testing:test_rules", "What would be decided about a call, by which rule, and why."),
        "add": ("permissions.changing:add_rule", "Write a rule into your own haft.toml, or the workspace's."),
        "remove": ("permissions.changing:remove_rule", "Take a rule of yours away, or a remembered answer."),
        "edit": ("permissions.editing:edit_rules", "Open your own haft.toml in your editor."),
        "replay": ("permissions.replaying:replay_rules", "What changed rules would have done to past calls."),
        "suggest": ("permissions.suggesting:suggest_rules", "Narrow rules that would have answered past approvals."),
    },
)

SKILLS: Final = LazyGroup(
    "skills",
    "Skills: what agents can be taught, and the tools that come with it.",
    {
        "list": ("skills:list_skills", "The skills there are, and which are active."),
        "show": ("skills:show_skill", "One skill: its text, or one of its references."),
        "activate": ("skills:activate_skill", "Let a skill's tools join."),
        "deactivate": ("skills:deactivate_skill", "Let a skill's tools leave."),
        "make": ("skills:make_skill", "A fresh skill."),
        "install": ("skills:install_skill", "Take in a skill from elsewhere."),
    },
)

PLUGINS: Final = LazyGroup(
    "plugins",
    "Plugins: those that are configured, and what git plugins are pinned to.",
    {
        "list": ("plugins:list_plugins", "The plugins there are, and where each comes from."),
        "update": ("plugins:update_plugins", "Fetch git plugins anew, and pin them."),
    },
)

TEMPLATES: Final = LazyGroup(
    "templates",
    "Agent Studio templates: checked, packed, taken in.",
    {
        "check": ("templates:check_templates", "What is wrong with templates."),
        "pack": ("templates:pack_templates", "Write templates into one ZIP."),
        "install": ("templates:install_templates", "Take in the templates of a ZIP."),
        "list": ("templates:list_templates", "The templates there are."),
        "build": ("templates:build_environment", "Make a template's environment."),
        "remove": ("templates:remove_template", "Remove a template."),
    },
)

TOOLBOX: Final = LazyGroup(
    "toolbox",
    "Toolbox executables, for whatever speaks the protocol.",
    {
        "wrap": ("toolbox:wrap_program", "Any command line as executables, one for each command."),
        "export": ("toolbox:export_tools", "Any tool as an executable that calls back into haft."),
    },
)

STORE: Final = LazyGroup(
    "store",
    "What is kept of runs: before-images and outputs.",
    {
        "show": ("store:show_store", "The disk it takes, and how many runs can be undone."),
        "prune": ("store:prune_store", "Keep it to its budget and its age."),
    },
)

HAFT: Final = LazyGroup(
    "haft",
    "One handle for every agent tool: host, decide, run, record.",
    {
        "tools": TOOLS,
        "log": ("log:log_runs", "Runs, newest first."),
        "show": ("log:show_run", "One run: its states, decision, limits, sandbox, arguments, changes."),
        "output": ("output:print_output", "The whole output of a run, as it was kept."),
        "watch": ("watch:watch_run", "Follow a run of any process."),
        "cancel": ("cancel:cancel_runs", "Stop a run of any process."),
        "diff": ("diff:print_diff", "What a run changed, as a patch."),
        "undo": ("undo:undo_runs", "Take back exactly what runs changed."),
        "redo": ("undo:redo_runs", "Bring back what was undone."),
        "changes": CHANGES,
        "inbox": ("inbox:list_inbox", "The calls that wait for a person."),
        "approve": ("inbox:approve_request", "Say yes to a call that waits."),
        "reject": ("inbox:reject_request", "Say no to a call that waits."),
        "permissions": PERMISSIONS,
        "skills": SKILLS,
        "plugins": PLUGINS,
        "templates": TEMPLATES,
        "toolbox": TOOLBOX,
        "store": STORE,
        "audit": AUDIT,
        "config": CONFIG,
        "trust": ("trust:trust_workspace", "Let a workspace's own configuration count where it widens."),
        "doctor": ("doctor:examine", "What this machine can do and what is broken."),
        "completion": ("completion:print_completion", "The completion script of a shell."),
        "help": ("help:print_help", "How a command is used."),
        "version": ("help:print_version", "The version."),
    },
    {"use": ("tools", "use"), "list": ("tools", "list")},
    {"ls": "list", "run": "use", "call": "use", "exec": "use"},
)
