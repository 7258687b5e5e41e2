"""Who commits: the few lines of a person's git configuration that a call may know."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import Final

KEPT: Final = frozenset({("user", "name"), ("user", "email"), ("init", "defaultbranch"), ("safe", "directory")})
_SECTION: Final = re.compile(r"\[\s*([A-Za-z0-9.-]+)\s*\]\s*(.*)$")
_SETTING: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*)$")
_MOST_BYTES: Final = 200_000


def known_to_git(home: str, env: Mapping[str, str]) -> str:
    """What to write into the private home. Included files are not followed."""
    config = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    found: dict[tuple[str, str], list[str]] = {}
    for path in (os.path.join(config, "git", "config"), os.path.join(home, ".gitconfig")):
        for section, name, value in settings(path):
            if (section, name) in KEPT:
                found.setdefault((section, name), []).append(value)
    return "".join(
        f"[{section}]\n\t{name} = {value}\n"
        for (section, name), values in found.items()
        for value in (values if section == "safe" else values[-1:])
    )


def read_plain(path: str, most: int) -> str:
    """The beginning of a regular file that is no link; nothing of anything else. In a workspace anything may lie under
    a name: a pipe would be waited for."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return ""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        with open(os.open(path, flags), "rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def first_line(path: str) -> str:
    """Of a regular file; nothing of anything else."""
    return read_plain(path, 4096).split("\n", 1)[0]


def settings(path: str) -> Iterator[tuple[str, str, str]]:
    """Section, name and value, the first two in small letters. Sections with a name of their own are passed over."""
    text = read_plain(path, _MOST_BYTES).replace("\\\n", "")
    section = ""
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("["):
            opened = _SECTION.match(words)
            section = opened.group(1).lower() if opened else ""
            words = opened.group(2) if opened else ""
        setting = _SETTING.match(words)
        if setting:
            yield section, setting.group(1).lower(), unquoted(setting.group(2))


def unquoted(value: str) -> str:
    """A value as git reads it: without comment and quotes."""
    kept, quoted = "", False
    for letter in value:
        if letter == '"':
            quoted = not quoted
        elif letter in ";#" and not quoted:
            break
        else:
            kept += letter
    return kept.strip()
