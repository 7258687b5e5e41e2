"""`haft tools check`: finds problems in tools of any format, says how to fix them, and fixes those that can be fixed
safely.

haft describes every executable again, in a read-only sandbox, and does not use the results of earlier listings.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

import click

from haft.contracts import BadUsage, DescribeLauncher, Listing, UnknownTool
from haft.surfaces.cli.commands.tools import complete_names, listings
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import tell_what_is_logged, workspace_of
from haft.surfaces.cli.screen.printing import facts, lines, say, warn
from haft.surfaces.cli.words.parameters import OPTIONS
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import one_line, styled, visible

if TYPE_CHECKING:
    from haft.authoring.check import Code, Report, Target
    from haft.service import Discovery

RESERVED: Final = frozenset(option.removeprefix("--") for option in OPTIONS)
"""Names of parameters that are also options of haft. On the command line, such parameters must come after a bare
`--`."""
_STYLES: Final = {"error": "bad", "warning": "warn", "note": "dim"}


def complete_what(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: tools and files."""
    from click.shell_completion import CompletionItem

    return [*complete_names(context, parameter, incomplete), CompletionItem(incomplete, type="file")]


def complete_codes(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: the codes of findings."""
    from click.shell_completion import CompletionItem

    from haft.authoring.check import CODES

    return [CompletionItem(code.code, help=code.meaning) for code in CODES.values() if code.code.startswith(incomplete)]


@click.command("check", cls=HaftCommand)
@click.argument(
    "what",
    metavar="[PATH|NAME]...",
    nargs=-1,
    shell_complete=complete_what,
    help="A file, a folder, a skill, or the name of a loaded tool. Default: the workspace's .agents/tools and all "
    "loaded tools.",
)
@click.option(
    "--explain",
    metavar="CODE",
    shell_complete=complete_codes,
    help="Explain the problem that has this code, and how to fix it.",
)
@click.option(
    "--fix",
    is_flag=True,
    help="Fix four kinds of problems: a missing execute permission, write permission for all users, Windows line "
    "ends, and a byte order mark.",
)
@click.option(
    "--conformance",
    is_flag=True,
    help="Also call the tools at the given paths: with a few odd arguments, in the sandbox, in an empty directory that "
    "is removed afterwards.",
)
@click.pass_context
def check_tools(
    context: click.Context, what: tuple[str, ...], explain: str | None, fix: bool, conformance: bool
) -> None:
    """Find problems in tools of any format, and say how to fix each problem. The exit code is 1 if there are errors."""
    options = context.find_object(Globals) or Globals()
    if explain is not None:
        if what or fix or conformance:
            raise BadUsage(
                "`--explain` cannot be combined with tools, `--fix` or `--conformance`",
                hint=f"`haft tools check --explain {explain}`",
            )
        _explain(explain, options)
        return
    discovery = _discovery(options)
    called = _called_paths(what, options) if conformance else []
    words = _but_configurations(what) if conformance else what
    targets, loaded = _targets(words, options, discovery) if words or not conformance else ([], [])
    reports = _check(targets, loaded, options, discovery, fix=fix)
    if called:
        reports = _with_calls(reports, called)
    if options.json:
        facts([report.to_json() for report in reports])
    else:
        lines(line for report in reports for line in lines_of(report))
        if not options.quiet:
            sum_up(reports)
    context.exit(0 if all(report.ok for report in reports) else 1)


def _targets(words: Sequence[str], options: Globals, discovery: Discovery) -> tuple[list[Target], list[Listing]]:
    """The files to check, and the loaded tools that have no file to check."""
    from haft.authoring.check import targets_of
    from haft.service import PROJECT

    targets: list[Target] = []
    loaded: list[Listing] = []
    known: list[Listing] | None = None
    workspace, sources = workspace_of(options), discovery.every_source()
    for word in words:
        if os.sep in word or word in (os.curdir, os.pardir):
            targets += targets_of(sources, os.path.expanduser(word), workspace)
            continue
        known = listings(options) if known is None else known
        listing = _loaded_tool(word, known)
        if listing is not None:
            _sort_in(listing, workspace, discovery, targets, loaded)
        else:
            targets += targets_of(sources, word, workspace)
    if not words:
        project = os.path.join(workspace, PROJECT)
        targets += targets_of(sources, project, workspace) if os.path.isdir(project) else []
        for listing in listings(options, describe=False):
            if listing.spec.kind != "builtin":
                _sort_in(listing, workspace, discovery, targets, loaded)
    once: dict[str, Target] = {}
    for target in targets:
        once.setdefault(os.path.abspath(target.path), target)
    return list(once.values()), loaded


def _loaded_tool(word: str, found: Sequence[Listing]) -> Listing | None:
    """The loaded tool with this name; None if the word is a path."""
    for listing in sorted(found, key=lambda one: not one.enabled):
        if listing.spec.name == word:
            return listing
    if not os.path.lexists(word):
        raise UnknownTool(word[:80], (listing.spec.name for listing in found))
    return None


def _sort_in(
    listing: Listing, workspace: str, discovery: Discovery, targets: list[Target], loaded: list[Listing]
) -> None:
    from haft.authoring.check import Target, placed

    if discovery.is_checked_at_origin(listing):
        targets.append(placed(Target(listing.spec.origin, listing.source), workspace))
    else:
        loaded.append(listing)


def _check(
    targets: Sequence[Target], loaded: Sequence[Listing], options: Globals, discovery: Discovery, *, fix: bool
) -> list[Report]:
    import asyncio

    from haft.authoring.check import check_listing
    from haft.service import probe_launcher

    reports: list[Report] = []
    if targets:
        tell_what_is_logged(options)
        with probe_launcher(workspace_of(options), state_home()) as launcher:
            reports += asyncio.run(_check_and_fix(targets, launcher, options, discovery, fix=fix))
    is_mcp = any(listing.spec.kind == "mcp" for listing in loaded)
    others = listings(options, describe=False) if is_mcp else ()
    return reports + [check_listing(listing, RESERVED, others) for listing in loaded]


def _called_paths(words: Sequence[str], options: Globals) -> list[str]:
    """The paths of the tools to call. A tool that is named is called by the path of its file."""
    if not words:
        raise BadUsage(
            "`--conformance` calls tools, so it needs their names or paths",
            hint="for a tool of an MCP server or a command line, name its `haft.toml` or `.mcp.json`",
        )
    found = []
    for word in words:
        if os.path.lexists(path := os.path.expanduser(word)):
            found.append(path)
            continue
        listing = _loaded_tool(word, listings(options))
        if listing is None or not os.path.isabs(listing.spec.origin) or not os.path.lexists(listing.spec.origin):
            raise BadUsage(
                f"`--conformance` cannot call `{word}` by its name, because it comes from no single file",
                hint="name the `haft.toml` or `.mcp.json` that configures it",
            )
        found.append(listing.spec.origin)
    return list(dict.fromkeys(found))


def _but_configurations(words: Sequence[str]) -> list[str]:
    """The words without configuration files, which are no tools themselves."""
    from haft.testing.conformance import is_configuration

    return [word for word in words if not is_configuration(word)]


def _with_calls(reports: Sequence[Report], paths: Sequence[str]) -> list[Report]:
    """The reports, with the findings of calls added to those about the same tools."""
    import asyncio

    from haft.testing.conformance import check_tools

    found = list(reports)
    for path in paths:
        for called in asyncio.run(check_tools(path)):
            at = next((index for index, each in enumerate(found) if each.name == called.name), None)
            if at is None:
                found.append(called)
            else:
                found[at] = found[at].with_more(called.findings)
    return found


def _discovery(options: Globals) -> Discovery:
    from haft.service import Discovery, load_config

    discovery = Discovery(workspace_of(options), state_home(), os.environ)
    discovery.configure(load_config(workspace_of(options), os.environ, trust_home=state_home().path))
    return discovery


async def _check_and_fix(
    targets: Sequence[Target], launcher: DescribeLauncher, options: Globals, discovery: Discovery, *, fix: bool
) -> list[Report]:
    from haft.authoring.check import apply_fixes, check_targets

    sources = discovery.every_source()
    found = await check_targets(sources, targets, launcher, RESERVED)
    changed: dict[int, list[str]] = {}
    for at, reports in enumerate(found) if fix else ():
        mended = apply_fixes((finding for report in reports for finding in report.findings), workspace_of(options))
        for finding, done in mended.done:
            changed.setdefault(at, []).append(finding.code)
            if not options.quiet:
                say(f"{one_line(finding.path or targets[at].path)}: fixed {finding.code}: {done}")
        for finding, why in mended.refused:
            warn(f"{one_line(finding.path or targets[at].path)}: {finding.code} could not be fixed: {why}")
    if changed:
        # Check all targets again, because a fix for one of them, such as of a directory's rights, may also fix others.
        found = await check_targets(sources, targets, launcher, RESERVED)
    for at, codes in changed.items():
        found[at] = [found[at][0].with_fixed(codes), *found[at][1:]]
    return [report for reports in found for report in reports]


def lines_of(report: Report, stream: IO[Any] | None = None) -> Iterator[str]:
    """The findings of a report as lines for people. `stream` is where they are printed."""
    for finding in report.findings:
        where = finding.path or report.target
        if finding.line is not None:
            where = f"{where}:{finding.line}"
        level = styled(finding.level, _STYLES[finding.level], stream or sys.stdout)
        yield f"{one_line(where)}: {level} {finding.code}: {one_line(finding.message)}"
        if finding.hint:
            yield f"    hint: {one_line(finding.hint)}"


def sum_up(reports: Sequence[Report]) -> None:
    """Print on stderr how many findings there are."""
    if not reports:
        say("there is nothing to check")
        return
    counts = [_many(sum(report.count(level) for report in reports), level) for level in _LEVELS]
    found = ", ".join(count for count in counts if count) or "no problems"
    say(f"{len(reports)} checked: {found}")
    fixable = sum(finding.fixable for report in reports for finding in report.findings)
    if fixable:
        say(f"hint: `--fix` fixes {fixable} of them")
    if any(report.findings for report in reports):
        say("hint: `haft tools check --explain CODE` explains a code")


_LEVELS: Final = ("error", "warning", "note")


def _many(count: int, level: str) -> str:
    return f"{count} {level}{'s' * (count != 1)}" if count else ""


def _explain(word: str, options: Globals) -> None:
    from haft.authoring.check import CODES, code_of

    sources = () if word in CODES else _discovery(options).every_source()
    code = code_of(word, (code for source in sources for code in source.codes))
    if options.json:
        facts(code.to_json())
    else:
        lines(visible(line) for line in _explained(code))


def _explained(code: Code) -> Iterable[str]:
    yield f"{code.code} ({code.level}{', `--fix` fixes it' if code.fixable else ''})"
    yield ""
    yield code.meaning
    yield ""
    yield from textwrap.wrap(code.explanation, 100)
    for title, example in (("Wrong:", code.bad), ("Right:", code.good)):
        yield ""
        yield title
        yield from (f"    {line}" for line in example.splitlines())
