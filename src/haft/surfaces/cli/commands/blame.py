"""`haft blame FILE`: for each line of a file, the run that wrote it."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from haft.contracts import BadUsage
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import change_sets, history, workspace_of
from haft.surfaces.cli.screen.printing import facts, verbatim
from haft.surfaces.cli.words.times import moment
from haft.surfaces.text.short_names import shortened
from haft.surfaces.text.terminal import one_line, styled, visible

if TYPE_CHECKING:
    from haft.service import BlamedLine, Origin


@click.command("blame", cls=HaftCommand)
@click.argument("file", type=click.Path(), help="A text file in the workspace.")
@click.pass_obj
def blame_file(options: Globals, file: str) -> None:
    """Print each line of a file with the run, the agent or user, and the time that wrote it. If someone applied a part
    of held changes, the run that applied it stands beside the run that wrote the line.

    haft knows this from the changes of runs, also after undo, redo and renames. `older` stands for lines that were in
    the file before the first run changed it, `outside` for lines that someone wrote without haft between two runs, and
    `?` for lines whose earlier content is no longer stored."""
    workspace, path = _place_of(file, options)
    with history(), change_sets() as changes:
        if changes is None:
            raise BadUsage("haft has no runs yet, so it knows nothing about this file")
        blamed = changes.blame(workspace, path)
    if options.json:
        facts([_document(number, line) for number, line in enumerate(blamed, start=1)])
    else:
        verbatim(_lines(blamed))


def _place_of(file: str, options: Globals) -> tuple[str, str]:
    """The workspace, and the path of the file relative to it. A symbolic link in the path is followed."""
    workspace = os.path.realpath(workspace_of(options))
    if os.path.isdir(file):
        raise BadUsage(f"`{file}` is a directory", hint="name one file")
    path = os.path.relpath(os.path.realpath(file), workspace)
    if path == ".." or path.startswith("../"):
        raise BadUsage(f"`{file}` is not in the workspace {workspace}", hint="-w names another workspace")
    return workspace, path


def _document(number: int, line: BlamedLine) -> dict[str, Any]:
    document = line.origin.to_json()
    if line.origin.at is not None:
        document["at"] = datetime.datetime.fromtimestamp(line.origin.at, datetime.UTC).isoformat()
    return {"line": number, **document, "text": line.text}


def _lines(blamed: Sequence[BlamedLine]) -> Iterator[str]:
    """The lines with columns for their origins. Equal origins of neighbouring lines are computed once."""
    origins = list(dict.fromkeys(line.origin for line in blamed))
    runs = (run for origin in origins for run in (origin.run, origin.applied_by) if run)
    shortened(" ".join(runs))  # Looks up all names at once.
    cells = {origin: _cells(origin) for origin in origins}
    widths = [max(map(len, column)) for column in zip(*cells.values(), strict=True)]
    digits = len(str(len(blamed)))
    for number, line in enumerate(blamed, start=1):
        columns = (f"{cell:<{width}}" for cell, width in zip(cells[line.origin], widths, strict=True))
        head = f"{'  '.join(columns)}  {number:>{digits}})"
        yield f"{styled(head, 'dim', sys.stdout)} {visible(line.text)}"


def _cells(origin: Origin) -> tuple[str, str, str]:
    if origin.run is not None and origin.source == "run":
        how = "" if origin.applied_by is None else f", applied by {shortened(origin.applied_by)}"
        return shortened(origin.run), f"{one_line(origin.who or '')}{how}", moment(origin.at or 0)
    if origin.source == "outside":
        return "outside", f"after {shortened(origin.run or '')}" if origin.run else "", ""
    return "older" if origin.source == "older" else "?", "", ""
