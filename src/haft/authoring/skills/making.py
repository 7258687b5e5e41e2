"""A fresh skill: a folder whose SKILL.md explains itself, and can be used at once."""

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

<!-- Until they take up the skill, agents see only the name and the description above: say there what it teaches and
when to use it, in at most 1024 characters. The name is the folder's, of a-z, 0-9 and `-`. Everything from here on is
what they read then. Keep it short, and move what is rarely needed into files of references/: an agent asks for
references/setup.md by the name `setup`. Executables in tools/ join its tools; make one with
`haft tools make NAME --skill {name}`. -->

## When to use this

- …

## How to do it

1. …
"""


def place_for(workspace: str, home: str, *, is_global: bool) -> str:
    """Where a new skill goes: an existing directory, which really lies in the workspace unless it is the user's."""
    with made_place(workspace, home, is_global=is_global) as place:
        return place


@contextmanager
def made_place(workspace: str, home: str, *, is_global: bool) -> Iterator[str]:
    """The same. The directories that had to be made for it go again where the caller fails."""
    if is_global:
        if not os.path.isabs(home):
            raise BadUsage(f"your home directory is `{home[:200]}`, which is no absolute path", hint="set HOME")
        place = os.path.join(home, USER_PLACE)
    else:
        root = Root(workspace)
        place = os.path.join(root.root, root.locate(WORKSPACE_PLACE))
    try:
        made = make_directories(place)
    except OSError as error:
        raise BadUsage(f"{place} cannot be made: {(error.strerror or str(error)).lower()}") from error
    if not os.path.isdir(place):
        raise BadUsage(f"{place} cannot be made: it is no directory, or one above it is none")
    try:
        yield place
    except BaseException:
        unmake_directories(made)
        raise


def check_name(name: str) -> None:
    """`BadUsage` where a skill cannot be called this."""
    if not is_skill_name(name):
        raise BadUsage(
            f"`{name[:80]}` is no name for a skill", hint="at most 64 of a-z, 0-9 and `-`, not beginning with `-`"
        )


def write_skill(place: str, name: str, description: str | None, *, force: bool) -> str:
    """Write it, and return its folder. With `force` only its SKILL.md is written anew."""
    check_name(name)
    about = " ".join((description or _DESCRIPTION).split())
    if not about or len(about) > LONGEST_DESCRIPTION:
        raise BadUsage(f"a description has 1 to {LONGEST_DESCRIPTION} characters, this one has {len(about)}")
    folder = os.path.join(place, name)
    if os.path.lexists(folder) and not force:
        raise BadUsage(f"{folder} is there already", hint="`--force` writes its SKILL.md anew, and leaves the rest")
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
