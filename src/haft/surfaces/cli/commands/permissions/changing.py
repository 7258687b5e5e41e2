"""`haft permissions add` and `remove`: rules of the user's own haft.toml or a workspace's, and remembered answers."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import click

from haft.config.standing import user_file
from haft.contracts import BadConfig, BadUsage, ToolSpec
from haft.surfaces.cli.commands.permissions.own_file import OwnFile
from haft.surfaces.cli.commands.permissions.toml_text import with_rule, without_rule
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.home import state_home
from haft.surfaces.cli.place import workspace_of
from haft.surfaces.cli.screen.printing import facts, lines, say, warn
from haft.surfaces.cli.screen.terminal import one_line

_REMEMBERED: Final = re.compile(r"remembered:([0-9]{1,18})")
_PLACED: Final = re.compile(r"(.+):([0-9]{1,9})")


@click.command("add", cls=HaftCommand)
@click.argument("action", metavar="ACTION", help="allow, ask, reject, try or delegate.")
@click.argument("tool", metavar="TOOL", help="A name in which `*` is anything, or KIND: and such a name.")
@click.option("--match", "matches", metavar="ARG=PATTERN", multiple=True, help="Only where the argument is like this.")
@click.option("--context", metavar="C", help="Only for calls of a `thread` itself, or of a `subagent`.")
@click.option("--to", metavar="PROGRAM", help="Whom to ask, where the action is delegate.")
@click.option("--message", metavar="TEXT", help="Told to the model, where the action is reject.")
@click.option("--network", is_flag=True, help="What it lets pass may use the network.")
@click.option("--scratch", is_flag=True, help="With --network: what it lets pass sees its thread's /tmp too.")
@click.option("--read", metavar="PATH", multiple=True, help="What it lets pass may read there too.")
@click.option("--write", metavar="PATH", multiple=True, help="What it lets pass may write there too.")
@click.option("--env", metavar="NAME", multiple=True, help="What it lets pass gets this variable; may be repeated.")
@click.option("--danger", "dangers", metavar="D", multiple=True, help="A class of danger that it allows or rejects.")
@click.option("--first/--last", "is_first", default=True, help="Before or after the other rules. Default: first.")
@click.option(
    "--in",
    "place",
    type=click.Choice(["workspace", "user"]),
    default="user",
    help="Whose haft.toml it is written into. Default: user.",
)
@click.pass_obj
def add_rule(
    said: Globals, /, action: str, tool: str, matches: tuple[str, ...], is_first: bool, place: str, **more: Any
) -> None:
    """Write a rule into your own haft.toml, or into the workspace's, and say which file that is. The file is made where
    there is none. The first rule that fits decides, so the new one stands first unless `--last` is given. A rule that
    can never match is refused, and so is one that would leave the file broken; a rule for a tool that is not here is
    written, with a warning, since the tool may come later. Patterns: `*` is anything, `/…/` is a
    regular expression, a repeated ARG means any of them; an argument that is a command is held against each simple
    command of the line."""
    from haft.policy.rules.missing import what_is_missing
    from haft.policy.rules.reading import rule_from

    specs = _specs()
    rule: dict[str, Any] = {"tool": tool}
    if matches:
        rule["matches"] = _matchers(matches, tool, specs)
    rule["action"] = action
    rule |= {name: more[name] for name in ("context", "to", "message") if more[name] is not None}
    lists = {name: [*more[name]] for name in ("env", "read", "write") if more[name]}
    if grant := {**{name: True for name in ("network", "scratch") if more[name]}, **lists}:
        rule["grant"] = grant
    if more["dangers"]:
        rule["dangers"] = list(more["dangers"])
    file = _file_in(place, said)
    file.check(file.text, workspace_or_none(said))
    text, line = with_rule(file.text, rule, is_first=is_first)
    source = f"{file.shown}:{line}"
    try:
        file.check(text, workspace_or_none(said))
        _require_fitting(rule, specs, source)
    except BadConfig as error:
        why = error.message.removeprefix(f"{source}: ")  # Nothing is written there.
        raise BadUsage(f"the rule was not written: {why}", hint=error.hint) from error
    lost = place == "workspace" and _loses_trust(file, file.text, said)
    file.write(text)
    written = f"{file.path if place == 'workspace' else file.shown}:{line}"
    _tell(said, {"source": source, "file": file.path, "line": line, "rule": rule}, f"added at {written}")
    if place == "workspace" and not said.quiet and (action not in ("ask", "reject") or grant):
        say("it is the workspace's rule: it counts after `haft trust`, for you and for whoever else works there")
    _tell_trust_lost(lost, said)
    for name in more["env"]:
        if name not in os.environ:
            warn(f"{name} is not set here: set {name} before a call that needs it")
    missing = what_is_missing(rule_from(rule, origin="user", source=source), specs)
    if missing is not None:
        warn(missing)


@click.command("remove", cls=HaftCommand)
@click.argument("source", metavar="SOURCE", help="As `haft permissions list` prints it: `remembered:3`, a file:line.")
@click.pass_obj
def remove_rule(said: Globals, source: str) -> None:
    """Take away a rule of your own haft.toml or of the workspace's, or an answer that was remembered in this workspace,
    and say which file was changed."""
    remembered = _REMEMBERED.fullmatch(source)
    if remembered is not None:
        _forget(int(remembered[1]), workspace_of(said))
        _tell(said, {"source": source, "file": None, "line": None, "rule": None}, f"{source} is forgotten")
        return
    placed = _PLACED.fullmatch(source)
    if placed is None:
        raise BadUsage(f"`{source[:80]}` names no rule", hint="`haft permissions list` shows where each is written")
    file = _file_named(placed[1], said)
    line = int(placed[2])
    rules = file.tables()
    try:
        number = file.lines().index(line)
    except ValueError:
        raise BadUsage(
            f"no rule begins at line {line} of {file.path}", hint="`haft permissions list` shows where each is written"
        ) from None
    text = without_rule(file.text, number)
    try:
        file.check(text, workspace_or_none(said))
    except BadConfig as error:
        raise BadUsage(f"the rule was not removed: {error.message}", hint=error.hint) from error
    is_own = file.path == user_file(os.environ)
    lost = not is_own and _loses_trust(file, text, said)
    file.write(text)
    rule = rules[number]
    shown = json.dumps(rule, default=str, ensure_ascii=False)
    where = f"{file.shown if is_own else file.path}:{line}"
    shape = {"source": f"{file.shown}:{line}", "file": file.path, "line": line, "rule": rule}
    _tell(said, shape, f"removed from {where}: {shown}")
    _tell_trust_lost(lost, said)


def _file_in(place: str, said: Globals) -> OwnFile:
    return OwnFile.read() if place == "user" else OwnFile.of_workspace(workspace_of(said))


def _tell(said: Globals, shape: Mapping[str, Any], sentence: str) -> None:
    if said.json:
        facts(shape)
    else:
        lines([one_line(sentence)])


def workspace_or_none(said: Globals) -> str | None:
    """Where examples are held to run; none is needed to write a rule."""
    with contextlib.suppress(BadConfig):
        return workspace_of(said)
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
    """A text, unless the tools that are meant take a number or a boolean there and no text."""
    from haft.policy.rules.names import name_fits
    from haft.surfaces.cli.words.definitions import parameters, types_of

    types: set[str] = set()
    for spec in specs:
        known = parameters(spec.input_schema)
        if name in known and name_fits(tool, spec.name, spec.kind):
            types |= types_of(known[name], spec.input_schema) or {"string"}
    if not types or "string" in types:
        return pattern
    try:
        value = json.loads(pattern)
    except (ValueError, RecursionError):
        return pattern
    return value if isinstance(value, bool | int | float) else pattern


def _require_fitting(rule: Mapping[str, Any], specs: Iterable[ToolSpec], source: str) -> None:
    """The arguments that it names are ones that the tools of this machine take."""
    from haft.policy.rules.never import check_rule
    from haft.policy.rules.reading import rule_from
    from haft.policy.rules.shapes import shapes_of

    check_rule(rule_from(rule, origin="user", source=source), shapes_of(specs))


def _forget(number: int, workspace: str) -> None:
    from haft.service.remembered import forget_rule

    if not forget_rule(state_home(), workspace, number):
        raise BadUsage(f"nothing is remembered as number {number} in {workspace}", hint="`haft permissions list`")


def _file_named(named: str, said: Globals) -> OwnFile:
    """The file that a source names: the user's own, or the workspace's, which sources name by its name alone."""
    own = OwnFile.read()
    if named in (own.shown, own.path):
        return own
    from haft.config.files import workspace_config

    workspace = workspace_or_none(said)
    theirs = None if workspace is None else workspace_config(workspace)
    if workspace is not None and theirs is not None and named in (theirs.path, theirs.shown):
        return OwnFile.of_workspace(workspace)
    if named != os.path.basename(own.path):
        also = "" if theirs is None else f", the workspace's is {theirs.shown}"
        raise BadUsage(f"`{named[:200]}` is no file with rules of yours", hint=f"your own file is {own.shown}{also}")
    return own


def _loses_trust(file: OwnFile, left: str, said: Globals) -> bool:
    """Whether a workspace's file is trusted until it is written, and something of `left` counts only by that."""
    from haft.config.config import configured
    from haft.config.files import ConfigFile
    from haft.config.trusting import is_trusted

    workspace = workspace_of(said)
    if not is_trusted(state_home().path, workspace, ConfigFile(file.path, file.text.encode(), file.shown)):
        return False
    now = ConfigFile(file.path, left.encode(), file.shown)
    return bool(configured(workspace, now, os.environ, trusted=False).ignored)


def _tell_trust_lost(lost: bool, said: Globals) -> None:
    if lost and not said.quiet:
        say("the file has changed since you trusted it: what you trusted in it does not count until `haft trust`")
