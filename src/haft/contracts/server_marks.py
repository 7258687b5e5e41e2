"""The mark before a text of an MCP server, by which a model knows who wrote the text."""

from __future__ import annotations

import re

from haft.lazy import regex

_IMITATION = regex(r"(?<!\\)\[(?=\s*MCP\s+server\b)", re.IGNORECASE)
"""The beginning of something that looks like a mark, and is not escaped."""


def marked_text(server: str, text: str) -> str:
    """A text of a server, with a mark that names the server. Whatever in the text looks like a mark is escaped."""
    mark = f"[MCP server {server}]"
    return f"{mark} {escaped_marks(text)}" if text else mark


def escaped_marks(text: str) -> str:
    """A text with an escape before everything that looks like a mark."""
    return _IMITATION.sub(r"\\[", text) if "[" in text else text
