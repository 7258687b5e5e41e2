"""Where toolbox executables are looked for, and what lies there. Nothing is started and nothing is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from haft.contracts import Provenance
from haft.files import leads_inside, lies_inside
from haft.sources.identity import identity_of
from haft.values import dataclass, replace

MOST_FILES: Final = 2_000
"""Of one directory. A folder of programs is no toolbox."""
LARGEST: Final = 256_000_000
MOST_OWN: Final = 500
PROJECT: Final = ".agents/tools"
_DATA: Final = (
    ".cfg", ".conf", ".css", ".csv", ".gif", ".html", ".ini", ".jpg", ".json", ".json5", ".jsonc", ".jsonl", ".lock",
    ".lockb", ".log", ".map", ".markdown", ".md", ".mod", ".pdf", ".png", ".rst", ".sum", ".svg", ".toml", ".tsv",
    ".txt", ".xml", ".yaml", ".yml", ".d.ts", ".bak", ".orig", ".swp", "~",
)  # fmt: skip
_DATA_NAMES: Final = frozenset(
    ("authors", "changelog", "codeowners", "copying", "license", "licence", "makefile", "notice", "readme", "justfile")
)
"""By their names, in small letters: what lies beside tools and is none."""
_SORTS: Final = (
    (stat.S_ISFIFO, "a fifo"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """A directory of toolbox executables."""

    directory: str
    provenance: Provenance
    within: str | None = None
    """Links may not lead out of here; None: they may lead anywhere."""
    skill: str | None = None
    """The skill that brings it."""
    folder: str | None = None
    """Of that skill."""
    is_active: bool = True
    """Whether that skill is: only then are its files asked what they are."""
    workspace: str | None = None
    """Links that lead there make a file the workspace's, wherever they lie."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be a tool."""

    path: str
    place: Place
    identity: str
    """Another one when the file is another, or was changed."""
    problem: str | None = None
    """Why it cannot be one, and the cure."""

    @property
    def key(self) -> str:
        return self.path

    @property
    def provenance(self) -> Provenance:
        return self.place.provenance

    @property
    def group(self) -> str:
        """What it is kept with: the tools of its directory."""
        return f"amp-toolbox:{self.place.directory}"


def standard_places(env: Mapping[str, str], workspace: str, configured: Sequence[str] = ()) -> list[Place]:
    """Every place, in the order in which names are given: AMP_TOOLBOX or the user's folder, the project's, and the
    directories that were configured."""
    root = os.path.realpath(workspace)
    said = env.get("AMP_TOOLBOX")
    own = [os.path.join("~", ".config", "amp", "tools")] if said is None else said.split(os.pathsep)
    directories = [os.path.abspath(os.path.expanduser(entry)) for entry in own if entry]
    directories += [os.path.join(root, PROJECT), *configured]
    return [_place(directory, root) for directory in dict.fromkeys(directories)]


def _place(directory: str, root: str) -> Place:
    inside = lies_inside(directory, root)
    return Place(directory, "workspace" if inside else "user", root if inside else None, workspace=root)


def candidates(place: Place) -> list[Candidate]:
    """What lies in a place, by name: no directories, no hidden files, nothing that is plainly data."""
    try:
        with os.scandir(place.directory) as found:
            names = sorted(entry.name for entry in found if _counts(entry))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        return [Candidate(place.directory, place, "", f"the directory cannot be read: {error.strerror}")]
    problem = _leaves(place.directory, place)
    if names and problem is not None:
        return [Candidate(place.directory, place, "", problem)]
    if len(names) > MOST_FILES:
        many = f"it has more than {MOST_FILES:_} files: a toolbox is a directory of its own"
        return [Candidate(place.directory, place, "", many)]
    return [candidate(os.path.join(place.directory, name), place) for name in names]


def _counts(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or is_data(entry.name):
        return False
    try:
        return not entry.is_dir()
    except OSError:
        return True


def is_data(name: str) -> bool:
    """Whether a file is no tool by its name, whatever its run bit says: a checkout may set that for every file."""
    small = name.lower()
    return small.endswith(_DATA) or small in _DATA_NAMES


def candidate(path: str, place: Place) -> Candidate:
    """One file, looked at. It is whose the real file is, and those are its makers who can change it."""
    root = place.workspace
    if place.provenance != "workspace" and root is not None and os.path.islink(path) and leads_inside(path, root):
        place = replace(place, provenance="workspace", within=root)
    try:
        found = os.stat(path)
    except OSError as error:
        if os.path.islink(path):
            there = f"it is a link to {os.readlink(path)}, which cannot be reached ({error.strerror})"
            return Candidate(path, place, "dangling", f"{there}; mend or remove the link")
        return Candidate(path, place, "gone", f"it cannot be read: {error.strerror}")
    return Candidate(path, place, identity_of(found), _problem(path, place, found))


def _problem(path: str, place: Place, found: os.stat_result) -> str | None:
    for is_one, word in _SORTS:
        if is_one(found.st_mode):
            return f"it is {word}, not a file; remove it"
    if not stat.S_ISREG(found.st_mode):
        return "it is not a file"
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8; rename it"
    if (why := _leaves(path, place)) is not None:
        return why
    if not os.access(path, os.X_OK):
        return f"it may not be executed; chmod +x {path}"
    if found.st_size > LARGEST:
        return f"it is larger than {LARGEST // 1_000_000} MB; a tool can start a program that lies elsewhere"
    if place.folder is not None and len(list(own_files(path, place.folder))) > MOST_OWN:
        return f"its skill has more than {MOST_OWN} files, and an approval could not hold for all of them"
    return None


def _leaves(path: str, place: Place) -> str | None:
    """A workspace brings its own files, and does not make tools of others."""
    if place.within is None:
        return None
    real = os.path.realpath(path)
    if f"{real}/".startswith(place.within.rstrip("/") + "/"):
        return None
    return (
        f"it leads out of the workspace, to {real}; to have it all the same, add its directory to AMP_TOOLBOX or to "
        "`toolbox.paths` of your own configuration"
    )


def own_files(path: str, folder: str | None) -> Iterator[str]:
    """The files that a tool is made of: itself, and what else its skill brings. Links are not followed: what they lead
    to is among the files, or not the skill's."""
    yield path
    count = 0
    for top, directories, names in os.walk(folder) if folder is not None else ():
        directories.sort()
        for name in sorted(names):
            inner = os.path.join(top, name)
            if inner != path and not os.path.islink(inner):
                yield inner
                count += 1
                if count > MOST_OWN:
                    return
