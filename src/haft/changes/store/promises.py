"""Which runs haft promises to undo or redo although it no longer has what that needs: a check of the whole store."""

from __future__ import annotations

import os
from collections.abc import Iterator

from haft.changes.candidates import Candidates
from haft.changes.commit.area import Area, known_areas
from haft.changes.commit.images import Images
from haft.changes.commit.manifest import Manifest
from haft.changes.ledger import Ledger, Row
from haft.changes.store.blobs import Blobs
from haft.changes.store.needs import is_kept
from haft.files import shown


def broken_promises(home: str, ledger: Ledger, blobs: Blobs) -> Iterator[tuple[Row, str]]:
    """The runs that cannot be undone or redone although the ledger says so, each with the reason. `home` is the
    directory for all workspaces in the state home. Does not look whether later changes are in the way."""
    areas = {area.path: area for area in known_areas(home)}
    for path in dict.fromkeys(row.area for row in ledger.all()):
        rows = [row for row in ledger.all() if row.area == path and is_kept(row)]
        area = areas.get(path)
        if area is None or not os.path.isdir(path):
            yield from ((row, "the directory with its replaced files is missing") for row in rows)
            continue
        images = Images(area, blobs)
        try:
            for row in rows:
                if (reason := _why_broken(row, area, ledger, images)) is not None:
                    yield row, reason
        finally:
            images.close()


def _why_broken(row: Row, area: Area, ledger: Ledger, images: Images) -> str | None:
    manifest = Manifest.read(os.path.join(area.kept, row.run))
    if manifest is None:
        return "the list of its changes is missing"
    wanted = {each.path: each.before if row.state == "committed" else each.after for each in manifest.entries}
    candidates = Candidates(ledger, [row], wanted).of
    for path, entry in wanted.items():
        if entry is None or entry.kind != "file" or images.has(entry):
            continue
        if images.original(path, entry, candidates(path)) is None:
            return f"the content of {shown(path)} is missing"
    return None
