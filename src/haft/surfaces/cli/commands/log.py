"""`haft log` and `haft show`: the runs of every process."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from haft.contracts import STATUSES, BadUsage, near_miss
from haft.surfaces.cli.commands.tools import complete_names
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import change_sets, find_changed, history, history_with, workspace_of, workspace_quietly
from haft.surfaces.cli.screen.printing import data, facts, lines, say, table, verbatim
from haft.surfaces.cli.screen.progress import waiting_words
from haft.surfaces.cli.screen.task_lines import transcript_lines
from haft.surfaces.cli.words.change_states import became_of
from haft.surfaces.cli.words.run_completion import complete_run, complete_status
from haft.surfaces.cli.words.times import clock, lasted, moment, since
from haft.surfaces.text.home import state_home
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.requests import AGENT_SAYS
from haft.surfaces.text.sandbox import limits_lines, sandbox_lines
from haft.surfaces.text.terminal import is_terminal, one_line, styled, visible, width

if TYPE_CHECKING:
    from haft.service import ChangesFacade, ChangesPart, Filter, History, RunRecord, Transcript

ROOMY: Final = 100
"""A terminal with at least this width has room for every column in full."""
NARROW_WHO: Final = 8
NARROW_TOOL: Final = 18
USUAL_LIMIT: Final = 50
PAGE: Final = 500
"""How many runs `--json-lines` reads at once."""
MOST_REPORTED: Final = 1_000_000
MOST_FILES: Final = 100
"""How many changed files `haft show` lists for a person."""


@click.command("log", cls=HaftCommand)
@click.option("--tool", metavar="T", shell_complete=complete_names, help="Only runs of this tool.")
@click.option(
    "--status",
    metavar="S",
    shell_complete=complete_status,
    help=f"Only runs with this status. One of: {', '.join(STATUSES)}.",
)
@click.option("--path", metavar="FILE", type=click.Path(), help="Only runs that changed this file.")
@click.option(
    "--host",
    metavar="H",
    help="Only runs that connected, or tried to connect, to this host; `*.H`: to any name below H.",
)
@click.option("--who", metavar="U", help="Only runs of this user or agent, such as `claude-code`.")
@click.option("--thread", metavar="T", help="Only runs of this thread.")
@click.option("--parent", metavar="RUN", shell_complete=complete_run, help="Only runs of calls that this run made.")
@click.option(
    "--since",
    "after",
    metavar="T",
    help="Only runs since this time: `2h` (two hours ago), `30m`, `1d`, a date or an ISO time.",
)
@click.option("--until", "before", metavar="T", help="Only runs before this time.")
@click.option(
    "--json-lines", is_flag=True, help="Print all these runs, each as one line of JSON, instead of the newest ones."
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    help=f"List at most N runs. Default: {USUAL_LIMIT}; with --stat, all.",
)
@click.option(
    "--stat",
    is_flag=True,
    help="Print a report instead: calls, approvals, changed files, and what can be undone.",
)
@click.pass_obj
def log_runs(
    options: Globals,
    /,
    after: str | None,
    before: str | None,
    json_lines: bool,
    status: str | None,
    path: str | None,
    host: str | None,
    limit: int | None,
    stat: bool,
    **wanted: Any,
) -> None:
    """List the runs of all processes and workspaces, newest first. With `-w`, list only the runs of that workspace."""
    from haft.service import Filter

    _check_status(status)
    earliest, latest = (None if word is None else since(word) for word in (after, before))
    with history() as kept:
        if kept is not None and wanted["parent"] is not None:
            wanted["parent"] = kept.find(wanted["parent"]).id
        workspace = options.workspace
        if path is not None:
            workspace = workspace_of(options)
            path = _inside(workspace, path)
        host = None if host is None else _host_alone(host)
        most = limit if limit is not None else MOST_REPORTED if stat else USUAL_LIMIT
        chosen = Filter(status=status, since=earliest, path=path, host=host, workspace=workspace, limit=most, **wanted)
        chosen = replace(chosen, until=latest)
        with change_sets() as changes:
            if json_lines:
                _print_lines(kept, changes, chosen, limit)
                return
            found = [] if kept is None else kept.runs(replace(chosen, limit=chosen.limit + 1))
            more, found = len(found) > chosen.limit, found[: chosen.limit]
            if changes is not None:
                found = [changes.with_current_changes(run) for run in found]
            if stat:
                _print_report(found, changes, replace(options, workspace=workspace), _selector(wanted["thread"], after))
                return
    if options.json:
        facts([run.to_json() for run in found])
    elif found:
        table(list(_rows(found)))
        if not options.quiet:
            if more and limit is None:  # A person who gave a limit knows the option.
                say(f"the {chosen.limit} newest; `--limit N` shows more")
            if chosen.workspace is None:
                _tell_workspaces(found, options)
    elif not options.quiet:
        say("no runs")


def _check_status(status: str | None) -> None:
    if status is not None and status not in STATUSES:
        near = near_miss(status, STATUSES)
        hint = f"did you mean `{near}`?" if near else f"the statuses are {', '.join(STATUSES)}"
        raise BadUsage(f"there is no status `{status}`", hint=hint)


def _print_lines(kept: History | None, changes: ChangesFacade | None, chosen: Filter, limit: int | None) -> None:
    """Print each of these runs as one line of JSON, the newest first. Reads a page at a time, because all runs may be
    more than memory holds."""
    left = sys.maxsize if limit is None else limit
    while kept is not None and left > 0:
        found = kept.runs(replace(chosen, limit=min(left, PAGE)))
        for run in found:
            current = run if changes is None else changes.with_current_changes(run)
            data(f"{to_json_text(current.to_json())}\n")
        if len(found) < PAGE:
            return
        left -= len(found)
        chosen = replace(chosen, before=found[-1].id)


def _selector(thread: str | None, after: str | None) -> str:
    """The options of `haft undo` that select the same runs."""
    options = {"--thread": thread, "--since": after}
    return "".join(f" {name} {shlex.quote(value)}" for name, value in options.items() if value is not None)


def _print_report(runs: Sequence[RunRecord], changes: ChangesFacade | None, options: Globals, selector: str) -> None:
    from haft.surfaces.cli.commands.log_report import report, report_lines

    found = report(runs, changes)
    if options.json:
        facts(found)
    elif runs:
        lines(report_lines(found, runs, selector))
        if options.workspace is None and not options.quiet:
            _tell_workspaces(runs, options)
    elif not options.quiet:
        say("no runs")


def _tell_workspaces(runs: Sequence[RunRecord], options: Globals) -> None:
    """Print how to list only the runs of this workspace, if some of `runs` belong to other workspaces."""
    with contextlib.suppress(BadUsage):  # The current directory was deleted.
        here = os.path.realpath(workspace_quietly(options))
        if any(run.record["workspace"] != here for run in runs):
            say(f"runs of every workspace; `-w {one_line(os.path.relpath(here))}` shows only those of this one")


def _inside(workspace: str, path: str) -> str:
    """The path as records contain it: relative to the workspace, with symbolic links resolved."""
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(workspace))
    if relative == ".." or relative.startswith("../"):
        # Taken relative to the current directory, the path is outside the workspace. So take it as relative to the
        # workspace.
        relative = os.path.normpath(path)
    return relative


def _rows(runs: Sequence[RunRecord]) -> Iterator[tuple[str, ...]]:
    """A row for each run. On a narrow terminal, the columns before the arguments are shorter, so that the arguments
    have room."""
    is_narrow = is_terminal(sys.stdout) and width() < ROOMY
    when = moment if is_terminal(sys.stdout) else clock
    for run in runs:
        ended = run.ended_at
        length = lasted((time.time() if ended is None else ended) - run.started_at)
        arguments = to_json_text(run.to_json()["arguments"])
        became = run.record["changes"]["state"]
        status = f"{run.status}, {became}" if became in ("held", "discarded", "undone") else run.status
        who, tool = str(run.record["who"]), run.tool
        if is_narrow:
            who, tool = _cut(who, NARROW_WHO), _cut(tool, NARROW_TOOL)
        yield (
            run.id,
            when(run.started_at),
            status,
            *(() if is_narrow else (length,)),
            who,
            tool,
            arguments[:500],
        )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


@click.command("show", cls=HaftCommand)
@click.argument("run", shell_complete=complete_run, help="A run: its id, or the beginning of the id.")
@click.pass_obj
def show_run(options: Globals, run: str) -> None:
    """Show one run: its states, decision, limits, sandbox, arguments and changes."""
    with history_with(run) as kept, change_sets() as changes:
        name, record = find_changed(kept, changes, run)
        if record is None:
            hint = f"`haft diff {name}` shows what it wrote"
            raise BadUsage(f"{name} is not a call: the process of a plugin wrote files between two calls", hint=hint)
        if changes is not None:
            record = changes.with_current_changes(record)
        parts = [] if changes is None else changes.parts(record.id, record.changed_paths)
        children = [(one.id, one.tool, one.status) for one in kept.children_of(record.id)]
        cache = next((event.facts["cache"] for event in kept.events_beyond(record) if "cache" in event.facts), None)
    task = _transcript(record)
    if options.json:
        made = [{"id": name, "tool": tool, "status": status} for name, tool, status in children]
        transcript: dict[str, Any] = {} if task is None else {"transcript": task.to_json()}
        facts(
            {
                **record.to_json(),
                "cache": cache,
                "children": made,
                "parts": [part.to_json() for part in parts],
                **transcript,
            }
        )
    else:
        first, *more = _described(record, children, parts, cache)
        verbatim([first])  # Here alone, the run's name is printed in full.
        lines(more)
        if task is not None:
            lines(transcript_lines(task, record))


def _transcript(record: RunRecord) -> Transcript | None:
    """The conversation of a task; None if the run is no task, or nothing of it is stored."""
    if record.tool != "task":
        return None
    from haft.service import transcript_of

    return transcript_of(state_home(), record.id)


def _described(
    run: RunRecord, children: Sequence[tuple[str, str, str]], parts: Sequence[ChangesPart], cache: str | None
) -> Iterator[str]:
    document = run.to_json()
    outcome = document["outcome"]
    yield styled(f"{run.id} {visible(run.tool)} {run.status}", "bold", sys.stdout)
    for name in ("who", "thread", "parent", "workspace", "cwd", "digest", "trace", "claim"):
        if document.get(name):
            yield visible(f"{AGENT_SAYS if name == 'claim' else name}: {document[name]}")
    yield "states:"
    for event in run.states():
        words = waiting_words(event)
        yield f"  {clock(event.at)}  {event.status}{f': {words}' if words else ''}"
    yield "arguments:"
    yield from (f"  {visible(name)}: {visible(to_json_text(value))}" for name, value in document["arguments"].items())
    if children:
        yield "calls that it made:"
        yield from (f"  {name}  {visible(tool)}  {status}" for name, tool, status in children)
    yield from _decision_lines(outcome["decision"])
    yield from limits_lines(outcome["limits"])
    if run.tool != "task":  # It has no sandbox of its own, and each of its calls has one.
        yield from sandbox_lines(outcome["sandbox"], document["workspace"])
    yield from _change_lines(run, outcome["changes"], parts)
    if cache is not None:
        yield visible(f"cache: {cache}")
    if outcome["exitCode"] is not None:
        yield f"exit: {outcome['exitCode']}"
    if outcome["outputBytes"]:
        yield f"output: {outcome['outputBytes']:_} bytes (`haft output {run.id}`)"
    for child in outcome.get("endedChildren", ()):
        yield visible(f"ended with the call: {child['command']} ({child['pid']})")
    yield from (visible(f"note: {note}") for note in outcome["notes"])
    if outcome["error"] is not None:
        yield visible(f"error: {outcome['error']['message']} ({outcome['error']['code']})")
        if outcome["error"]["hint"]:
            yield visible(f"hint: {outcome['error']['hint']}")


def _decision_lines(decision: dict[str, Any] | None) -> Iterator[str]:
    if decision is None:
        yield "decision: none, the call ended before it"
    else:
        yield visible(f"decision: {decision['action']} by {decision['by']}: {decision['reason']}")
        yield visible(f"  rule: {decision['rule']} ({decision['source']})")


def _change_lines(record: RunRecord, changes: dict[str, Any], parts: Sequence[ChangesPart]) -> Iterator[str]:
    run = record.id
    if record.tool == "task" and changes["state"] == "none":
        yield f"changes: those of its calls: `haft log --parent {run}`"
        return
    if changes["complete"] and not changes["files"]:
        yield "changes: none so far" if record.is_open else "changes: none"
        return
    if record.is_open and changes["state"] == "none":
        yield "changes: known when the call has ended"
        return
    ways = {
        "committed": f"`haft diff {run}`, `haft undo {run}`",
        "undone": f"`haft diff {run}`, `haft redo {run}`",
        "held": f"`haft diff {run}`, `haft changes apply {run}`, `haft changes drop {run}`",
    }
    state, reason = changes["state"], changes["reason"]
    engine = "" if changes["engine"] == "none" else f", by {changes['engine']}"
    words = [f"in parts{engine}"] if parts else [] if state == "none" else [f"{state}{engine}"]
    if not changes["complete"]:
        words.append(f"not all known: {reason}")
    elif reason:
        words.append(reason)
    yield visible(f"changes: {'; '.join(words)}")
    if parts:
        yield f"  {_ways_of_parts(run, parts)}"
    elif state in ways and changes["files"]:  # A run of `apply` has no changed files of its own.
        yield f"  {ways[state]}"
    became = {path: became_of(part, run) for part in parts for path in part.paths}
    for change in changes["files"][:MOST_FILES]:
        what = f": {became[change['path']]}" if change["path"] in became else ""
        yield f"  {change['type']} {one_line(change['path'])}{what}"
    if len(changes["files"]) > MOST_FILES:
        yield f"  and {len(changes['files']) - MOST_FILES:_} more"
    for conflict in changes["conflicts"][:MOST_FILES]:
        by = "outside of haft" if conflict["by"] == "outside" else f"by {conflict['by']}"
        yield f"  in conflict: {one_line(conflict['path'])}, changed {by}"


def _ways_of_parts(run: str, parts: Sequence[ChangesPart]) -> str:
    """The commands that a person can use now for a run whose changes were applied in parts."""
    states = {part.state for part in parts}
    verbs = {"committed": ("undo",), "undone": ("redo",), "held": ("changes apply", "changes drop")}
    found = ["diff", *(verb for state, more in verbs.items() if state in states for verb in more)]
    return ", ".join(f"`haft {verb} {run}`" for verb in found)


def _host_alone(text: str) -> str:
    """A host as haft records it: in lower case, without a port."""
    name, colon, port = text.rpartition(":")
    is_named = colon and port.isdigit() and (":" not in name or name.endswith("]"))
    return (name if is_named else text).strip("[]").lower().rstrip(".")
