"""CDD's agent skills, and the folders in which agents look for skills.

The skills are in the package, one `SKILL.md` each. Most agents use these files unchanged. Antigravity uses workflows,
one file for each skill. Cursor uses rules: the same text with another front matter. If a person changed an installed
file, a copy of that file is kept beside the new one. Such a copy is never overwritten. Links are followed only inside
the workspace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final, Literal

from cdd import files
from cdd.refusals import Refused

TARGETS: Final = {
    "agent": ".agent/skills",
    "agents": ".agents/skills",
    "antigravity": ".agent/workflows",
    "claude": ".claude/skills",
    "gemini": ".gemini/skills",
    "cursor": ".cursor/rules",
}

_SINGLE: Final = {"antigravity": "{}.md", "cursor": "{}.mdc"}
"""The file name pattern of targets that have one file for each skill."""

State = Literal["absent", "current", "differs"]


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill of the package."""

    name: str
    description: str
    content: str

    def file_for(self, target: str) -> str:
        """The path of this skill's file, relative to the target's folder."""
        return _SINGLE.get(target, os.path.join("{}", "SKILL.md")).format(self.name)

    def content_for(self, target: str) -> str:
        """The content of this skill's file. For Cursor, the front matter differs."""
        if target != "cursor":
            return self.content
        _opening, _front, body = self.content.split("---\n", 2)
        return f"---\ndescription: {self.description}\nglobs:\nalwaysApply: false\n---\n{body}"


@dataclass(frozen=True, slots=True)
class SkillFile:
    """The file of a skill in an agent's folder, whether it exists or not."""

    skill: Skill
    target: str
    path: str
    """The path of the file, relative to the workspace."""


@dataclass(frozen=True, slots=True)
class InstallResult:
    """What `install` did with one file. `state` is the file's state before; a current file was not written. `kept` is
    the path of the copy if a person had changed the file, and otherwise empty."""

    place: SkillFile
    state: State
    kept: str


def skills() -> list[Skill]:
    """The skills in this version of the package, sorted by name."""
    return sorted(_shipped(), key=lambda skill: skill.name)


def skill_files(targets: Sequence[str]) -> list[SkillFile]:
    """The files of every skill in each of the targets."""
    every = skills()
    return [
        SkillFile(skill, target, os.path.join(TARGETS[target], skill.file_for(target)))
        for target in targets
        for skill in every
    ]


def state(root: str, place: SkillFile) -> State:
    """Whether the file is absent, has the content of this version, or has another content."""
    path = _checked(root, place)
    if not os.path.lexists(path):
        return "absent"
    return "current" if files.read(path) == place.skill.content_for(place.target).encode() else "differs"


def install(root: str, wanted: Sequence[SkillFile]) -> list[InstallResult]:
    """Write the files that are absent or differ. All paths are checked before the first file is written."""
    states = [state(root, place) for place in wanted]
    done = []
    for place, found in zip(wanted, states, strict=True):
        path = os.path.join(root, place.path)
        kept = ""
        if found != "current":
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if found == "differs":
                kept = os.path.relpath(_keep(path), root)
            files.write(path, place.skill.content_for(place.target).encode())
        done.append(InstallResult(place, found, kept))
    return done


def _shipped() -> Iterator[Skill]:
    for folder in resources.files("cdd").joinpath("skills").iterdir():
        if not folder.is_dir() or folder.name.startswith(("_", ".")):
            continue
        content = folder.joinpath("SKILL.md").read_text(encoding="utf-8")
        front = content.split("---\n", 2)[1]
        fields = dict(line.split(": ", 1) for line in front.splitlines())
        yield Skill(fields["name"], fields["description"], content)


def _checked(root: str, place: SkillFile) -> str:
    path = os.path.join(root, place.path)
    real = os.path.realpath(os.path.dirname(path))
    inside = os.path.realpath(root)
    if os.path.commonpath([real, inside]) != inside:
        raise Refused(f"{place.path} would be outside this directory, in {real}.", "replace the link by a folder.")
    part = root
    for name in place.path.split(os.sep)[:-1]:
        part = os.path.join(part, name)
        if os.path.lexists(part) and not os.path.isdir(part):
            raise Refused(f"{os.path.relpath(part, root)} is not a folder.", "move it away and try again.")
    return path


def _keep(path: str) -> str:
    """Copy a file to the first `.bak` name that is free or has the same content."""
    content = files.read(path) or b""
    number = 1
    while True:
        copy = path + ".bak" + (f".{number}" if number > 1 else "")
        if not os.path.lexists(copy):
            files.write(copy, content)
            return copy
        if os.path.isfile(copy) and not os.path.islink(copy) and files.read(copy) == content:
            return copy
        number += 1
