"""`haft audit verify`, `list` and `export`: the audit log.

These commands only read. The one exception: they first record the end of runs whose hosts were killed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from haft.contracts import BadUsage
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import recover
from haft.surfaces.cli.screen.printing import complain, data, facts, lines, say, table
from haft.surfaces.cli.words.times import since
from haft.surfaces.text.home import state_home
from haft.surfaces.text.json_text import to_json_text

if TYPE_CHECKING:
    from haft.service import AuditLogFacade

_SECONDS_BETWEEN_LOOKS: Final = 0.2


def _record() -> AuditLogFacade:
    from haft.service import AuditLogFacade, has_state

    home = state_home()
    if has_state(home):
        recover(home)
    return AuditLogFacade(home)


@click.command("verify", cls=HaftCommand)
@click.option(
    "--since-checkpoint",
    is_flag=True,
    help="Check only the records since the last check that found the audit log intact. This is faster, but finds no "
    "changes in older records.",
)
@click.pass_context
def verify_record(context: click.Context, since_checkpoint: bool) -> None:
    """Check every record of the audit log. If a record was altered, the exit code is 1. haft prints the head, which
    identifies the last record. Keep a copy of the head on another machine: with this copy you can find out whether
    someone has rewritten the whole log."""
    options = context.find_object(Globals) or Globals()
    verdict = _record().verify(since_checkpoint=since_checkpoint)
    if options.json:
        facts(verdict.to_json())
    else:
        count = f"{verdict.records} record{'' if verdict.records == 1 else 's'}"
        lines([f"{count} {'intact' if verdict.intact else 'intact before the first problem'}"])
        if verdict.since:
            lines([f"checked from record {verdict.since} on; an earlier check found the records before it intact"])
        lines([f"head {verdict.head}"])
    if verdict.torn and verdict.intact and not options.quiet:
        numbers = ", ".join(map(str, verdict.torn))
        say(f"a crash tore a record, and the next record confirms its bytes: {numbers}")
    if verdict.interrupted is not None and not options.quiet:
        say(f"left by a crash: {verdict.interrupted}")
    if not verdict.intact:
        complain(
            f"the audit log is not intact: {verdict.problem}",
            "the records before this one can be trusted, the later ones cannot",
        )
    context.exit(0 if verdict.intact else 1)


@click.command("list", cls=HaftCommand)
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=50, show_default=True, help="List at most N records."
)
@click.pass_obj
def list_record(options: Globals, limit: int) -> None:
    """List the newest records, newest first."""
    entries = _record().last(limit)
    if options.json:
        facts(entries)
    else:
        table([_row(entry) for entry in entries])


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    fields = ("seq", "at", "type", "run", "tool", "who", "status")
    decision = (entry.get("decision") or {}).get("action", "")
    shown = {**entry, "tool": entry["command"]} if entry.get("type") == "refuse" else entry
    return (*("" if shown.get(name) is None else str(shown[name]) for name in fields), decision)


@click.command("export", cls=HaftCommand)
@click.option(
    "--to", "target", metavar="FILE", type=click.Path(dir_okay=False), help="The file to write to. Default: stdout."
)
@click.option(
    "--since", "after", metavar="T", help="Only records since this time: `2h` (two hours ago), a date or an ISO time."
)
@click.option("--until", "before", metavar="T", help="Only records before this time.")
@click.option("--follow", is_flag=True, help="Then print new records as they come, until you interrupt.")
@click.pass_obj
def export_record(options: Globals, target: str | None, after: str | None, before: str | None, follow: bool) -> None:
    """Export the records, oldest first, each with its number and hash: as JSON lines, or with `--json` as one array."""
    earliest, latest = (None if word is None else since(word) for word in (after, before))
    record = _record()
    if follow:
        if before is not None or target is not None or options.json:
            raise BadUsage("`--follow` prints JSON lines without an end: it goes with `--since` alone")
        _follow(record, earliest)
    found = record.entries(earliest, latest)
    if target is None:
        _print(found, as_array=options.json)
        return
    count = _write(found, target)
    if options.json:
        facts({"file": os.path.abspath(target), "records": count})
    elif not options.quiet:
        say(f"{count} records written to {target}")


def _follow(record: AuditLogFacade, earliest: float | None) -> NoReturn:
    for found in record.follow(earliest):
        for entry in found:
            data(f"{to_json_text(entry)}\n")
        sys.stdout.flush()
        if not found:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    raise AssertionError


def _print(entries: Iterable[dict[str, Any]], *, as_array: bool) -> None:
    """Print one line for each record; with `--json` the same lines as one array. Reads one record at a time, because
    the audit log may be larger than memory."""
    first = True
    for entry in entries:
        lead = "" if not as_array else "[" if first else ","
        data(f"{lead}{to_json_text(entry)}\n")
        first = False
    if as_array:
        data("[]\n" if first else "]\n")


def _write(entries: Iterable[dict[str, Any]], target: str) -> int:
    count = 0
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            for entry in entries:
                file.write(to_json_text(entry) + "\n")
                count += 1
    except OSError as error:
        raise BadUsage(f"{target} cannot be written: {error.strerror}") from error
    return count
