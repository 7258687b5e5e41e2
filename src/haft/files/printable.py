"""Writes a path in a printable form, for people and models.

A file name may contain newlines, escape sequences, invisible characters, or bytes that are no UTF-8. If haft printed
such a name unchanged, the name could fake a line of output, or hide a part of itself. So all unprintable characters are
escaped. The exact name is in the structured result.
"""

from __future__ import annotations


def shown(path: str) -> str:
    """`path` on one line: unprintable characters as escapes, bytes that are no UTF-8 as `\\xNN`."""
    if path.isprintable():
        return path
    return "".join(character if character.isprintable() else _escape(character) for character in path)


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a surrogate escape: one byte that was no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
