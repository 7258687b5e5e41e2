"""Removing a template: its folder, its environment, and nothing that either leads to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from haft.authoring.studio.places import Placed, held, is_template_folder, passing_folder, placed, templates_in
from haft.contracts import BadUsage, StorageFailed, near_miss
from haft.files import shown
from haft.sources.agent_studio import slug_of


def chosen(word: str, places: Sequence[str], *, workflow: str | None = None) -> Placed:
    """The template that a word means: the path of its folder, or its name, slug or folder name in one of `places`."""
    if os.sep in word or word in (os.curdir, os.pardir):
        return _at(os.path.abspath(os.path.expanduser(word)), workflow)
    known = {one.folder: one for place in places for one in templates_in(place)}
    inside = [one for one in known.values() if workflow is None or one.workflow == workflow]
    found = [one for one in inside if word in (one.name, os.path.basename(one.folder))] or [
        one for one in inside if one.slug == slug_of(word)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        there = ", ".join(f"{one.folder} ({one.workflow or 'every workflow'})" for one in found)
        raise BadUsage(
            f"`{shown(word[:80])}` is the name of several templates: {shown(there)}",
            hint="`--workflow W` says whose is meant, or give the path of the folder",
        )
    raise _unknown(word, inside, workflow)


def _at(folder: str, workflow: str | None) -> Placed:
    if not os.path.lexists(folder):
        raise BadUsage(f"there is no {shown(folder)}", hint="`haft templates list` shows the templates there are")
    if not is_template_folder(folder):
        raise BadUsage(f"{shown(folder)} is no template's folder: it stays", hint="`rm` removes other things")
    found = placed(folder)
    if workflow is not None and found.workflow != workflow:
        raise BadUsage(f"{shown(folder)} is not of the workflow `{shown(workflow[:80])}`: it stays")
    return found


def _unknown(word: str, known: Sequence[Placed], workflow: str | None) -> BadUsage:
    scope = "" if workflow is None else f" in the workflow `{shown(workflow[:80])}`"
    near = near_miss(word, [name for one in known for name in (one.name, os.path.basename(one.folder))])
    if near is not None:
        hint = f"did you mean `{near}`?"
    elif is_template_folder(word):
        hint = f"`./{shown(word)}` means the folder that lies here"
    else:
        hint = "`haft templates list` shows the templates there are"
    return BadUsage(f"there is no template called `{shown(word[:80])}`{scope}", hint=hint)


def remove(template: Placed, keeping: Sequence[str] = ()) -> None:
    """Remove it: out of sight first, then for good. A link goes alone. What is in `keeping` must not lie in it."""
    folder = template.folder
    if os.path.islink(folder):
        _unlink(folder)
        return
    for path in keeping:
        if f"{os.path.realpath(path)}/".startswith(f"{os.path.realpath(folder).rstrip('/')}/"):
            raise BadUsage(f"{shown(path)} lies in {shown(folder)}: it stays")
    place = os.path.dirname(os.path.abspath(folder))
    with held(place), passing_folder(place) as passing:
        going = os.path.join(passing, "gone")
        try:
            os.rename(folder, going)
        except OSError as error:
            raise StorageFailed(f"{shown(folder)} was not removed", error) from error
        try:
            shutil.rmtree(going)
        except OSError as error:
            raise StorageFailed(f"what was in {shown(folder)} could not all be removed", error) from error


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        raise StorageFailed(f"{shown(path)} was not removed", error) from error
