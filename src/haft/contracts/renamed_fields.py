"""Field names and codes that earlier versions wrote to disk. haft does not rewrite old files, because some are hashed
and some belong to a host that was killed. So readers translate the old names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

FIELDS: Final = {"walls": "sandbox"}
"""Fields of outcomes and of requests for approval: the old name, and the current one."""
CODES: Final = {"walled": "sandbox-denied"}
"""Error codes: the old one, and the current one."""


def with_current_names(document: dict[str, Any]) -> dict[str, Any]:
    """A run or a request with the names of this version. Returns the same object if it has no old name."""
    if not FIELDS.keys().isdisjoint(document):
        renamed = {FIELDS[name]: value for name, value in document.items() if name in FIELDS}
        kept = {name: value for name, value in document.items() if name not in FIELDS}
        document = {**renamed, **kept}  # A document with both names was not written by haft: the current one counts.
    error = document.get("error")
    code = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(error, Mapping) and isinstance(code, str) and code in CODES:
        document = {**document, "error": {**error, "code": CODES[code]}}
    return document
