"""The text of a workspace's configuration as it was trusted, and how the file differs from it now.

Known secrets are taken out before a text is kept or compared: values of variables whose names say secret, and what the
file itself assigns to such a name, in the line that does so. Placeholders such as `${env:NAME}` stay as they are.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from haft.audit import secret_values
from haft.contracts import MARK, BadConfig, Secrets, named_secrets, says_secret
from haft.service.config_files import ConfigFile
from haft.service.narrowing import FREE_TABLES
from haft.service.placeholders import has_placeholder

SHORTEST: Final = 6
"""Characters of a value that is taken out: shorter letters would take words of a line with them."""
LARGEST: Final = 256_000
"""Characters of a text that is kept. What is larger is shown whole again."""
_ASSIGNED: Final = re.compile(r"""^[\s{,]*["']?([A-Za-z0-9_.-]+)["']?\s*[=:]""")


@dataclass(frozen=True, slots=True)
class SinceTrusted:
    """How a file differs from what was trusted."""

    difference: tuple[str, ...]
    """As a unified diff, without its two lines of names; empty where only hidden values differ."""
    before: ConfigFile
    """The file as it was trusted, without secrets."""

    def sentence(self) -> str:
        added, removed = (sum(line.startswith(sign) for line in self.difference) for sign in "+-")
        name = os.path.basename(self.before.path)
        lines = f"{added} line{'' if added == 1 else 's'} added, {removed} removed"
        return f"{name} has changed since it was trusted ({lines})"


def text_to_keep(file: ConfigFile, env: Mapping[str, str]) -> str | None:
    """The text that is kept when a file is trusted; None where it is too large."""
    text = _without_secrets(file, env)
    return text if len(text) <= LARGEST else None


def since_trusted(kept: str | None, file: ConfigFile, env: Mapping[str, str]) -> SinceTrusted | None:
    """How a file differs from the text that was kept; None where none was."""
    if kept is None:
        return None
    lines = difflib.unified_diff(kept.split("\n"), _without_secrets(file, env).split("\n"), lineterm="")
    return SinceTrusted(tuple(lines)[2:], ConfigFile(file.path, kept.encode(), file.shown))


def _without_secrets(file: ConfigFile, env: Mapping[str, str]) -> str:
    text = file.data.decode("utf-8", "backslashreplace")
    known = Secrets(secret_values(env))
    assigned = Secrets(_assigned(file), SHORTEST)
    return "\n".join(known.masked_text(_masked(line, assigned)) for line in text.split("\n"))


def _assigned(file: ConfigFile) -> set[str]:
    """What the file assigns to names that say secret, in the tables that may hold any values."""
    with suppress(BadConfig):
        tables = {name: value for name, value in file.settings() if name in FREE_TABLES}
        return {value for value in named_secrets(tables) if value and not has_placeholder(value)}
    return set()


def _masked(line: str, assigned: Secrets) -> str:
    """A line that assigns to a name which says secret, without the value: elsewhere the same letters may be a rule."""
    name = _ASSIGNED.match(line)
    if name is None or not says_secret(name[1]) or MARK in line:
        return line
    return assigned.masked_text(line)
