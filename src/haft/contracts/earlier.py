"""Names that earlier versions wrote down. Nothing on disk is rewritten, since some of it is hashed and some of it
belongs to a host that was killed: whoever reads knows both names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

FIELDS: Final = {"walls": "sandbox"}
"""Of outcomes and of requests for approval."""
CODES: Final = {"walled": "sandbox-denied"}
"""Of errors."""


def with_names_of_today(document: dict[str, Any]) -> dict[str, Any]:
    """A run or a request as this version would have written it; the same where nothing in it was renamed."""
    if not FIELDS.keys().isdisjoint(document):
        document = {FIELDS.get(name, name): value for name, value in document.items()}
    error = document.get("error")
    if isinstance(error, Mapping) and error.get("code") in CODES:
        document = {**document, "error": {**error, "code": CODES[error["code"]]}}
    return document
