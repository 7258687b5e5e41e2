"""Checks the files that git reads because the settings or links of a repository name them. If such a file lies outside
of the workspace, git may print lines of it.

A setting (`blame.ignoreRevsFile`) or a link in `.git` (`.git/rebase-merge/done`) can name any file, and git prints
lines that it cannot parse. haft checks the repository that git would find from the directory in which the command line
runs. If this repository lies outside of the workspace, calls cannot have written it, and haft only checks whether its
working tree is the one that contains the directory. Links among references, reflogs and objects are not checked: if
such a file does not have the right form, git prints nothing of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from haft.files import first_line, settings
from haft.policy.analysis.tree.path_resolver import PathResolver

_READ: Final = frozenset((
    "blame.ignorerevsfile", "fsck.skiplist", "core.attributesfile", "core.excludesfile", "core.worktree",
    "mailmap.file", "diff.orderfile", "gpg.ssh.allowedsignersfile", "gpg.ssh.revocationfile",
))  # fmt: skip
"""Settings that name a file or a directory that git reads."""
_PLACES: Final = ("", "info", "objects/info", "rebase-merge", "rebase-apply", "sequencer")
"""Directories of a repository with files whose lines git may print."""
_MAX_ENTRIES: Final = 500
_MAX_INCLUDED: Final = 10


def why_git_reads_outside(directory: str, resolver: PathResolver) -> str | None:
    """The reason why git, started in `directory`, may read files outside of the workspace; None if git reads no such
    files."""
    found = _repository(directory)
    if found is None:
        return None
    top, own = found
    if not resolver.is_inside(top):
        return None
    if not resolver.leads_inside("/", own):
        names_this_tree = resolver.resolve("/", first_line(f"{own}/gitdir") or "/") == f"{top}/.git"
        return (
            None
            if names_this_tree
            else f"the repository of `{top}` lies outside of the workspace and does not name it as its own"
        )
    common = resolver.resolve(own, first_line(f"{own}/commondir") or ".")
    for each in dict.fromkeys(filter(None, (resolver.resolve("/", own), common))):
        resolver.deadline.check()
        if resolver.is_inside(each):
            why = _why_links_lead_outside(each, resolver) or _why_settings_lead_outside(each, top, resolver)
            if why is not None:
                return why
    return None


def _repository(directory: str) -> tuple[str, str] | None:
    """The top of the working tree that git would find from `directory`, and the repository's own directory (usually
    `.git`). None if git would find no repository."""
    top = directory
    while True:
        own = f"{top}/.git"
        if os.path.isdir(own):
            return top, own
        if os.path.lexists(own):
            return top, os.path.join(top, first_line(own).removeprefix("gitdir: "))
        if os.path.isfile(f"{top}/HEAD") and os.path.isdir(f"{top}/objects"):
            return top, top
        if not top:
            return None
        top = top.rpartition("/")[0]


def _why_links_lead_outside(own: str, resolver: PathResolver) -> str | None:
    for place in _PLACES:
        try:
            with os.scandir(os.path.join(own, place)) as entries:
                found = [entry.name for entry, _ in zip(entries, range(_MAX_ENTRIES + 1), strict=False)]
        except OSError:
            continue
        if len(found) > _MAX_ENTRIES:
            return f"`{own}/{place}` holds too many files to look at"
        for name in found:
            path = os.path.join(own, place, name)
            if os.path.islink(path) and not resolver.leads_inside(own, path):
                return f"git reads `{path}`, a link that leads out of the workspace"
    return None


def _why_settings_lead_outside(own: str, top: str, resolver: PathResolver) -> str | None:
    waiting = [f"{own}/config", f"{own}/config.worktree"]
    for count, file in enumerate(waiting):
        if count > _MAX_INCLUDED:
            return "the settings of git include too many files to look at"
        for each in settings(file):
            resolver.deadline.check()
            is_included = each.section in ("include", "includeif") and each.name == "path"
            # A path in the home directory does no harm: the sandbox hides that directory from calls that need no
            # approval.
            if not (is_included or each.key in _READ) or not each.value or each.value.startswith("~/"):
                continue
            start = os.path.dirname(file) if is_included else own if each.name == "worktree" else top
            if each.value[0] in "~:%" or not resolver.leads_inside(start, each.value):
                return f"git reads `{each.value}`, which `{each.key}` names, outside of the workspace"
            if is_included:
                waiting += _included(start, each.value, resolver)
    return None


def _included(start: str, value: str, resolver: PathResolver) -> Iterator[str]:
    place = resolver.resolve(start, value)
    if place is not None:
        yield place
