"""Which MCP servers a person lets start: one small file for each server in the state home.

Trust is bound to the server's identity (command or address, arguments, directory, variables, headers and grants as they
are written) and to the bytes of the local files that its command names, with the files that these load. A server of
the user's own configuration starts at once, and haft records its files then. A server of a workspace or of a skill
starts only after a person saw it.

HAFT_HOME/providers/trust/<digest of workspace and name>.json    name, workspace, identity, files, bound, annotations,
                                                                 who, at
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from haft.contracts import HaftError, StorageFailed, iso_time
from haft.files import Root, digest_of, digest_of_file, leads_inside, shown
from haft.sources.mcp import Provider
from haft.values import dataclass

DIRECTORY: Final = os.path.join("providers", "trust")
MOST_BYTES: Final = 4_000_000
NO_FILE: Final = "no file"

_digests: dict[tuple[str, int, int, int, int], str] = {}
_MOST_DIGESTS: Final = 5_000


@dataclass(frozen=True, slots=True)
class KeptTrust:
    """What a person let start, or what first started."""

    identity: str
    files: Mapping[str, str]
    """The digests of the files, by their paths."""
    bound: Mapping[str, Any]
    """What the identity was made of, with secrets masked, to show later what changed."""
    annotations: bool
    """Whether the person believes what the server says about the effects of its tools."""
    by_person: bool


class StartTrustStore:
    """The trust of one user in the servers of one workspace. Implements `haft.sources.mcp.StartTrust`."""

    def __init__(self, home: str, workspace: str) -> None:
        self._home = home
        self._workspace = os.path.realpath(workspace)

    def why_not(self, provider: Provider) -> str | None:
        """Why the server may not start, and what to do; None if it may. The first time, records the files of a server
        that starts without being asked about."""
        kept = self.kept(provider)
        cure = f"`haft providers trust {provider.name}`"
        if kept is None or (kept.identity != provider.identity and not needs_person(provider)):
            if needs_person(provider):
                named = f"new, or no longer trusted: {_place(provider)} names it"
                return f"{named}, and haft starts it only after you have seen it: {cure}"
            inside = [path for path in provider.files if leads_inside(path, self._workspace)]
            if inside:
                return f"it runs {shown(inside[0])}, which is part of this workspace: {cure} shows it"
            if provider.files:
                with suppress(StorageFailed):
                    self.trust(provider, {}, "", by_person=False, annotations=False)
            return None
        if kept.identity != provider.identity:
            return f"its command, address, variables or grants changed since you trusted it: {cure} shows the changes"
        changed = self.changed_files(provider, kept)
        if changed:
            since = "you trusted it" if kept.by_person else "it first started"
            return f"{shown(changed[0])} changed since {since}: {cure}"
        return None

    def changed_files(self, provider: Provider, kept: KeptTrust) -> list[str]:
        """The files that are not as they were when the trust was stored."""
        changed = [path for path, digest in kept.files.items() if digest_at(path) != digest]
        return [*changed, *(path for path in provider.files if path not in kept.files)]

    def kept(self, provider: Provider) -> KeptTrust | None:
        """The stored trust; None if there is none, or it cannot be read."""
        with suppress(OSError, ValueError, RecursionError):
            with open(os.path.join(self._home, DIRECTORY, self._name(provider)), "rb") as file:
                found = json.loads(file.read(MOST_BYTES))
            if isinstance(found, dict) and found.get("name") == provider.name:
                return KeptTrust(
                    str(found["identity"]),
                    {str(path): str(digest) for path, digest in dict(found["files"]).items()},
                    dict(found["bound"]),
                    bool(found["annotations"]),
                    bool(found["byPerson"]),
                )
        return None

    def trust(
        self,
        provider: Provider,
        bound: Mapping[str, Any],
        who: str,
        *,
        by_person: bool,
        annotations: bool,
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Let the server start with this identity, and with `files`: their digests when the person saw them. Without
        `files`, with its files as they are now."""
        record = {
            "name": provider.name,
            "workspace": self._scope(provider),
            "identity": provider.identity,
            "files": digests_of(provider) if files is None else dict(files),
            "bound": provider.secrets.masked(dict(bound)),
            "annotations": annotations,
            "byPerson": by_person,
            "who": who,
            "at": iso_time(time.time()),
        }
        directory = os.path.join(self._home, DIRECTORY)
        try:
            os.makedirs(self._home, mode=0o700, exist_ok=True)
            os.makedirs(directory, mode=0o700, exist_ok=True)
            Root(directory).replace(self._name(provider), json.dumps(record).encode())
        except (OSError, HaftError) as error:
            raise StorageFailed(f"haft could not store the trust in `{provider.name}`", error) from error

    def revoke(self, provider: Provider) -> bool:
        """End the trust; False if there was none."""
        try:
            os.unlink(os.path.join(self._home, DIRECTORY, self._name(provider)))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageFailed(f"haft could not revoke the trust in `{provider.name}`", error) from error
        return True

    def _scope(self, provider: Provider) -> str:
        return self._workspace if provider.provenance == "workspace" else ""

    def _name(self, provider: Provider) -> str:
        key = "\0".join((self._scope(provider), provider.name))
        return f"{digest_of(os.fsencode(key))}.json"


def needs_person(provider: Provider) -> bool:
    """Whether the server starts only after a person saw it: a workspace or a skill names it."""
    return provider.provenance == "workspace" or provider.skill is not None


def bound_files(provider: Provider) -> tuple[str, ...]:
    """The files that trust in the start of a server covers: those that its command names, and those that they load."""
    if not provider.files:
        return ()
    from haft.policy import loaded_by

    return (*provider.files, *loaded_by(provider.files).files)


def digests_of(provider: Provider) -> dict[str, str]:
    """The digests of the files that trust in the start of a server covers."""
    return {path: digest_at(path) for path in bound_files(provider)}


def digest_at(path: str) -> str:
    """The digest of a file. If it cannot be read, a text that is no digest."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return NO_FILE
            key = (path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            if key not in _digests:
                if len(_digests) >= _MOST_DIGESTS:
                    _digests.clear()
                _digests[key] = digest_of_file(file)
            return _digests[key]
    except (OSError, ValueError):
        return NO_FILE


def _place(provider: Provider) -> str:
    if provider.skill is not None:
        return f"the skill `{provider.skill[0]}`"
    return f"the workspace's {os.path.basename(provider.source)}"
