"""Makes a new skill: a folder with a SKILL.md that explains the format and works at once."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from haft.authoring.directories import let_owner_in, make_directories, unmake_directories
from haft.contracts import BadUsage
from haft.files import Root
from haft.sources.skills import LONGEST_DESCRIPTION, REFERENCES, SKILL_FILE, USER_PLACE, WORKSPACE_PLACE, is_skill_name

_DESCRIPTION: Final = "Say what this skill teaches. Use when: say which work it is for."

_TEXT: Final = """\
---
name: {name}
description: {description}
---

# {title}

<!-- Before agents load the skill, they see only the name and the description above: say there what it teaches and when
to use it, in at most 1024 characters. The name is the name of the folder, of a-z, 0-9 and `-`. Agents read the text
below when they load the skill. Keep it short, and move rarely needed parts into files of references/: an agent asks
for references/setup.md by the name `setup`. Executables in tools/ become tools when the skill is active; make one with
`haft tools make NAME --skill {name}`. -->

## When to use this

- …

## How to do it

1. …
"""


def place_for(workspace: str, home: str, *, is_global: bool) -> str:
    """The directory for new skills, created if it is missing. Unless `is_global`, it is inside the workspace."""
    with make_place(workspace, home, is_global=is_global) as place:
        return place


@contextmanager
def make_place(workspace: str, home: str, *, is_global: bool) -> Iterator[str]:
    """The directory for new skills, as `place_for` returns it. If the `with` block raises an error, the directories
    that were created are removed again."""
    if is_global:
        if not os.path.isabs(home):
            raise BadUsage(f"your home directory `{home[:200]}` is not an absolute path", hint="set HOME")
        place = os.path.join(home, USER_PLACE)
    else:
        root = Root(workspace)
        place = os.path.join(root.root, root.locate(WORKSPACE_PLACE))
    try:
        made = make_directories(place)
    except OSError as error:
        raise BadUsage(f"{place} cannot be made: {(error.strerror or str(error)).lower()}") from error
    if not os.path.isdir(place):
        raise BadUsage(f"{place} cannot be created: it, or a parent of it, is not a directory")
    try:
        yield place
    except BaseException:
        unmake_directories(made)
        raise


def check_name(name: str) -> None:
    """Raise `BadUsage` if a skill cannot have this name."""
    if not is_skill_name(name):
        raise BadUsage(
            f"`{name[:80]}` is not a valid name for a skill",
            hint="use at most 64 of a-z, 0-9 and `-`, and do not begin with `-`",
        )


def write_skill(place: str, name: str, description: str | None, *, force: bool) -> str:
    """Write a new skill, and return its folder. With `force`, the SKILL.md of an existing skill is overwritten, and its
    other files stay."""
    check_name(name)
    about = " ".join((description or _DESCRIPTION).split())
    if not about or len(about) > LONGEST_DESCRIPTION:
        raise BadUsage(f"a description has 1 to {LONGEST_DESCRIPTION} characters, this one has {len(about)}")
    folder = os.path.join(place, name)
    if os.path.lexists(folder) and not force:
        raise BadUsage(f"{folder} exists already", hint="`--force` overwrites its SKILL.md, and leaves the rest")
    text = _TEXT.format(
        name=name, description=json.dumps(about, ensure_ascii=False), title=name.replace("-", " ").capitalize()
    )
    made = [] if os.path.lexists(folder) else make_directories(folder)
    try:
        Root(place).replace(f"{name}/{SKILL_FILE}", text.encode("utf-8", "replace"))
        if made:
            let_owner_in(os.path.join(folder, SKILL_FILE), stat.S_IRUSR | stat.S_IWUSR)
    except BaseException:
        unmake_directories(made)
        raise
    for inside in (REFERENCES, "tools"):
        try:
            make_directories(os.path.join(folder, inside))
        except OSError as error:
            raise BadUsage(f"{folder}/{inside} cannot be made: {(error.strerror or str(error)).lower()}") from error
    return folder
