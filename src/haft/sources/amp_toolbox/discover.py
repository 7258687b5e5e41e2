"""The directories of toolbox executables, and the files in them. Starts nothing and opens no file."""

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
"""The most files in one directory. A directory of more programs is not a toolbox."""
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
"""Names, in lower case, of files that lie beside tools and are not tools."""
_SORTS: Final = (
    (stat.S_ISFIFO, "a fifo"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class ToolboxDirectory:
    """A directory of toolbox executables."""

    directory: str
    provenance: Provenance
    within: str | None = None
    """The directory that no link may lead out of; None if links may lead anywhere."""
    skill: str | None = None
    """The name of the skill that the directory belongs to; None if it belongs to no skill."""
    folder: str | None = None
    """The folder of that skill."""
    is_active: bool = True
    """Whether that skill is active: only then are its files described."""
    workspace: str | None = None
    """The root of the workspace. If a file is a link that leads into the workspace, it is a tool of the workspace,
    wherever the link is."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be a tool."""

    path: str
    place: ToolboxDirectory
    identity: str
    """A text that changes when the file is replaced or modified."""
    problem: str | None = None
    """Why the file cannot be a tool, and what to do."""

    @property
    def key(self) -> str:
        return self.path

    @property
    def provenance(self) -> Provenance:
        return self.place.provenance

    @property
    def group(self) -> str:
        """The name of the cache group, which has all tools of the file's directory."""
        return f"amp-toolbox:{self.place.directory}"


def standard_places(env: Mapping[str, str], workspace: str, configured: Sequence[str] = ()) -> list[ToolboxDirectory]:
    """All toolbox directories, in the order of their priority for names: AMP_TOOLBOX or the user's directory, the
    directory of the project, and the configured directories."""
    root = os.path.realpath(workspace)
    variable = env.get("AMP_TOOLBOX")
    own = [os.path.join("~", ".config", "amp", "tools")] if variable is None else variable.split(os.pathsep)
    directories = [os.path.abspath(os.path.expanduser(entry)) for entry in own if entry]
    directories += [os.path.join(root, PROJECT), *configured]
    return [_place(directory, root) for directory in dict.fromkeys(directories)]


def _place(directory: str, root: str) -> ToolboxDirectory:
    inside = lies_inside(directory, root)
    return ToolboxDirectory(directory, "workspace" if inside else "user", root if inside else None, workspace=root)


def candidates(place: ToolboxDirectory) -> list[Candidate]:
    """The files in a directory, sorted by name, without directories, hidden files and data files."""
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
    """Whether a file is data and no tool, judged by its name. The run bit does not count, because a checkout may set
    the run bit of every file."""
    small = name.lower()
    return small.endswith(_DATA) or small in _DATA_NAMES


def candidate(path: str, place: ToolboxDirectory) -> Candidate:
    """One file as a candidate. A link that leads into the workspace is a tool of the workspace: whoever can write there
    can change the tool."""
    root = place.workspace
    if place.provenance != "workspace" and root is not None and os.path.islink(path) and leads_inside(path, root):
        place = replace(place, provenance="workspace", within=root)
    try:
        found = os.stat(path)
    except OSError as error:
        if os.path.islink(path):
            there = f"it is a link to {os.readlink(path)}, which cannot be reached ({error.strerror})"
            return Candidate(path, place, "dangling", f"{there}; fix or remove the link")
        return Candidate(path, place, "gone", f"it cannot be read: {error.strerror}")
    return Candidate(path, place, identity_of(found), _problem(path, place, found))


def _problem(path: str, place: ToolboxDirectory, found: os.stat_result) -> str | None:
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
        return f"it is larger than {LARGEST // 1_000_000} MB; make the tool a script that starts the large program"
    if place.folder is not None and len(list(own_files(path, place.folder))) > MOST_OWN:
        return f"its skill has more than {MOST_OWN} files, more than one approval can cover"
    return None


def _leaves(path: str, place: ToolboxDirectory) -> str | None:
    """Why a file in a workspace's toolbox cannot be a tool: it is a link that leads out of the workspace. None for
    other files."""
    if place.within is None:
        return None
    real = os.path.realpath(path)
    if f"{real}/".startswith(place.within.rstrip("/") + "/"):
        return None
    return (
        f"it leads out of the workspace, to {real}; to use it anyway, add its directory to AMP_TOOLBOX or to "
        "`toolbox.paths` of your own configuration"
    )


def own_files(path: str, folder: str | None) -> Iterator[str]:
    """The files of a tool: its executable, and all files of its skill. Links are left out: a link leads to another of
    these files, or to a file that does not belong to the skill."""
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
