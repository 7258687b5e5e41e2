"""A call in a few words: what it is about, for rows, bars and titles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from haft.surfaces.text.json_text import to_json_text

_FIRST: Final = ("command", "path", "pattern", "prompt", "query", "url", "name", "file", "text", "message")
"""The arguments that say most about a call, the most telling first."""
_ABOUT_RUNS: Final = frozenset({"undo", "redo", "apply", "drop"})


def subject(tool: str, arguments: Mapping[str, Any]) -> str:
    """What a call is about, on one line: its command, its path, or its first arguments."""
    return " ".join(_subject(tool, arguments).split())


def _subject(tool: str, arguments: Mapping[str, Any]) -> str:
    if tool in _ABOUT_RUNS and isinstance(runs := arguments.get("runs"), list):
        return ", ".join(map(short_id, map(str, runs)))
    if isinstance(pattern := arguments.get("pattern"), str) and isinstance(path := arguments.get("path"), str):
        return f"{pattern} in {path}"
    for name in _FIRST:
        if isinstance(value := arguments.get(name), str) and value:
            return value
    return ", ".join(f"{name} {_short(value)}" for name, value in list(arguments.items())[:4])


def short_id(name: str) -> str:
    """The id of a run or thread, short enough to be read aloud. Addresses have it whole."""
    kind, _, rest = name.partition("_")
    if kind in ("r", "a", "b") and len(rest) > 8:
        return f"{kind}_{rest[-6:]}"
    return f"{name[:6]}…{name[-4:]}" if name.startswith("T-") and len(name) > 20 else name


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else to_json_text(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
