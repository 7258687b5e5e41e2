"""Prints lists of tracks, the files of a track, the inbox, the result of `cdd pack`, and the skills.

A file is printed under its name with control characters escaped; with `raw`, its bytes are printed unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from cdd import agents, decisions, files, timestamps, tracks
from cdd.pack import Paragraph
from cdd.refusals import Refused, visible
from cdd.tracks import Track
from cdd.workspace import Workspace


def show_tracks(found: Sequence[Track], *, are_archived: bool, raw: bool) -> None:
    """Print the tracks: only their names with `raw`, otherwise a table."""
    if raw:
        for track in found:
            click.echo(visible(track.name))
    elif not found:
        message = "No track is archived." if are_archived else "No track is active. Start one: cdd start NAME"
        click.echo(message)
    else:
        heads = ("NAME", "STARTED", "TOOK", "DONE") if are_archived else ("NAME", "STARTED", "OPEN", "DONE")
        _table([heads, *(_row(track, are_archived=are_archived) for track in found)])


def show_track(track: Track, chosen: Sequence[str], *, raw: bool) -> None:
    """Print the chosen files of a track. If none is chosen, print all files, and before them a summary unless `raw` is
    set."""
    if not raw and not chosen:
        click.echo(visible(f"{_summary(track)}\n{_next_tasks(track)}\n"))
    for file in chosen or tracks.FILES:
        content = track.read(file)
        if content is None:
            click.echo(f"'{visible(track.name)}' has no {file}.", err=True)
        elif raw:
            click.echo(content, nl=False)
        else:
            _show(file, content)


def show_inbox(workspace: Workspace, *, raw: bool) -> None:
    """Print `.context/inbox.md`: notes for later that belong to no track."""
    content = files.read(workspace.required().inbox)
    if raw:
        click.echo(content or b"", nl=False)
    elif content and content.strip():
        _show("inbox.md", content)
    else:
        click.echo("The inbox is empty. Notes for later go into .context/inbox.md.")


def show_packed(groups: Mapping[str, Sequence[Paragraph]], *, raw: bool) -> None:
    """Print paragraphs of the specifications, each with its location. On a terminal the locations are highlighted,
    unless `raw` is set. If the output is not a terminal, click leaves out the highlighting."""
    for name, paragraphs in groups.items():
        place = visible(f"=== .context/specs/{name}")
        click.echo(f"{place if raw else click.style(place, bold=True)}\n")
        for paragraph in paragraphs:
            first, last = paragraph.lines
            lines = f"lines {first}-{last}" if last > first else f"line {first}"
            where = "; ".join(part for part in (lines, " > ".join(paragraph.titles)) if part)
            head = visible(f"[{where}]")
            click.echo(f"{head if raw else click.style(head, dim=True)}\n{visible(paragraph.text)}\n")


def show_skills(root: str, places: Sequence[agents.SkillFile]) -> None:
    """Print CDD's agent skills, and their state in the agents' folders."""
    for skill in agents.skills():
        click.echo(f"{skill.name}\n  {skill.description}")
        for place in places:
            if place.skill.name == skill.name:
                click.echo(f"  {place.target:11} {agents.state(root, place):8} {place.path}")


def _show(name: str, content: bytes) -> None:
    click.echo(f"--- {name}\n")
    click.echo(visible(files.text_of(content)).strip("\n") + "\n")


def _summary(track: Track) -> str:
    plan = track.plan()
    still_open = len(plan.open_tasks)
    logged = decisions.entries(files.text_of(track.read("decisions.md") or b""))
    metadata = _metadata(track)
    parts = [
        f"{track.name}: started {_time_text(metadata, 'started_at')}",
        *([f"archived {_time_text(metadata, 'archived_at')}"] if "archived_at" in metadata else []),
        f"{still_open} open and {len(plan.tasks) - still_open} done tasks",
        ("1 decision" if len(logged) == 1 else f"{len(logged)} decisions")
        + (f", the last on {logged[-1].moment}" if logged else ""),
    ]
    return "; ".join(parts) + "\n"


def _next_tasks(track: Track) -> str:
    plan = track.plan()
    if plan.open_tasks:
        return f"next tasks:\n{plan.listed_open_tasks()}"
    return "next tasks: none is open" if plan.tasks else "next tasks: the plan has none"


def _row(track: Track, *, are_archived: bool) -> tuple[str, ...]:
    """One row of the table. A value that cannot be read is shown as a question mark."""
    metadata = _metadata(track)
    try:
        plan = track.plan()
        done, still_open = str(len(plan.tasks) - len(plan.open_tasks)), str(len(plan.open_tasks))
    except (OSError, Refused):
        done = still_open = "?"
    start, end = (timestamps.from_rfc3339(metadata.get(key)) for key in ("started_at", "archived_at"))
    took = timestamps.between(start, end).replace("an unknown time", "?")
    return visible(track.name), _time_text(metadata, "started_at"), took if are_archived else still_open, done


def _metadata(track: Track) -> dict[str, object]:
    try:
        return track.metadata()
    except (OSError, Refused):
        return {}


def _time_text(metadata: dict[str, object], key: str) -> str:
    moment = timestamps.from_rfc3339(metadata.get(key))
    return timestamps.stamp(moment) if moment else "?"


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
