"""`haft permissions add` and `remove`: change the rules in a haft.toml, and remove remembered answers."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from haft.contracts import BadConfig, BadUsage, ToolSpec, network_json
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import require_person, workspace_of
from haft.surfaces.cli.screen.printing import facts, lines, say, warn
from haft.surfaces.cli.words.network_option import CommandWithNetwork, network_option
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import one_line

if TYPE_CHECKING:
    from haft.service import RuleChange


@click.command("add", cls=CommandWithNetwork)
@click.argument(
    "action",
    metavar="ACTION",
    help="allow, ask, reject, try (the call becomes a trial run) or delegate (a program decides).",
)
@click.argument(
    "tool",
    metavar="TOOL",
    help="The name of a tool, or KIND:NAME with a kind from `haft tools list`. `*` matches any text.",
)
@click.option(
    "--match",
    "matches",
    metavar="ARG=PATTERN",
    multiple=True,
    help="Only for calls whose argument ARG matches PATTERN.",
)
@click.option(
    "--context",
    metavar="C",
    help="`thread`: only for calls by the agent itself. `subagent`: only for calls by sub-agents.",
)
@click.option("--to", metavar="PROGRAM", help="With the action delegate: the program that decides.")
@click.option("--message", metavar="TEXT", help="With the action reject: a message for the model.")
@network_option("Matching calls can use the whole network.")
@click.option("--scratch", is_flag=True, help="With --network: matching calls can use the /tmp of their thread.")
@click.option("--read", metavar="PATH", multiple=True, help="Matching calls can also read PATH (repeatable).")
@click.option("--write", metavar="PATH", multiple=True, help="Matching calls can also write to PATH (repeatable).")
@click.option("--env", metavar="NAME", multiple=True, help="Matching calls get this environment variable (repeatable).")
@click.option(
    "--danger",
    "dangers",
    metavar="D",
    multiple=True,
    help="With the action allow: the rule also allows matching commands that have danger D, such as recursive-delete. "
    "With the action reject: the rule matches only commands that have danger D (repeatable).",
)
@click.option(
    "--isolation",
    type=click.Choice(["snapshot", "serial"]),
    help="How matching calls are isolated from other callers. Default: as the setting changes.isolation says.",
)
@click.option(
    "--first/--last", "is_first", default=True, help="Put the rule before or after all other rules. Default: before."
)
@click.option(
    "--in",
    "place",
    type=click.Choice(["workspace", "user"]),
    default="user",
    help="The haft.toml to write to. Default: user.",
)
@click.pass_obj
def add_rule(
    options: Globals, /, action: str, tool: str, matches: tuple[str, ...], is_first: bool, place: str, **more: Any
) -> None:
    """Add a rule to your own haft.toml or, with `--in workspace`, to the workspace's haft.toml. If the file does not
    exist, haft creates it. haft prints the file and the line of the rule.

    The first matching rule decides. So haft puts the new rule before all others; with `--last`, after all others. haft
    refuses a rule that can never match. If no tool has this name yet, haft adds the rule and prints a warning.

    In a PATTERN, `*` matches any text, and `/…/` is a regular expression. If you repeat `--match` with the same ARG,
    one of the patterns must match. haft compares a PATTERN for the argument `command` with each single command of a
    command line."""
    from haft.service import RuleChanges, this_user

    require_person("permissions add")
    specs = _specs()
    rule: dict[str, Any] = {"tool": tool}
    if matches:
        rule["matches"] = _matchers(matches, tool, specs)
    rule["action"] = action
    rule |= {name: more[name] for name in ("context", "to", "message", "isolation") if more[name] is not None}
    lists = {name: [*more[name]] for name in ("env", "read", "write") if more[name]}
    opened = {"network": network_json(more["network"]), "scratch": more["scratch"]}
    if grant := {**{name: value for name, value in opened.items() if value}, **lists}:
        rule["grant"] = grant
    if more["dangers"]:
        rule["dangers"] = list(more["dangers"])
    in_workspace = place == "workspace"
    rules = RuleChanges(
        workspace_of(options) if in_workspace else workspace_or_none(options), state_home(), this_user()
    )
    added = rules.add(rule, specs, in_workspace=in_workspace, is_first=is_first)
    _tell(options, added, f"added at {added.place}")
    if place == "workspace" and not options.quiet and (action not in ("ask", "reject") or grant):
        say("the rule is the workspace's: it counts after `haft trust`, for you and for everyone who works there")
    _tell_trust_lost(added, options)
    for name in more["env"]:
        if name not in os.environ:
            warn(f"{name} is not set here: set {name} before a call that needs it")
    if added.missing is not None:
        warn(added.missing)


@click.command("remove", cls=HaftCommand)
@click.argument(
    "source",
    metavar="SOURCE",
    help="The place of the rule, as `haft permissions list` prints it: FILE:LINE, or `remembered:3` for a remembered "
    "answer.",
)
@click.pass_obj
def remove_rule(options: Globals, source: str) -> None:
    """Remove a rule or a remembered answer. haft prints which file it changed."""
    from haft.service import RuleChanges, this_user

    require_person("permissions remove")
    workspace = workspace_of(options) if source.startswith("remembered:") else workspace_or_none(options)
    removed = RuleChanges(workspace, state_home(), this_user()).remove(source)
    if removed.file is None:
        _tell(options, removed, f"removed {source}")
        return
    shown = json.dumps(removed.rule, default=str, ensure_ascii=False)
    _tell(options, removed, f"removed from {removed.place}: {shown}")
    _tell_trust_lost(removed, options)


def _tell(options: Globals, change: RuleChange, sentence: str) -> None:
    if options.json:
        facts(change.to_json())
    else:
        lines([one_line(sentence)])


def workspace_or_none(options: Globals) -> str | None:
    """The workspace; None if there is no workspace. This is no error, because the user's rules can be changed without a
    workspace."""
    with contextlib.suppress(BadConfig):
        return workspace_of(options)
    return None


def _specs() -> list[ToolSpec]:
    from haft.surfaces.cli.commands.tools import listings

    return [listing.spec for listing in listings()]


def _matchers(given: Iterable[str], tool: str, specs: Iterable[ToolSpec]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for text in given:
        name, equals, pattern = text.partition("=")
        if not (name and equals):
            raise BadUsage(
                f"`--match` is given as ARG=PATTERN, not `{text[:80]}`",
                hint="for example `--match 'command=make *'` for the tool `shell`",
            )
        found.setdefault(name, []).append(_matcher(name, pattern, tool, specs))
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _matcher(name: str, pattern: str, tool: str, specs: Iterable[ToolSpec]) -> Any:
    """The value for a rule to match: `pattern` as text, or as a number or boolean if no tool that the rule names takes
    a text as this argument."""
    from haft.service import name_matches
    from haft.surfaces.cli.words.definitions import parameters, types_of

    types: set[str] = set()
    for spec in specs:
        known = parameters(spec.input_schema)
        if name in known and name_matches(tool, spec.name, spec.kind):
            types |= types_of(known[name], spec.input_schema) or {"string"}
    if not types or "string" in types:
        return pattern
    try:
        value = json.loads(pattern)
    except (ValueError, RecursionError):
        return pattern
    return value if isinstance(value, bool | int | float) else pattern


def _tell_trust_lost(change: RuleChange, options: Globals) -> None:
    if change.loses_trust and not options.quiet:
        say("the file has changed since you trusted it: its trusted settings do not count until `haft trust`")
