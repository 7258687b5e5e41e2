"""Splits a Markdown text into its front matter, the lines between two `---` at its top, and the text below."""

from __future__ import annotations


def split_front_matter(text: str) -> tuple[str, str] | None:
    """The front matter and the text below it; None if the text does not begin with front matter."""
    first, *rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if first.rstrip() != "---":
        return None
    for number, line in enumerate(rest):
        if line.rstrip() == "---":
            return "\n".join(rest[:number]), "\n".join(rest[number + 1 :])
    return None
