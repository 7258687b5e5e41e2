"""Installs skills from a folder, a folder of folders, or an archive of either: all of them or none.

Everything is first copied into a hidden folder beside the skills, checked there, and then moved into place. Only
regular files and directories are installed; a link to a file in the same skill becomes a copy of that file. Nothing is
run, and nothing checks whether a skill is malicious.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from haft.authoring.directories import make_directory
from haft.authoring.skills.archives import BoundedFolder, checked_path, unpack
from haft.authoring.skills.staging import OLD, STAGING, restore_interrupted, staging_in
from haft.contracts import BadUsage, CallError, StorageFailed
from haft.files import Root, shown
from haft.sources.skills import LARGEST_TEXT, SKILL_FILE, lies_in, read_front_matter
from haft.sources.skills import MOST_BYTES as MOST_FRONT_MATTER


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed skill."""

    name: str
    description: str
    folder: str
    executables: tuple[str, ...]
    """The paths of executable files, relative to the folder."""
    replaced: bool
    """Whether the skill replaced another one of the same name."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "folder": self.folder,
            "executables": list(self.executables),
            "replaced": self.replaced,
        }


def install(source: str, place: str, *, force: bool) -> list[Installed]:
    """Install the skills at `source` in `place`. Existing skills with the same names are replaced only with `force`."""
    source = os.path.abspath(os.path.expanduser(source))
    if not os.path.lexists(source):
        raise BadUsage(f"{source} does not exist", hint="give a folder with a SKILL.md, a .zip or a .tar.gz")
    restore_interrupted(place)
    with staging_in(place) as staging:
        return _install(source, place, staging, force=force)


def _install(source: str, place: str, staging: str, *, force: bool) -> list[Installed]:
    try:
        gathered, brought = os.path.join(staging, "new"), os.path.join(staging, "ready")
        make_directory(gathered)
        make_directory(brought)
        if os.path.isdir(source):
            _copy_folders(source, gathered)
        else:
            unpack(source, gathered)
        names = _arranged(gathered, brought)
        taken = [name for name in names if os.path.lexists(os.path.join(place, name))]
        if taken and not force:
            there = ", ".join(os.path.join(place, name) for name in taken)
            raise BadUsage(f"nothing was installed: {there} exists already", hint="`--force` replaces it")
        found = [_read_installed(os.path.join(brought, name), name, place, replaced=name in taken) for name in names]
        _move(names, brought, place, os.path.join(staging, OLD))
    except OSError as error:
        raise StorageFailed("nothing was installed", error) from error
    return found


def _copy_folders(source: str, gathered: str) -> None:
    """Copy the skills in the folder `source`, or `source` itself if it is a skill, to `gathered`."""
    bounded_folder = BoundedFolder(gathered)
    if os.path.lexists(os.path.join(source, SKILL_FILE)):
        _copy(source, bounded_folder, "skill")
        return
    with os.scandir(source) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    for name in names:
        folder = os.path.realpath(os.path.join(source, name))
        if os.path.lexists(os.path.join(folder, SKILL_FILE)):
            if not lies_in(folder, os.path.realpath(source)):
                raise BadUsage(
                    f"`{shown(name)}` is a link out of {source}: nothing is installed",
                    hint=f"name the folder itself: {shown(folder)}",
                )
            _copy(folder, bounded_folder, name)


def _copy(folder: str, bounded_folder: BoundedFolder, under: str) -> None:
    """Copy a folder. No link can lead the copy out of the folder."""
    root = Root(folder)
    pending = [""]
    bounded_folder.directory(_beneath(under, ""))
    while pending:
        inside = pending.pop()
        with os.scandir(os.path.join(root.root, inside)) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            path = checked_path(f"{inside}/{entry.name}" if inside else entry.name)
            if path is None or entry.name.startswith(STAGING):
                continue
            if entry.is_dir(follow_symlinks=False):
                bounded_folder.directory(_beneath(under, path))
                pending.append(path)
            else:
                _copy_file(root, path, bounded_folder, _beneath(under, path))


def _copy_file(root: Root, path: str, bounded_folder: BoundedFolder, target: str) -> None:
    try:
        with root.open(path) as file:
            bounded_folder.file(target, file, os.fstat(file.fileno()).st_mode)
    except CallError as error:
        raise BadUsage(
            f"`{shown(path)}` is not a regular file of the skill, so it is not installed: {error.message}",
            hint="links out of the skill, links to directories, devices and pipes are not installed",
        ) from error


def _beneath(under: str, path: str) -> str:
    return f"{under}/{path}" if path else under


def _arranged(gathered: str, brought: str) -> list[str]:
    """Move each skill in `gathered` to the folder `brought`, under the name in its SKILL.md. Returns the names,
    sorted."""
    names: dict[str, str] = {}
    folders = _skills_in(gathered)
    for folder in folders:
        where = os.path.relpath(folder, gathered)
        with Root(folder).open(SKILL_FILE) as file:
            front_matter = read_front_matter(file.read(MOST_FRONT_MATTER))
            if os.fstat(file.fileno()).st_size > LARGEST_TEXT:
                raise BadUsage(f"the {SKILL_FILE} in `{shown(where)}` is too large, nothing is installed")
        name, problem = front_matter.name, front_matter.problem
        if problem is not None or name is None:
            raise BadUsage(f"the skill in `{shown(where)}` cannot be used, nothing is installed: {problem}")
        if name in names:
            raise BadUsage(f"`{shown(names[name])}` and `{shown(where)}` are both called `{name}`")
        names[name] = where
    if not names:
        raise BadUsage(
            f"there is no {SKILL_FILE} in it",
            hint="a folder with a SKILL.md, or a folder or an archive of such folders",
        )
    for name, folder in zip(names, folders, strict=True):
        os.rename(folder, os.path.join(brought, name))
    return sorted(names)


def _skills_in(folder: str, *, is_wrapper: bool = False) -> list[str]:
    """The folders with a SKILL.md: `folder` itself, or else the folders in it. If there are none, and `folder` contains
    only one other folder, that folder is searched in the same way."""
    if os.path.lexists(os.path.join(folder, SKILL_FILE)):
        return [folder]
    inside = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    folders = [path for path in inside if os.path.isdir(path)]
    found = [path for path in folders if os.path.lexists(os.path.join(path, SKILL_FILE))]
    if not found and len(folders) == 1 and not is_wrapper:
        return _skills_in(folders[0], is_wrapper=True)
    return found


def _read_installed(folder: str, name: str, place: str, *, replaced: bool) -> Installed:
    executables = []
    for above, _, files in os.walk(folder):
        for file in files:
            path = os.path.join(above, file)
            if os.lstat(path).st_mode & stat.S_IXUSR:
                executables.append(os.path.relpath(path, folder))
    with Root(folder).open(SKILL_FILE) as opened:
        description = read_front_matter(opened.read(MOST_FRONT_MATTER)).description
    return Installed(name, description, os.path.join(place, name), tuple(sorted(executables)), replaced)


def _move(names: list[str], brought: str, place: str, old: str) -> None:
    """Move the skills into place, one after the other; move them back if one fails."""
    make_directory(old)
    try:
        for name in names:
            target = os.path.join(place, name)
            if os.path.lexists(target):
                os.rename(target, os.path.join(old, name))
            os.rename(os.path.join(brought, name), target)
    except BaseException:
        for name in names:
            new, target, before = (os.path.join(where, name) for where in (brought, place, old))
            with suppress(OSError):
                if not os.path.lexists(new):
                    os.rename(target, new)
            with suppress(OSError):
                if os.path.lexists(before):
                    os.rename(before, target)
        raise
