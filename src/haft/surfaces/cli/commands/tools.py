"""`haft tools list`, `show` and `search`. They open no service, and start a process only to describe a new tool file.

Programs call these commands often, and people wait for them. So they import the registry and the built-in tools, but
neither pydantic nor the database.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from typing import Any, Final, get_args

import click

from haft.contracts import BadUsage, HaftError, Kind, Listing, ToolSpec, near_miss
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.screen.printing import facts, lines, say, table
from haft.surfaces.cli.words.definitions import after_dashes, parameter_lines
from haft.surfaces.text.sandbox import grant_words
from haft.surfaces.text.terminal import framed, is_terminal, one_line, styled, visible


def listings(options: Globals | None = None, *, describe: bool = True, thread: str | None = None) -> list[Listing]:
    """Every tool of a workspace, also those that cannot be called. With `describe`, haft describes new tool files;
    without it, no process is started."""
    from haft.service import ListedTools
    from haft.surfaces.cli.place import tell_ignored, workspace_of
    from haft.surfaces.text.home import state_home

    options = options or Globals(quiet=True)
    tools = ListedTools(workspace_of(options), state_home())
    if describe and tools.config is not None:
        tell_ignored(tools.config, options)
    if tools.fill() and describe:
        from haft.surfaces.cli.person.describe_tools import describe_new_tools

        describe_new_tools(tools, options)
    return tools.listings(thread)


def complete_names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: the tools that can be called."""
    from click.shell_completion import CompletionItem

    found: list[Listing] = []
    with contextlib.suppress(HaftError):  # Other commands report a broken configuration.
        found = listings(describe=False)
    return [
        CompletionItem(listing.spec.name, help=listing.spec.summary)
        for listing in found
        if listing.enabled and listing.spec.name.startswith(incomplete)
    ]


def find_listing(name: str, options: Globals | None = None) -> Listing:
    """The tool with this name or path. If several tools have the name, the one that can be called."""
    found = listings(options)
    if is_path(name) and all(listing.spec.name != name for listing in found):
        return _at(name, found, options or Globals())
    for listing in sorted(found, key=lambda one: not one.enabled):
        if listing.spec.name == name:
            return listing
    from haft.service import unknown_tool

    raise unknown_tool(name, found)


def is_path(name: str) -> bool:
    """Whether the name of a tool is a path."""
    return os.sep in name or name.startswith("~")


def _at(path: str, found: Iterable[Listing], options: Globals) -> Listing:
    """The tool at a path, whether or not a toolbox lists it."""
    from haft.service import ListedTools
    from haft.surfaces.cli.place import workspace_of
    from haft.surfaces.text.home import state_home

    full = os.path.abspath(os.path.expanduser(path))
    there = [listing for listing in found if listing.spec.origin == full and listing.enabled]
    if len(there) > 1:
        names = ", ".join(f"`{one.spec.name}`" for one in there)
        raise BadUsage(f"{full} holds several tools: {names}", hint="use the name of one of them")
    if there:
        return there[0]
    one = ListedTools(workspace_of(options), state_home()).ask_one(full)
    return Listing(one.spec, one.state, one.reason)


KINDS: Final = get_args(Kind)
LISTED_FORMS: Final = ("openai", "openai-responses", "anthropic", "mcp")
"""The forms that `service.tool_forms` has, named here because `--help` loads no service."""


@click.command("list", cls=HaftCommand)
@click.option("--source", metavar="KIND", help=f"List only tools of this kind: {', '.join(KINDS)}.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also list tools that cannot be called (broken, duplicate, disabled or inactive), each with the reason.",
)
@click.option(
    "--as",
    "form",
    type=click.Choice(LISTED_FORMS),
    help="Print the definitions of the tools as JSON, in this format.",
)
@click.pass_obj
def list_tools(options: Globals, source: str | None, everything: bool, form: str | None) -> None:
    """List the tools: name, kind, and the first line of the description. With `--as`, haft prints the definitions for
    the API of OpenAI (chat completions or Responses) or Anthropic, or for MCP."""
    found = [listing for listing in listings(options) if source is None or listing.spec.kind == source]
    if source is not None and not found and source not in KINDS:
        near = near_miss(source, KINDS)
        hint = f"did you mean `{near}`?" if near else f"the kinds are {', '.join(KINDS)}"
        raise BadUsage(f"there is no kind of tool called `{source}`", hint=hint)
    if form is not None:
        from haft.service import tool_definitions

        made, problems = tool_definitions(found, form)
        facts(made)
        for problem in problems:
            say(problem)
        return
    shown = [listing for listing in found if everything or listing.enabled]
    if options.json:
        facts([listing.to_json() for listing in shown])
        return
    _print(shown, with_state=everything)
    if len(shown) < len(found) and not options.quiet:
        say(f"{len(found) - len(shown)} more cannot be called: `haft tools list --all` says why")


@click.command("search", cls=HaftCommand)
@click.argument("words", nargs=-1, required=True, help="The words to look for.")
@click.pass_obj
def search_tools(options: Globals, words: tuple[str, ...]) -> None:
    """Find tools by name, description and parameters. The best match comes first."""
    from haft.service import NOT_DESCRIBED, search

    every = listings(options, describe=False)
    found = search((listing for listing in every if listing.enabled), " ".join(words))
    if options.json:
        facts([listing.to_json() for listing in found])
    elif found:
        _print(found, with_state=False)
    elif not options.quiet:
        say("no tool matches these words: `haft tools list` lists all")
    undescribed = sum(one.reason == NOT_DESCRIBED for one in every)
    if undescribed and not options.quiet:
        tools = "1 new tool file was" if undescribed == 1 else f"{undescribed} new tool files were"
        say(f"{tools} not searched: `haft tools list` describes new tools")


@click.command("show", cls=HaftCommand)
@click.argument("name", shell_complete=complete_names, help="The name of a tool, or the path of a tool file.")
@click.option(
    "--as", "form", type=click.Choice((*LISTED_FORMS, "amp")), help="Print the tool's definition in this format."
)
@click.pass_obj
def show_tool(options: Globals, name: str, form: str | None) -> None:
    """Show one tool: its description, parameters and effects. haft also lists the tool's files. If one of these files
    changes, earlier approvals of the tool no longer count. With `--as`, haft prints the tool's definition in the format
    of MCP, OpenAI, Anthropic or Amp."""
    listing = find_listing(name, options)
    if form is not None:
        from haft.service import SINGLE_FORMS

        facts(SINGLE_FORMS[form](listing.spec))
    elif options.json:
        shape = {"approval": _approval(listing.spec), "withheld": list(_withheld(listing.spec, options))}
        environment = {"environment": _environment(listing.spec, options)} if "template" in listing.spec.meta else {}
        spec = listing.spec
        touched = {"reads": spec.reads, "writes": spec.writes, "resource": spec.resource}
        facts({**listing.to_json(), **touched, **shape, **environment})
    else:
        lines(_described(listing, _withheld(listing.spec, options), options))


def _withheld(spec: ToolSpec, options: Globals) -> tuple[str, ...]:
    """The environment variables that a tool asks for and that are set in this process, but that its calls do not get,
    because no rule grants them to all calls of the tool."""
    from haft.service import withheld_from
    from haft.surfaces.cli.place import workspace_of
    from haft.surfaces.text.home import state_home

    return withheld_from(spec, workspace_of(options), state_home())


def _approval(spec: ToolSpec) -> dict[str, Any] | None:
    from haft.service import approval_of

    return approval_of(spec)


def _print(shown: Iterable[Listing], *, with_state: bool) -> None:
    shown = list(shown)
    rows = [
        (
            one.spec.name,
            one.spec.kind,
            *((one.state, one.reason or one.spec.summary) if with_state else (one.spec.summary,)),
        )
        for one in shown
    ]
    if not with_state or not is_terminal(sys.stdout):
        table(rows, style_first="bold")
        return
    # The reason why a tool cannot be called is never cut, because its end says what to do.
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
    for listing, row in zip(shown, rows, strict=True):
        padded = [cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)]
        table([(*padded, "" if listing.reason else row[3])], style_first="bold")
        if listing.reason:
            lines([f"    {one_line(listing.reason)}"])


_IN_PROCESS: Final = ("It runs in haft's own process, without a sandbox.",)
_REMOTE: Final = ("It runs on another machine: no sandbox confines it, and haft does not track its changes.",)
_IN_SANDBOX: Final = (
    "Approved calls see this machine read-only, without home directories, temporary directories and secrets.",
    "Calls that need no approval, and runs that only describe or preview, see only the workspace,",
    "the tool's own files, toolchains and the system: /usr, /bin, /sbin, /lib*, /etc.",
)


def _environment(spec: ToolSpec, options: Globals) -> dict[str, Any]:
    """The environment that a template's calls run in."""
    from haft.surfaces.cli.words.template_places import state_of_template

    template_state = state_of_template(spec.origin, options)
    return {"path": template_state.environment, "cold": template_state.cold}


def _environment_lines(environment: dict[str, Any]) -> Iterable[str]:
    yield styled("# Environment", "bold", sys.stdout)
    yield ""
    yield visible(environment["path"] or "Not built yet: the first call builds it.")
    if environment["cold"] is not None:
        yield visible(f"haft starts a new process for each call: {environment['cold']}.")
    yield ""


def _user_parameters(spec: ToolSpec) -> Iterable[str]:
    """The user parameters of a template, and whether each is set; never the value."""
    declared = spec.meta.get("template", {}).get("userParameters", ())
    if not declared:
        return
    yield styled("# User parameters", "bold", sys.stdout)
    yield ""
    for one in declared:
        state = "set" if one["set"] else "not set" if one["required"] else "not set, optional"
        description = " ".join(one["description"].split())
        yield visible(f"- {one['name']} ({one['type']}; {state}): {description}").removesuffix(": ")
    yield ""
    yield "Set them in [[templates.instances]] of haft.toml, or for one call with `--config NAME=VALUE`."
    yield ""


def _effect_lines(spec: ToolSpec) -> Iterable[str]:
    claimed = [name for name, holds in spec.effects.to_json().items() if holds]
    server = spec.meta.get("mcp", {})
    if claimed:
        yield ", ".join(claimed)
    elif (server.get("definition", {}).get("annotations") or {}).get("readOnlyHint") is True:
        yield "Its server says that the tool only reads. haft believes this only if you say so:"
        yield visible(f"`haft providers trust {server['server']} --annotations`.")
    else:
        yield "The tool claims nothing, so it may change anything."


def _footprint_lines(spec: ToolSpec) -> Iterable[str]:
    """What a call reads and writes, if the tool declares it."""
    for verb, names in (("reads", spec.reads), ("writes", spec.writes)):
        if names is not None and not (verb == "writes" and spec.effects.readonly):
            listed = " and ".join(f"`{name}`" for name in names)
            yield f"It {verb} the paths in {listed}." if names else f"It {verb} no file of the workspace."
    if spec.resource is not None:
        yield f"Its calls use {spec.resource} one after another."


def _cache_line(spec: ToolSpec) -> str:
    """Whether answers are given again."""
    why_not = spec.why_not_kept
    if why_not is not None:
        return f"Its answers are not cached: {why_not}."
    if spec.commands:
        return "Its answers are cached if the output of the command line follows from its words and the files it names."
    return "Its answers are cached until a file that they depend on changes."


def _described(listing: Listing, withheld: tuple[str, ...], options: Globals) -> Iterable[str]:
    spec = listing.spec
    word = "toolbox" if spec.kind == "amp-toolbox" else spec.kind
    yield styled(visible(f"# {spec.name} ({word}: {spec.origin})"), "bold", sys.stdout)
    yield ""
    if listing.state != "ready" or listing.reason:
        yield visible(f"{listing.state}: {listing.reason}")
        yield ""
    if spec.kind == "mcp":  # A server could write headings and sentences that look like haft's own.
        yield from framed(spec.description.strip())
    else:
        yield visible(spec.description.strip())
    yield ""
    yield styled("# Schema", "bold", sys.stdout)
    yield ""
    yield from [visible(line) for line in parameter_lines(spec.input_schema)] or ["It takes no parameters."]
    yield from map(visible, after_dashes(spec))
    yield ""
    if (box := spec.meta.get("toolbox")) is not None and box["form"] == "text":
        mark = box["separator"]
        yield f"haft passes its arguments as lines of text: `name{mark}value`."
        yield ""
    yield from _user_parameters(spec)
    if "template" in spec.meta:
        yield from _environment_lines(_environment(spec, options))
    yield styled("# Effects", "bold", sys.stdout)
    yield ""
    yield from _effect_lines(spec)
    yield from map(visible, _footprint_lines(spec))
    if spec.effects.readonly or spec.commands:
        yield visible(_cache_line(spec))
    yield ""
    yield styled("# Sandbox", "bold", sys.stdout)
    yield ""
    yield from _IN_SANDBOX if spec.has_processes else _REMOTE if spec.hosting == "remote" else _IN_PROCESS
    if withheld:
        from haft.service import grant_words as passing_words

        yield ""
        are = "is" if len(withheld) == 1 else "are"
        yield f"It asks for {', '.join(withheld)}, which {are} set here and {are} withheld from it;"
        yield visible(f"{passing_words(withheld, spec.name, entry=spec.grants_entry)}.")
    if spec.hosting == "session":
        yield ""
        yield styled("# Process", "bold", sys.stdout)
        yield ""
        yield "One process answers all calls, and keeps running between them. It may read the workspace."
        yield f"Other grants: {grant_words(spec.grants)}."
        if not spec.keeps_state:
            yield "It keeps no state: a call with grants of its own gets a process of its own."
    approval = _approval(spec)
    if approval is None or not approval["files"]:
        return
    yield ""
    yield styled("# Approval", "bold", sys.stdout)
    yield ""
    yield "An approval covers the definition above and these files:"
    for path, digest in approval["files"].items():
        yield visible(f"  {path} ({f'sha256 {digest[:16]}' if len(digest) == 64 else digest})")
    if approval["unresolved"]:
        yield "It does not cover the files that are loaded here, because haft cannot know them before the call:"
        yield from (visible(f"  {each}") for each in approval["unresolved"])
