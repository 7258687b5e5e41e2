"""Which git settings are free: a call may change them without approval, because git itself changes them for every
clone, branch and submodule.

Unknown settings need approval. So a key that a new git version or an extension introduces needs approval too. The value
of a free setting is checked as well, because the address of a remote can make git run a program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from haft.files import Setting
from haft.lazy import regex

Free = Callable[[Setting], bool]

_PLAIN: Final = {
    "author": {"name", "email"},
    "committer": {"name", "email"},
    "core": {
        "abbrev", "autocrlf", "bare", "bigfilethreshold", "eol", "filemode", "ignorecase", "logallrefupdates",
        "precomposeunicode", "quotepath", "repositoryformatversion", "safecrlf", "sparsecheckout", "sparsecheckoutcone",
        "symlinks", "untrackedcache",
    },
    "diff": {"algorithm", "colormoved", "context", "mnemonicprefix", "noprefix", "renames", "submodule"},
    "extensions": {
        "compatobjectformat", "noop", "objectformat", "preciousobjects", "refstorage", "relativeworktrees",
        "worktreeconfig",
    },
    "fetch": {"prune", "prunetags", "recursesubmodules", "writecommitgraph"},
    "gc": {"auto"},
    "index": {"sparse", "version"},
    "init": {"defaultbranch"},
    "lfs": {"repositoryformatversion"},
    "maintenance": {"auto", "strategy"},
    "merge": {"conflictstyle", "ff", "renames"},
    "pull": {"ff", "rebase"},
    "push": {"autosetupremote", "default", "followtags"},
    "rebase": {"autosquash", "autostash", "updaterefs"},
    "rerere": {"autoupdate", "enabled"},
    "submodule": {"active", "alternateerrorstrategy", "alternatelocation", "recurse"},
    "user": {"email", "name", "signingkey", "useconfigonly"},
}  # fmt: skip
"""Free keys of sections without a subsection. (`signingkey` only names a key; the program that signs is not free.)"""

_NAMED: Final = {
    "branch": {"description", "gh-merge-base", "merge", "rebase", "vscode-merge-base"},
    "lfs": {"access", "locksverify"},
    "remote": {
        "fetch", "followremotehead", "gh-resolved", "mirror", "partialclonefilter", "promisor", "prune", "prunetags",
        "skipdefaultupdate", "skipfetchall", "tagopt",
    },
    "submodule": {"active", "branch", "fetchrecursesubmodules", "ignore", "shallow"},
}  # fmt: skip
"""Free keys of sections with a subsection, such as `[branch "main"]`."""

_ADDRESSES: Final = {
    ("branch", True): {"pushremote", "remote"},
    ("extensions", False): {"partialclone"},
    ("remote", False): {"pushdefault"},
    ("remote", True): {"pushurl", "url"},
    ("submodule", True): {"url"},
}
"""By section, and whether it has a subsection: keys whose value may be the address of a remote. They are free if
`is_address` accepts the value."""

_UPDATES: Final = frozenset({"checkout", "merge", "none", "rebase"})
"""The values of `submodule.*.update` that are free; git would also accept a command."""
_SCHEMES: Final = frozenset({"file", "ftp", "ftps", "git", "git+ssh", "http", "https", "ssh", "ssh+git"})
"""Schemes of addresses that are free. For any other scheme, git runs a program of that name."""
_HELPER: Final = regex(r"[A-Za-z0-9+.-]*::")
_SCHEME: Final = regex(r"([A-Za-z0-9+.-]+)://([^/]*)")
_CONTROL: Final = regex(r"[\x00-\x1f\x7f]")


def offending(before: Iterable[Setting], after: Iterable[Setting], is_free: Free) -> Iterator[Setting]:
    """Added or changed settings that are not free. A call may remove settings. But if a key has several values, a call
    may not remove the last value, because an earlier value would become valid."""
    old: dict[str, list[str]] = {}
    for each in before:
        old.setdefault(each.key, []).append(each.value)
    new: dict[str, list[Setting]] = {}
    for each in after:
        new.setdefault(each.key, []).append(each)
    for key, found in new.items():
        known = old.get(key, [])
        if [each.value for each in found] == known[-len(found) :]:
            continue
        yield from (each for each in found if _is_odd(each) or not is_free(each))


def _is_odd(setting: Setting) -> bool:
    """Whether a setting holds control characters. Git writes them only in descriptions. If another program splits lines
    in another way than haft does, it could find another setting there."""
    return bool(_CONTROL.search(setting.key if setting.name == "description" else setting.key + setting.value))


def is_free(setting: Setting) -> bool:
    """Whether a call may set this in the configuration of a repository without approval."""
    has_subsection = setting.subsection is not None
    if (setting.subsection or "").startswith("-"):
        return False  # `git fetch --all` passes names of remotes to another git, which would take this for an option.
    if setting.name in _ADDRESSES.get((setting.section, has_subsection), ()):
        return is_address(setting.value)
    if setting.section == "submodule" and has_subsection and setting.name == "update":
        return setting.value in _UPDATES
    if setting.name == "signingkey" and setting.value.startswith("-"):
        return False
    return setting.name in (_NAMED if has_subsection else _PLAIN).get(setting.section, ())


def is_free_in_modules(setting: Setting) -> bool:
    """Whether a call may set this in `.gitmodules` without approval: paths and addresses of submodules are free, but
    not names such as `..`, by which older versions of git could be attacked."""
    if setting.section != "submodule" or not setting.subsection or ".." in re.split(r"[/\\]", setting.subsection):
        return False
    if setting.name == "path":
        words = re.split(r"[/\\]", setting.value.lower())
        return not setting.value.startswith(("-", "/")) and ".." not in words and ".git" not in words
    return setting.name != "active" and is_free(setting)


def is_address(value: str) -> bool:
    """Whether git treats the value as an address or a path, and not as the name of a program or an option."""
    if value.startswith("-") or _HELPER.match(value):
        return False
    found = _SCHEME.match(value)
    if not found:
        return True
    scheme, host = found.groups()
    return scheme.lower() in _SCHEMES and not any(word.startswith("-") for word in host.split("@"))
