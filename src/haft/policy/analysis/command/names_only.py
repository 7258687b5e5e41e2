"""Programs that print the names of files without reading the files. If such a file is a link out of the workspace, that
does no harm."""

from __future__ import annotations

from typing import Final

from haft.lazy import regex
from haft.policy.analysis.command.builtin import why_not_inside
from haft.policy.analysis.program import Argument
from haft.policy.analysis.scope import Scope
from haft.policy.analysis.tree.path_resolver import PathResolver

_COMPOSED: Final = regex(r"[{$`]")
_SHORT: Final = regex(r"-[1aAcCdfFgGhiklmnNopqQrsStuUvxX]+")


def ls_shows_only_names(arguments: list[Argument]) -> bool:
    """Whether `ls` shows only the names in its arguments (`-d`) and follows no link. It would follow a link if the name
    ends with a slash."""
    options = [each.text for each in arguments if each.text.startswith("-")]
    if any(each.text.rstrip("\"'").endswith("/") for each in arguments):
        return False
    is_plain = all(_SHORT.fullmatch(each) or each in ("--directory", "--color=never") for each in options)
    return is_plain and any(each == "--directory" or ("d" in each and each[1] != "-") for each in options)


def why_parent_not_inside(argument: Argument, scope: Scope, resolver: PathResolver) -> str | None:
    """Why the directory that contains the file `argument` may lie outside of the workspace; None if it lies inside.
    Programs that only print names need only this check, because they do not read the file itself."""
    text = argument.text
    names = (text,) if argument.literal else argument.paths
    if names is None or (not argument.literal and _COMPOSED.search(text)):
        return why_not_inside(argument, scope, resolver)
    if argument.literal and text.rpartition("/")[2] == "..":
        return why_not_inside(argument, scope, resolver)
    for each in names:
        name = each if argument.literal else each.rstrip("/") or "/"
        # If a pattern leads out of the workspace, its expansion stops at the path that leads there. So all of that path
        # is checked, not only its parent.
        is_whole = argument.literal or _depth(name) == _depth(text)
        parent = name.rpartition("/")[0] or ("/" if name.startswith("/") else ".")
        why = why_not_inside(Argument(parent if is_whole else name), scope, resolver)
        if why is not None:
            return why
    return None


def _depth(path: str) -> int:
    return sum(1 for part in path.split("/") if part)
