"""A cache of the descriptions of tools, in a small file for each group of tools. A damaged file counts as empty.

The cache uses files and not the database, so that listing tools need not open a database.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

FORM: Final = 2
"""The version of the file format; files of other versions are not read."""
MAX_BYTES: Final = 64_000_000


class DefinitionCache:
    """Implements `Definitions` for a state home and this version of haft."""

    def __init__(self, directory: str, version: str) -> None:
        self._directory = directory
        self._version = f"{FORM}:{version}"
        self.context = ""

    def load(self, group: str) -> dict[str, Any]:
        try:
            with open(self._path(group), "rb") as file:
                kept = json.loads(file.read(MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(kept, dict) or kept.get("version") != self._version or kept.get("group") != group:
            return {}
        known = kept.get("known")
        return known if isinstance(known, dict) else {}

    def save(self, group: str, known: Mapping[str, Any]) -> None:
        """Write the definitions of a group to a temporary file and rename it, so that no process reads half of it. If
        that fails, the tools are described again next time."""
        if not os.path.isdir(os.path.dirname(self._directory)):
            return  # A command that only reads must not make the state home.
        path = self._path(group)
        temporary = f"{path}.{os.urandom(8).hex()}.tmp"
        with suppress(OSError):
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            try:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with open(descriptor, "w", encoding="utf-8") as file:
                    json.dump({"version": self._version, "group": group, "known": dict(known)}, file)
                os.rename(temporary, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise

    def _path(self, group: str) -> str:
        digest = hashlib.sha256(os.fsencode(group)).hexdigest()[:24]
        return os.path.join(self._directory, f"{digest}.json")
