"""Texts as they are written into scenario files."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_UNPRINTABLE: Final = re.compile(
    r"[^\n\t\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def quoted(value: Any) -> str:
    """A value as JSON that is YAML too: what YAML cannot print is escaped."""
    return escaped(json.dumps(value, ensure_ascii=False))


def escaped(text: str) -> str:
    """A text in which what YAML cannot print is escaped."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def block_text(value: str, indent: int) -> str | None:
    """A text as a literal block of YAML with its newline at the end; None if a block cannot have exactly this text."""
    body = value.rstrip("\n")
    ends = len(value) - len(body)
    if (
        not body
        or body.startswith((" ", "\n"))
        or ends > 1
        or re.search(r"[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe]", body)
    ):
        return None
    if any(line != line.rstrip(" ") and not line.strip() for line in body.split("\n")):
        return None
    lines = "".join(f"{' ' * indent}{line}\n" if line else "\n" for line in body.split("\n"))
    return f"|{'' if ends else '-'}\n{lines}"
