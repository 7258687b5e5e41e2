"""Finds skills in the directories where agents keep them. If two skills have the same name, the one in the earlier
directory counts.

A scan is a `scandir` and a few `stat`s; front matter is read again only if a SKILL.md changed. A skill of the workspace
must really lie in the workspace: agents may read every file of a skill's folder without approval, so a link would let a
cloned repository expose the user's own files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from haft.contracts import BadUsage, Definitions, HaftError, near_miss
from haft.sources.skills.front_matter import MOST_BYTES, read_front_matter
from haft.sources.skills.skill import LARGEST_TEXT, SKILL_FILE, Skill, SkillProvenance, lies_in, real_path
from haft.sources.skills.texts import read_text
from haft.values import replace

SHIPPED: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shipped")
WORKSPACE_PLACE: Final = ".agents/skills"
USER_PLACE: Final = ".config/agents/skills"

_MOST_SCANNED: Final = 10_000
_MOST_SKILLS: Final = 1_000
_WORDS: Final = {"name", "description", "problem"}


class Skills:
    """The skills of a workspace."""

    def __init__(
        self, workspace: str, definitions: Definitions | None = None, env: Mapping[str, str] = os.environ
    ) -> None:
        self.workspace = os.path.realpath(workspace)
        self._definitions = definitions
        home = env.get("HOME") or os.path.expanduser("~")
        self._home = os.path.realpath(home) if os.path.isabs(home) else ""
        self._known: dict[str, dict[str, Any]] = {}
        self._last: tuple[Skill, ...] | None = None

    def places(self) -> list[tuple[str, SkillProvenance]]:
        """The directories that may have skills, each with its provenance. If two directories have a skill of the same
        name, the skill in the earlier directory counts."""
        wanted = [
            os.path.join(self.workspace, WORKSPACE_PLACE),
            os.path.join(self._home, USER_PLACE),
            os.path.join(self._home, ".config/amp/skills"),
            os.path.join(self.workspace, ".claude/skills"),
            os.path.join(self._home, ".claude/skills"),
        ]
        # If the home directory is the workspace, two of these directories are the same.
        places = dict.fromkeys(path for path in wanted if os.path.isabs(path))
        found: list[tuple[str, SkillProvenance]] = [
            (path, "workspace" if lies_in(path, self.workspace) else "user") for path in places
        ]
        return [*found, (SHIPPED, "builtin")]

    def found(self) -> list[Skill]:
        """Every skill, including skills that cannot be used."""
        skills: list[Skill] = []
        taken: dict[str, str] = {}
        for place, provenance in self.places():
            for skill in self._in(place, provenance):
                shadow = taken.get(skill.name)
                if skill.problem is None and shadow is None:
                    taken[skill.name] = skill.folder
                skills.append(skill if shadow is None else replace(skill, shadowed_by=shadow))
        if self._last is None or self._last != tuple(skills):
            self._last = tuple(skills)
        return skills

    def last_found(self) -> tuple[Skill, ...]:
        """The result of the last scan; the same object as long as nothing changed."""
        if self._last is None:
            self.found()
        assert self._last is not None
        return self._last

    def get(self, name: str) -> Skill:
        """The usable skill with this name. Raises `BadUsage` if there is no such skill."""
        found = self.found()
        named = [skill for skill in found if skill.name == name]
        for skill in named:
            if skill.is_usable:
                return skill
        for skill in named:
            if skill.problem is not None:
                raise BadUsage(f"the skill `{name}` in {skill.folder} cannot be used: {skill.problem}")
        usable = [skill.name for skill in found if skill.is_usable]
        near = near_miss(name[:80], usable)
        hint = f"did you mean `{near}`?" if near else "`haft skills list` shows the skills there are"
        raise BadUsage(f"there is no skill called `{name[:80]}`", hint=hint)

    def text(self, skill: Skill, reference: str | None = None) -> str:
        """The content of a text file in a skill's folder: of the file that `reference` names, or of SKILL.md if
        `reference` is None. Never reads a file outside the folder."""
        self._require_in_place(skill)
        return read_text(skill, reference)

    def _require_in_place(self, skill: Skill) -> None:
        """Refuse a skill whose folder has become a link out of the workspace since it was found."""
        problem = self._link_problem(real_path(skill.folder), skill.provenance)
        if problem is not None:
            raise BadUsage(f"the skill `{skill.name}` in {skill.folder} cannot be used: {problem}")

    def _in(self, place: str, provenance: SkillProvenance) -> Iterator[Skill]:
        folders = _folders(place)
        if not folders:
            return
        known = self._known_in(place)
        now: dict[str, Any] = {}
        real_place = real_path(place)
        for name, is_link in folders:
            real = real_path(os.path.join(place, name)) if is_link else os.path.join(real_place, name)
            yield self._skill(os.path.join(place, name), real, provenance, known, now)
        if now != known:
            self._known[place] = now
            if self._definitions is not None:
                self._definitions.save(f"skills:{place}", now)

    def _known_in(self, place: str) -> dict[str, Any]:
        if place not in self._known:
            self._known[place] = {} if self._definitions is None else self._definitions.load(f"skills:{place}")
        return self._known[place]

    def _skill(
        self, folder: str, real: str, provenance: SkillProvenance, known: Mapping[str, Any], now: dict[str, Any]
    ) -> Skill:
        name = os.path.basename(folder)
        if provenance == "user" and lies_in(real, self.workspace):
            provenance = "workspace"  # whoever can write to the workspace can change this skill
        within = self._within(folder, real) if provenance == "workspace" else None
        skill = Skill(name, "", folder, provenance, self._link_problem(real, provenance), within=within)
        if skill.problem is not None:
            return skill
        path = os.path.join(folder, SKILL_FILE)
        status, problem = _look(path, real)
        if status is None:
            return replace(skill, problem=problem)
        identity = [path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        kept: Any = known.get(name)
        now[name] = entry = kept if _is_kept(kept, identity) else _read(skill, identity)
        return replace(skill, name=entry["name"], description=entry["description"], problem=entry["problem"])

    def _within(self, folder: str, real: str) -> tuple[str, str]:
        """The workspace, and the path from there to a skill's folder. If the folder lies outside the workspace and is a
        link into the workspace, the path leads to the target of the link."""
        return self.workspace, os.path.relpath(folder if lies_in(folder, self.workspace) else real, self.workspace)

    def _link_problem(self, real: str, provenance: SkillProvenance) -> str | None:
        if provenance != "workspace" or lies_in(real, self.workspace):
            return None
        return (
            "it is a link out of the workspace, and agents could read files that do not belong to the workspace; "
            f"copy it here with `haft skills install`, or put the link into ~/{USER_PLACE}"
        )


def _folders(place: str) -> list[tuple[str, bool]]:
    """The names of the folders in a directory, and whether each is a link."""
    try:
        with os.scandir(place) as entries:
            found = [(entry.name, entry.is_symlink()) for entry in islice(entries, _MOST_SCANNED) if _is_folder(entry)]
    except OSError:
        return []
    found.sort()
    if len(found) > _MOST_SKILLS:
        import logging

        logging.getLogger("haft").warning("%s has %d folders; only %d are read", place, len(found), _MOST_SKILLS)
    return found[:_MOST_SKILLS]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return not entry.name.startswith(".") and entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _look(path: str, real_folder: str) -> tuple[os.stat_result | None, str | None]:
    """The stat of a SKILL.md and None; if the file cannot be used, None and the reason."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            status = os.stat(path)
            if not lies_in(real_path(path), real_folder):
                return None, f"its {SKILL_FILE} is a link out of its folder; copy the file, or link the whole folder"
    except FileNotFoundError:
        return None, f"it has no {SKILL_FILE}; write one, or remove the folder"
    except OSError as error:
        return (
            None,
            f"its {SKILL_FILE} cannot be read: {(error.strerror or str(error)).lower()}; change its permissions",
        )
    if not stat.S_ISREG(status.st_mode):
        return None, f"its {SKILL_FILE} is not a regular file; write a text file"
    if status.st_size > LARGEST_TEXT:
        return None, f"its {SKILL_FILE} has {status.st_size:_} bytes; move most of it into references/"
    return status, None


def _is_kept(kept: Any, identity: list[Any]) -> bool:
    return isinstance(kept, dict) and kept.get("identity") == identity and kept.keys() >= _WORDS


def _read(skill: Skill, identity: list[Any]) -> dict[str, Any]:
    """Read the front matter of a skill, and compare the name there with the folder's name. Returns the cache entry."""
    try:
        with skill.files().open(SKILL_FILE) as file:
            beginning = file.read(MOST_BYTES)
    except HaftError as error:
        return _unread(skill, f"{error.message}; change its permissions")
    except OSError as error:
        return _unread(skill, f"it cannot be read: {(error.strerror or str(error)).lower()}; try again")
    matter = read_front_matter(beginning)
    problem = matter.problem
    if problem is None and matter.name != skill.name:
        problem = f"its name is `{matter.name}` and its folder is `{skill.name}`; give both the same name"
    return {
        "identity": identity,
        "name": matter.name or skill.name,
        "description": matter.description,
        "problem": problem,
    }


def _unread(skill: Skill, problem: str) -> dict[str, Any]:
    return {"identity": None, "name": skill.name, "description": "", "problem": problem}
