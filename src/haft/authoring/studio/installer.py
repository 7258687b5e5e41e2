"""Installs the templates of a ZIP: all of them or none.

The ZIP is unpacked into a hidden folder of the directory of templates and checked there. Then the templates are moved
into place with new ids and new folder names. If the process is killed, the hidden folder stays, and the next install
removes it; templates that were already moved are complete, and stay. Nothing of a template is run, and nothing checks
whether it is malicious.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from haft.authoring.directories import make_directory
from haft.authoring.studio.manifest import PACK_MANIFEST, Entry, Pack, read_pack
from haft.authoring.studio.template_files import is_left_out
from haft.authoring.studio.template_folders import is_same, is_template_folder, lock_place, staging_folder, templates_in
from haft.authoring.studio.unpacker import unpack
from haft.contracts import BadUsage, StorageFailed
from haft.files import shown
from haft.sources.agent_studio import (
    ENTRY,
    MANIFEST_FILE,
    Manifest,
    check_template,
    check_template_name,
    name_of_folder,
    new_folder_name,
    slug_of,
)

LARGEST_MANIFEST: Final = 1_000_000
_LONGEST_WORKFLOW: Final = 200
_MAX_LISTED: Final = 3


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed template."""

    id: str
    name: str
    workflow: str | None
    folder: str

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "slug": slug_of(self.name),
            "workflow": self.workflow,
            "folder": self.folder,
        }


@dataclass(frozen=True, slots=True)
class Installation:
    """The result of installing a ZIP."""

    templates: tuple[Installed, ...]
    left_out: tuple[str, ...]
    """The parts of the ZIP that were not installed because they are not tool templates, in words."""


def check_workflow(workflow: str) -> None:
    """Raise `BadUsage` if a workflow cannot have this name."""
    if not 0 < len(workflow) <= _LONGEST_WORKFLOW or workflow.isspace() or not workflow.isprintable():
        raise BadUsage(f"a workflow's name must have 1 to {_LONGEST_WORKFLOW} printable characters")


def install(archive: str, place: str, *, workflow: str | None = None, name: str | None = None) -> Installation:
    """Install the templates of a ZIP in the directory `place`, for one workflow, or for all workflows if `workflow` is
    None. If the ZIP has a single template, `name` gives it another name."""
    archive, place = os.path.abspath(os.path.expanduser(archive)), os.path.abspath(place)
    if not os.path.lexists(archive):
        raise BadUsage(f"{shown(archive)} does not exist", hint="`haft templates pack` makes a ZIP of templates")
    if os.path.isdir(archive):
        raise BadUsage(
            f"{shown(archive)} is a directory, but `install` needs a ZIP",
            hint="to load a folder, add it to `templates.paths`; `haft templates pack` makes a ZIP of it",
        )
    if workflow is not None:
        check_workflow(workflow)
    if name is not None:
        check_template_name(name)
    if is_template_folder(place):
        raise BadUsage(f"{shown(place)} is a template itself", hint="`--to DIR` names a directory of templates")
    with lock_place(place), staging_folder(place) as staging:
        try:
            return _install(archive, place, staging, workflow, name)
        except OSError as error:
            raise StorageFailed("nothing was installed", error) from error


def _install(archive: str, place: str, staging: str, workflow: str | None, name: str | None) -> Installation:
    unpacked, ready = os.path.join(staging, "new"), os.path.join(staging, "ready")
    make_directory(unpacked)
    make_directory(ready)
    unpack(archive, unpacked)
    found = _pack_in(unpacked, name)
    if not found.entries:
        raise BadUsage(f"there is no tool template in {shown(archive)}: nothing is installed")
    _require_free(found.entries, place, workflow)
    done = [_prepare(entry, unpacked, ready, place, workflow) for entry in found.entries]
    for one in done:
        _require_sound(os.path.join(ready, os.path.basename(one.folder)), one.name)
    _move([os.path.basename(one.folder) for one in done], ready, place)
    return Installation(tuple(done), found.left_out)


def _pack_in(unpacked: str, name: str | None) -> Pack:
    """The content of the ZIP as its manifest lists it. If there is no manifest, the one template in the ZIP."""
    manifest = os.path.join(unpacked, PACK_MANIFEST)
    if os.path.isfile(manifest):
        if os.path.getsize(manifest) > LARGEST_MANIFEST:
            raise BadUsage(f"the {PACK_MANIFEST} has more than {LARGEST_MANIFEST:_} bytes: nothing is installed")
        with open(manifest, "rb") as file:
            return read_pack(file.read(), name)
    inside = sorted(os.listdir(unpacked))
    if os.path.isfile(os.path.join(unpacked, ENTRY)) and name is not None:
        return Pack((Entry(name, ""),))
    if len(inside) == 1 and os.path.isfile(os.path.join(unpacked, inside[0], ENTRY)):
        called = name_of_folder(os.path.join(os.sep, inside[0])) if name is None else name
        check_template_name(called)
        return Pack((Entry(called, inside[0]),))
    is_single = os.path.isfile(os.path.join(unpacked, ENTRY))
    raise BadUsage(
        f"there is no {PACK_MANIFEST} in it: nothing is installed",
        hint="it is one template: give it a name with `--name N`" if is_single else "`haft templates pack` makes one",
    )


def _require_free(entries: Sequence[Entry], place: str, workflow: str | None) -> None:
    there = templates_in(place)
    for entry in entries:
        for one in there:
            if is_same(one, entry.name, workflow):
                scope = "" if workflow is None else f" of the workflow `{shown(workflow)}`"
                raise BadUsage(
                    f"a template{scope} is called `{one.name}` already, in {shown(one.folder)}: nothing is installed",
                    hint="remove it first with `haft templates remove`, or install into another workflow or directory",
                )


def _prepare(entry: Entry, unpacked: str, ready: str, place: str, workflow: str | None) -> Installed:
    """Move a template's folder to `ready`, under its new name and with its manifest."""
    source = os.path.join(unpacked, entry.folder)
    if not os.path.isdir(source):
        raise BadUsage(
            f"the folder `{shown(entry.folder)}` of `{entry.name}` is not in the archive: nothing is installed"
        )
    for name in filter(is_left_out, os.listdir(source)):
        path = os.path.join(source, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    folder = new_folder_name(entry.name)
    while os.path.lexists(os.path.join(place, folder)):
        folder = new_folder_name(entry.name)
    waiting = os.path.join(ready, folder)
    os.rename(source, waiting)
    one = Installed(str(uuid4()), entry.name, workflow, os.path.join(place, folder))
    with open(os.path.join(waiting, MANIFEST_FILE), "x", encoding="utf-8") as file:
        json.dump(Manifest(one.id, one.name, one.workflow).to_json(), file, indent=2)
        file.write("\n")
    return one


def _require_sound(folder: str, name: str) -> None:
    errors = [each for each in check_template(folder).findings if each.level == "error"]
    if errors:
        listed = "; ".join(f"{each.code}: {each.message}" for each in errors[:_MAX_LISTED])
        more = f"; and {len(errors) - _MAX_LISTED} more" if len(errors) > _MAX_LISTED else ""
        raise BadUsage(
            f"`{name}` fails the check, nothing is installed: {listed}{more}",
            hint="`haft tools check --explain CODE` explains a code",
        )


def _move(folders: Sequence[str], ready: str, place: str) -> None:
    """Move the templates into place, one after the other; move them back if one fails."""
    try:
        for folder in folders:
            os.rename(os.path.join(ready, folder), os.path.join(place, folder))
    except BaseException:
        for folder in folders:
            with suppress(OSError):
                if not os.path.lexists(os.path.join(ready, folder)):
                    os.rename(os.path.join(place, folder), os.path.join(ready, folder))
        raise
