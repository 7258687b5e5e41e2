"""Checks of a source that change, spoil or remove its tool."""

from __future__ import annotations

import os
from typing import Any

from haft.contracts import NO_GRANTS, BadUsage
from haft.testing.conformance.listing_checks import Problems
from haft.testing.conformance.world import OpenedSource
from haft.values import replace


async def notices_changes(opened: OpenedSource) -> Problems:
    """If a tool changes, `is_current` is false, a path in `places` changes, and `refresh` describes the tool again."""
    if opened.case.change is None:
        return
    before = await opened.spec()
    if before is None:
        return
    watched = _identities(opened)
    opened.case.change(opened.world.workspace)
    if opened.source.is_current(before):
        yield "`is_current` is still true after the tool changed"
    if watched == _identities(opened):
        yield "no path in `places`, and no file directly in one, shows that the tool changed"
    after = await opened.spec()
    if after is None:
        yield "`refresh` does not list the tool any more after it changed"
    elif replace(after, files=before.files) == before:
        yield "`refresh` still has the old description"
    elif after.digest and after.digest == before.digest:
        yield "the digest of the definition is the same, so that old approvals would count for the changed tool"


def _identities(opened: OpenedSource) -> dict[str, Any]:
    """What can be seen of the places without reading any file."""
    found = {}
    for place in opened.source.places():
        inside = [os.path.join(place, each) for each in os.listdir(place)] if os.path.isdir(place) else []
        for path in (place, *inside):
            try:
                status = os.stat(path)
            except OSError:
                continue
            found[path] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


async def lists_the_broken(opened: OpenedSource) -> Problems:
    """A tool that does not work is no exception: it is listed with the reason, and `load` raises `BadUsage`."""
    if opened.case.spoil is None:
        return
    await opened.refreshed()
    opened.case.spoil(opened.world.workspace)
    found = await opened.refreshed()
    if opened.tool_in(found) is not None:
        yield "a tool that does not work is listed as ready"
    elif not any(each.state != "ready" for each in found):
        yield "a tool that does not work is missing in the list, so that nobody learns why"
    for each in found:
        if each.state != "ready" and not (each.reason or "").strip():
            yield f"`{each.spec.name}` is {each.state}, without a reason"
    if opened.case.path is not None and opened.case.loads:
        try:
            loaded = await opened.source.load(opened.world.path, opened.launcher, NO_GRANTS)
        except BadUsage:
            return
        if loaded is None or loaded.tool is not None:
            yield "`load` returns a tool that does not work, and should raise `BadUsage`"


async def forgets_the_removed(opened: OpenedSource) -> Problems:
    """A tool that was removed is not listed any more."""
    if opened.case.remove is None:
        return
    await opened.refreshed()
    opened.case.remove(opened.world.workspace)
    if opened.tool_in(await opened.refreshed()) is not None:
        yield "the tool is still ready after it was removed"


async def closes(opened: OpenedSource) -> Problems:
    """`close` can be called twice."""
    await opened.refreshed()
    for time in ("first", "second"):
        try:
            await opened.source.close()
        except Exception as error:
            yield f"`close` raised {error!r} the {time} time"
