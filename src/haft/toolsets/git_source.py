"""The repository and the ref of a plugin, in a form that git cannot misread as an option or a command.

This module checks only the text. Whether the configuration may name a repository is decided before, and `checkouts`
limits what git may do.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from haft.contracts import BadConfig
from haft.sources.bash_plugin import PluginReference

LOCK: Final = "haft.lock"
_SCHEMES: Final = ("https", "ssh", "git", "file")
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_TRANSPORT: Final = re.compile(r"[a-z0-9+.-]+::", re.IGNORECASE)
_SCP: Final = re.compile(r"(?:[\w.-]+@)?[\w][\w.-]*:(?!//)")
"""The form `git@host:path`, which git reads as an ssh address."""
_REF: Final = re.compile(r"[\w+][\w./+@-]{0,199}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHORT: Final = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, slots=True)
class GitSource:
    """A repository at a ref, and the lock file that pins its commit."""

    address: str
    """The address for git."""
    url: str
    """The address without parts that may be secret, for messages and files."""
    ref: str | None
    """A tag, a branch or a commit; None for the default branch."""
    lock: str
    """The path of the lock file."""
    scheme: str
    path: str | None = None
    """The path of the repository if it is on this machine."""

    @property
    def words(self) -> str:
        return f"{self.url}#{self.ref}" if self.ref else self.url

    @property
    def folder(self) -> str:
        """The name of the directory in the cache for the checkouts of this repository."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:24]

    @property
    def commit(self) -> str | None:
        """The ref if it is a full commit, which always names the same content; else None."""
        return self.ref if self.ref is not None and is_commit(self.ref) else None

    @property
    def may_be_short(self) -> bool:
        """Whether the ref can be an abbreviated commit."""
        return self.ref is not None and _SHORT.fullmatch(self.ref) is not None


def is_commit(text: str) -> bool:
    """Whether the text is a full commit hash."""
    return _COMMIT.fullmatch(text) is not None


def source_of(reference: PluginReference, lock: str, base: str) -> GitSource:
    """The repository and ref that a plugin reference names. Relative paths begin at `base`. Raises `BadConfig` if git
    could misread the address or the ref."""
    url, ref = reference.git or "", reference.ref
    if ref is not None and (not _REF.fullmatch(ref) or ".." in ref or "@{" in ref):
        raise _refused(reference, f"`{ref[:80]}` is no tag, branch or commit")
    if url.startswith("-") or any(character.isspace() or not character.isprintable() for character in url):
        raise _refused(reference, "its address begins with a dash, or contains spaces")
    if _TRANSPORT.match(url):
        raise _refused(reference, "git would run a program for an address of this form")
    if _URL.match(url):
        return _from_url(reference, url, lock)
    if _SCP.match(url) and not os.path.exists(os.path.join(base, url)):
        return GitSource(url, url, ref, lock, "ssh")
    path = os.path.normpath(os.path.join(base, os.path.expanduser(url)))
    return GitSource(path, path, ref, lock, "file", path)


def _from_url(reference: PluginReference, url: str, lock: str) -> GitSource:
    try:
        parts = urlsplit(url)
        host, user = parts.hostname or "", parts.username
    except ValueError as error:
        raise _refused(reference, f"its address cannot be understood: {error}") from None
    scheme = parts.scheme.lower()
    if scheme not in _SCHEMES:
        raise _refused(reference, f"`{scheme}` is not one of {', '.join(_SCHEMES)}")
    if scheme == "file":
        if host not in ("", "localhost") or not parts.path.startswith("/"):
            raise _refused(reference, "a file:// address needs an absolute path of this machine")
        return GitSource(url, url, reference.ref, lock, scheme, os.path.normpath(parts.path))
    if not host or host.startswith("-") or (user or "").startswith("-"):
        raise _refused(reference, "its address names no host")
    shown = url
    if user is not None and (scheme != "ssh" or parts.password is not None):
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return GitSource(url, shown, reference.ref, lock, scheme)


def _refused(reference: PluginReference, why: str) -> BadConfig:
    return BadConfig(
        f"{reference.source}: the plugin `{reference.name[:80]}` is not fetched: {why}",
        hint="write `bash+git:https://HOST/PATH.git#REF`, with a tag, a branch or a commit",
    )
