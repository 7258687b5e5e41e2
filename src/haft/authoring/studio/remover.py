"""Removes a template: its folder and its Python environment, but never the target of a link."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from haft.authoring.studio.template_folders import (
    TemplateFolder,
    is_template_folder,
    lock_place,
    read_template_folder,
    staging_folder,
    templates_in,
)
from haft.contracts import BadUsage, StorageFailed, near_miss
from haft.files import shown
from haft.sources.agent_studio import slug_of


def find_template(word: str, places: Sequence[str], *, workflow: str | None = None) -> TemplateFolder:
    """The template that `word` names. `word` is the path of the template's folder; or the name, the slug or the folder
    name of a template in one of `places`."""
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
            hint="choose with `--workflow W`, or give the path of the folder",
        )
    raise _unknown(word, inside, workflow)


def _at(folder: str, workflow: str | None) -> TemplateFolder:
    if not os.path.lexists(folder):
        raise BadUsage(f"{shown(folder)} does not exist", hint="`haft templates list` lists the templates")
    if not is_template_folder(folder):
        raise BadUsage(
            f"{shown(folder)} is not a template",
            hint="`haft templates list` lists the templates",
        )
    found = read_template_folder(folder)
    if workflow is not None and found.workflow != workflow:
        raise BadUsage(f"{shown(folder)} is not of the workflow `{shown(workflow[:80])}`")
    return found


def _unknown(word: str, known: Sequence[TemplateFolder], workflow: str | None) -> BadUsage:
    scope = "" if workflow is None else f" in the workflow `{shown(workflow[:80])}`"
    near = near_miss(word, [name for one in known for name in (one.name, os.path.basename(one.folder))])
    if near is not None:
        hint = f"did you mean `{near}`?"
    elif is_template_folder(word):
        hint = f"`./{shown(word)}` means the folder in the current directory"
    else:
        hint = "`haft templates list` lists the templates"
    return BadUsage(f"there is no template called `{shown(word[:80])}`{scope}", hint=hint)


def remove(template: TemplateFolder, keeping: Sequence[str] = ()) -> None:
    """Remove a template: move it to a hidden folder, then delete it. If its folder is a link, only the link is removed.
    Raises `BadUsage` if a path in `keeping` lies inside the template."""
    folder = template.folder
    if os.path.islink(folder):
        _unlink(folder)
        return
    for path in keeping:
        if f"{os.path.realpath(path)}/".startswith(f"{os.path.realpath(folder).rstrip('/')}/"):
            raise BadUsage(f"{shown(folder)} was not removed: {shown(path)} is inside it")
    place = os.path.dirname(os.path.abspath(folder))
    with lock_place(place), staging_folder(place) as staging:
        hidden = os.path.join(staging, "gone")
        try:
            os.rename(folder, hidden)
        except OSError as error:
            raise StorageFailed(f"{shown(folder)} was not removed", error) from error
        try:
            shutil.rmtree(hidden)
        except OSError as error:
            raise StorageFailed(f"{shown(folder)} was removed only in part", error) from error


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        raise StorageFailed(f"{shown(path)} was not removed", error) from error
