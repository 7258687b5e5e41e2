"""Finds template folders, and the tools that the configuration makes of them. Reads only names and manifests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from haft.contracts import Effects, Provenance
from haft.sources.agent_studio.manifest import MANIFEST_FILE, read_manifest
from haft.sources.agent_studio.names import name_of_folder
from haft.sources.identity import identity_at

ENTRY: Final = "tool.py"
NO_EFFECTS: Final = Effects()
REQUIREMENTS: Final = "requirements.txt"
ENVIRONMENT: Final = ".venv"
HASH_FILE: Final = ".requirements_hash.txt"
NOT_ITS_OWN: Final = frozenset({ENVIRONMENT, "__pycache__", HASH_FILE, MANIFEST_FILE, ".git", ".hg", ".svn"})
"""Names in a template's folder that are not part of the template."""
MOST_FOLDERS: Final = 1_000
_ANY_NAME: Final = ("utf-8", "surrogateescape")
MOST_FILES: Final = 1_000


@dataclass(frozen=True, slots=True)
class TemplateDirectory:
    """A directory with template folders, or the folder of one template."""

    directory: str
    provenance: Provenance
    within: str | None = None
    """The directory that no link of a template may lead out of; None if links may lead anywhere."""


@dataclass(frozen=True, slots=True)
class ConfiguredInstance:
    """A tool that the configuration makes of a template, with a name and user parameters."""

    name: str
    place: TemplateDirectory
    user: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The values of the user parameters, which are secret."""
    source: str = ""
    """The file that configures this tool."""
    unset: Mapping[str, str] = field(default_factory=dict, hash=False)
    effects: Effects = NO_EFFECTS
    """The user parameters without a value, and why each has none."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One tool: a template with a name and user parameters."""

    name: str
    folder: str
    provenance: Provenance
    identity: str = ""
    """A text that changes when the template changes."""
    user: Mapping[str, Any] = field(default_factory=dict, hash=False)
    unset: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The user parameters without a value, and why each has none."""
    workflow: str | None = None
    source: str | None = None
    """The file that configures this tool; None if the folder alone makes the tool."""
    effects: Effects = NO_EFFECTS
    """What the configuration says about its effects. That counts only for templates outside of the workspace."""
    files: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def entry(self) -> str:
        return os.path.join(self.folder, ENTRY)


def instances(places: Sequence[TemplateDirectory], wanted: Sequence[ConfiguredInstance]) -> list[Instance]:
    """Every tool: the configured ones, and one for each template folder that no configured tool uses."""
    named = [_instance(each.place.directory, each.place, each) for each in wanted]
    taken = {os.path.realpath(each.folder) for each in named}
    folders = {folder: place for place in places for folder in template_folders(place.directory)}
    alone = [_instance(folder, place) for folder, place in folders.items() if os.path.realpath(folder) not in taken]
    return named + alone


def template_folders(directory: str) -> Iterator[str]:
    """The directory itself if it is a template; otherwise the templates in it."""
    if os.path.lexists(os.path.join(directory, ENTRY)):
        yield directory
        return
    try:
        with os.scandir(directory) as found:
            names = sorted(entry.name for entry in found if not entry.name.startswith(".") and entry.is_dir())
    except OSError:
        return
    for name in names[:MOST_FOLDERS]:
        folder = os.path.join(directory, name)
        if os.path.lexists(os.path.join(folder, ENTRY)):
            yield folder


def identity_of_template(folder: str, files: Sequence[str] | None = None) -> str:
    """A text that changes when a file of the template or its manifest changes, or is renamed."""
    every = [*(own_files(folder) if files is None else files), os.path.join(folder, MANIFEST_FILE)]
    return hashlib.sha256("\0".join(f"{path} {identity_at(path)}" for path in every).encode(*_ANY_NAME)).hexdigest()


def own_files(folder: str) -> list[str]:
    """The paths of a template's files. If there are too many, the list ends after `MOST_FILES` + 1."""
    found: list[str] = []
    for top, directories, names in os.walk(folder):
        directories[:] = sorted(name for name in directories if name not in NOT_ITS_OWN)
        links = [name for name in directories if os.path.islink(os.path.join(top, name))]
        found += [os.path.join(top, name) for name in sorted([*names, *links]) if name not in NOT_ITS_OWN]
        if len(found) > MOST_FILES:
            return found[: MOST_FILES + 1]
    return found


def own_folders(folder: str) -> Iterator[str]:
    """The folder of a template and the folders in it, at most `MOST_FILES` + 1 of them."""
    for number, (top, directories, _names) in enumerate(os.walk(folder)):
        yield top
        directories[:] = [name for name in directories if name not in NOT_ITS_OWN]
        if number >= MOST_FILES:
            return


def _instance(folder: str, place: TemplateDirectory, wanted: ConfiguredInstance | None = None) -> Instance:
    name = name_of_folder(folder) if wanted is None else wanted.name
    manifest = read_manifest(folder)
    files = own_files(folder)
    return Instance(
        name=name,
        folder=folder,
        provenance=place.provenance,
        identity=identity_of_template(folder, files),
        user={} if wanted is None else wanted.user,
        unset={} if wanted is None else wanted.unset,
        workflow=None if manifest is None or wanted is not None else manifest.workflow,
        source=None if wanted is None else wanted.source,
        effects=NO_EFFECTS if wanted is None or place.provenance == "workspace" else wanted.effects,
        files=tuple(files),
        problem=_why_not(folder, place.within, files),
    )


def _why_not(folder: str, within: str | None, files: Sequence[str]) -> str | None:
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    for name in (ENTRY, REQUIREMENTS):
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            return f"there is no {name} in {folder}"
        if not os.access(path, os.R_OK):
            return f"{path} may not be read; change its permissions"
    if os.path.islink(os.path.join(folder, REQUIREMENTS)):
        return f"{REQUIREMENTS} in {folder} is a link: replace it by a regular file"
    for path in files:
        if os.path.islink(path) and os.path.isdir(path):
            return f"{path} is a link to a directory, whose files could change unnoticed: copy the files there"
    if len(files) > MOST_FILES:
        return f"its folder has more than {MOST_FILES} files, more than one approval can cover"
    if within is not None:
        root = os.path.realpath(within).rstrip("/") + "/"
        for path in (folder, *files):
            if not f"{os.path.realpath(path)}/".startswith(root):
                return f"{path} leads out of the workspace"
    return None
