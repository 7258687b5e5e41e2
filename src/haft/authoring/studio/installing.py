"""Taking in templates from a ZIP: all of them or none.

Everything is unpacked into a hidden folder of the directory that templates lie in, checked there by its files alone,
and then moved into place under new identities and new folder names. Killed in the middle, it leaves that hidden folder,
which the next one removes; templates that were in place by then are whole, and stay. Nothing of a template is run, and
nothing is said about whether it means well.
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
from haft.authoring.studio.gathering import is_left_out
from haft.authoring.studio.manifest import PACK_MANIFEST, Entry, Pack, read_pack
from haft.authoring.studio.places import held, is_same, is_template_folder, passing_folder, templates_in
from haft.authoring.studio.unpacking import unpack
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
_MAX_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Installed:
    """A template that was taken in."""

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
    """What came of a ZIP."""

    templates: tuple[Installed, ...]
    left_out: tuple[str, ...]
    """What was in it and is no tool template, in words."""


def check_workflow(workflow: str) -> None:
    """`BadUsage` where a workflow cannot be called this."""
    if not 0 < len(workflow) <= _LONGEST_WORKFLOW or workflow.isspace() or not workflow.isprintable():
        raise BadUsage(f"a workflow has a name of 1 to {_LONGEST_WORKFLOW} characters that can be printed")


def install(archive: str, place: str, *, workflow: str | None = None, name: str | None = None) -> Installation:
    """Take in what a ZIP holds, for one workflow or for everybody. `name` gives a single template another name."""
    archive, place = os.path.abspath(os.path.expanduser(archive)), os.path.abspath(place)
    if not os.path.lexists(archive):
        raise BadUsage(f"{shown(archive)} is not there", hint="`haft templates pack` makes a ZIP of templates")
    if os.path.isdir(archive):
        raise BadUsage(
            f"{shown(archive)} is a directory, and `install` takes a ZIP",
            hint="a folder becomes a tool through `templates.paths`; `haft templates pack` makes a ZIP of it",
        )
    if workflow is not None:
        check_workflow(workflow)
    if name is not None:
        check_template_name(name)
    if is_template_folder(place):
        raise BadUsage(f"{shown(place)} is a template itself", hint="`--to DIR` names a directory of templates")
    with held(place), passing_folder(place) as passing:
        try:
            return _install(archive, place, passing, workflow, name)
        except OSError as error:
            raise StorageFailed("nothing was installed", error) from error


def _install(archive: str, place: str, passing: str, workflow: str | None, name: str | None) -> Installation:
    unpacked, ready = os.path.join(passing, "new"), os.path.join(passing, "ready")
    make_directory(unpacked)
    make_directory(ready)
    unpack(archive, unpacked)
    found = _pack_in(unpacked, name)
    if not found.entries:
        raise BadUsage(f"there is no tool template in {shown(archive)}: nothing is installed")
    _require_free(found.entries, place, workflow)
    done = [_made_ready(entry, unpacked, ready, place, workflow) for entry in found.entries]
    for one in done:
        _require_sound(os.path.join(ready, os.path.basename(one.folder)), one.name)
    _move([os.path.basename(one.folder) for one in done], ready, place)
    return Installation(tuple(done), found.left_out)


def _pack_in(unpacked: str, name: str | None) -> Pack:
    """What the ZIP says that it holds; what it holds where it is a single template that says nothing."""
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
        hint="it is one template: `--name N` says what it is called"
        if is_single
        else "`haft templates pack` makes one",
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


def _made_ready(entry: Entry, unpacked: str, ready: str, place: str, workflow: str | None) -> Installed:
    """Move a template's folder to where it waits, under its new name and with its manifest."""
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
        told = "; ".join(f"{each.code}: {each.message}" for each in errors[:_MAX_NAMED])
        more = f"; and {len(errors) - _MAX_NAMED} more" if len(errors) > _MAX_NAMED else ""
        raise BadUsage(
            f"`{name}` fails the check, nothing is installed: {told}{more}",
            hint="`haft tools check --explain CODE` explains a code",
        )


def _move(folders: Sequence[str], ready: str, place: str) -> None:
    """Into place, one after the other; back again where one cannot be."""
    try:
        for folder in folders:
            os.rename(os.path.join(ready, folder), os.path.join(place, folder))
    except BaseException:
        for folder in folders:
            with suppress(OSError):
                if not os.path.lexists(os.path.join(ready, folder)):
                    os.rename(os.path.join(place, folder), os.path.join(ready, folder))
        raise
