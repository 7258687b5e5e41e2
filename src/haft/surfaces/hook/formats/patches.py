"""The files that a patch in the form of `apply_patch` names."""

from __future__ import annotations

from haft.lazy import regex

_FILE = regex(r"(?m)^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$")
_ONLY_PATCH = regex(r"(?s)\s*apply_patch\s+<<\s*(['\"]?)(\w+)\1\s*\n(.*\n)\2\s*")
_EXPANDED = ("$", "`", "\\")
"""A shell replaces these in a here-document whose word is not quoted: such a text may run commands."""


def files_in_patch(patch: str) -> list[str]:
    """The paths in a patch, as it writes them."""
    return [*dict.fromkeys(_FILE.findall(patch))]


def patch_in_command(command: str) -> str | None:
    """The patch, if a shell command only calls `apply_patch` with it; None for all other commands. Codex applies such a
    patch itself, without a shell."""
    found = _ONLY_PATCH.fullmatch(command)
    if found is None or any(line == found[2] for line in found[3].splitlines()):
        return None
    if not found[1] and any(mark in found[3] for mark in _EXPANDED):
        return None
    return found[3]
