"""The text of a workspace's configuration at the time it was trusted, and how the file differs from it now.

Known secrets are removed before a text is stored or compared: values of variables whose names suggest a secret, and
texts that the file itself assigns to such a name. A salted digest replaces them, so that a change of a secret is still
visible. Everything else stays: programs, plain addresses, tables and lists with any name, and placeholders such as
`${env:NAME}`.
"""

from __future__ import annotations

import difflib
import hmac
import json
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from haft.audit import secret_values
from haft.config.files import ConfigFile
from haft.config.narrowing import FREE_TABLES
from haft.config.placeholders import has_placeholder
from haft.contracts import MARK, BadConfig, Secrets, says_secret

SHORTEST: Final = 6
"""The minimum length of a value that is removed: a shorter one would also remove ordinary words."""
LARGEST: Final = 256_000
"""The maximum length of a text that is stored. When a longer file changes, haft cannot show a diff and shows all of it
again."""
_PAIR: Final = re.compile(r"""(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]+)["']?[ \t]*[=:]\s*("(?:[^"\\\n]|\\.)*"|'[^'\n]*')""")
_DIGEST: Final = re.compile(re.escape(MARK[:-1]) + r" ([0-9a-f]{32})\]")
_PLAIN_ADDRESS: Final = re.compile(r"https?://[^@?\s]+")
_SECRET_ADDRESS: Final = re.compile(r"webhook|dsn", re.IGNORECASE)
"""Names of keys for which even a plain web address is a secret."""


@dataclass(frozen=True, slots=True)
class SinceTrusted:
    """How a file differs from its trusted version."""

    difference: tuple[str, ...]
    """The lines of a unified diff, without the `---` and `+++` lines."""
    before: ConfigFile
    """The file as it was trusted, with digests in place of secrets."""
    now: ConfigFile
    """The file as it is now, with digests in place of secrets."""

    def sentence(self) -> str:
        added, removed = (sum(line.startswith(sign) for line in self.difference) for sign in "+-")
        name = os.path.basename(self.before.path)
        lines = f"{added} line{'' if added == 1 else 's'} added, {removed} removed"
        return f"{name} has changed since it was trusted ({lines})"


def text_to_keep(file: ConfigFile, env: Mapping[str, str]) -> tuple[str, str] | None:
    """The text that is stored when a file is trusted, and the salt of the digests in it; None if the text is too large
    or contains a secret of several lines."""
    salt = secrets.token_hex(16)
    text = _without_secrets(file, env, salt)
    is_kept = len(text) <= LARGEST and not any("\n" in value for value in _assigned(file))
    return (text, salt) if is_kept else None


def since_trusted(kept: tuple[str, str] | None, file: ConfigFile, env: Mapping[str, str]) -> SinceTrusted | None:
    """How a file differs from the stored text; None if no text was stored."""
    if kept is None:
        return None
    before, salt = kept
    now = _without_secrets(file, env, salt)
    known = {found[1] for found in _DIGEST.finditer(before)}

    def shown(line: str) -> str:
        is_new = line.startswith("+")
        return _DIGEST.sub(
            lambda found: f"{MARK[:-1]}: its value changed]" if is_new and found[1] not in known else MARK, line
        )

    lines = difflib.unified_diff(before.split("\n"), now.split("\n"), lineterm="")
    then, new = (ConfigFile(file.path, text.encode(), file.shown) for text in (before, now))
    return SinceTrusted(tuple(map(shown, lines))[2:], then, new)


def _without_secrets(file: ConfigFile, env: Mapping[str, str], salt: str) -> str:
    assigned = _assigned(file)

    def digest(hidden: str) -> str:
        keyed = hmac.new(bytes.fromhex(salt), hidden.encode("utf-8", "surrogatepass"), "sha256")
        return f"{MARK[:-1]} {keyed.hexdigest()[:32]}]"

    def pair(found: re.Match[str]) -> str:
        name, quoted = found[1], found[2]
        is_hidden = _hides(name.rpartition(".")[2], _decoded(quoted)) and _decoded(quoted) in assigned
        return found[0].removesuffix(quoted) + quoted[0] + digest(quoted[1:-1]) + quoted[0] if is_hidden else found[0]

    text = _PAIR.sub(pair, file.data.decode("utf-8", "backslashreplace"))
    pieces, at = [], 0
    for start, end in Secrets(secret_values(env)).spans_in(text):
        pieces += [text[at:start], digest(text[start:end])]
        at = end
    return "".join((*pieces, text[at:]))


def _decoded(quoted: str) -> str:
    with suppress(ValueError):
        return str(json.loads(quoted)) if quoted[0] == '"' else quoted[1:-1]
    return quoted[1:-1]


def _hides(name: str, value: str) -> bool:
    """Whether a value must be removed from the text, because the name of its key suggests that it is a secret."""
    is_plain = _PLAIN_ADDRESS.fullmatch(value) is not None and not _SECRET_ADDRESS.search(name)
    return says_secret(name) and len(value) >= SHORTEST and not is_plain and not has_placeholder(value)


def _assigned(file: ConfigFile) -> set[str]:
    """The texts that the file assigns to names that suggest a secret, in tables that may contain any values."""
    found: set[str] = set()
    with suppress(BadConfig):
        left: list[Any] = [value for name, value in file.settings() if name in FREE_TABLES]
        while left:
            one = left.pop()
            if isinstance(one, Mapping):
                found |= {value for name, value in one.items() if isinstance(value, str) and _hides(str(name), value)}
                left += one.values()
            elif isinstance(one, list | tuple):
                left += one
    return found
