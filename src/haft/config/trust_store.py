"""Trust in a workspace and its own configuration: one small file for each workspace in the state home.

Trust in the configuration is bound to its bytes: when they change, the trust ends. This trust does not cover files that
the configuration names, such as a script that a rule allows. Trust in a workspace of another owner is bound to the
owner of its directory.

HAFT_HOME/trust/<digest of the workspace's path>.json    path, owner, file, digest, text, salt, agents, who, at

Trust in a file that defines a type of sub-agent is bound to the bytes of this file, too.

The text is stored to show later what changed, with salted digests in place of secrets. Older records have no text.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from haft.config.files import ConfigFile
from haft.contracts import HaftError, StorageFailed, iso_time
from haft.files import Root, digest_of

DIRECTORY: Final = "trust"
MOST_BYTES: Final = 4_000_000


def is_trusted(home: str, workspace: str, file: ConfigFile) -> bool:
    """Whether somebody trusted exactly these bytes, in this file of this workspace."""
    kept = _kept(home, workspace)
    return (
        kept is not None
        and kept.get("path") == os.path.realpath(workspace)
        and kept.get("file") == os.path.basename(file.path)
        and kept.get("digest") == digest_of(file.data)
    )


def is_workspace_trusted(home: str, workspace: str) -> bool:
    """Whether somebody trusted this workspace while its directory had the present owner."""
    kept = _kept(home, workspace)
    if kept is None or kept.get("path") != os.path.realpath(workspace):
        return False
    try:
        return kept.get("owner") == os.stat(workspace).st_uid
    except OSError:
        return False


def was_trusted(home: str, workspace: str) -> bool:
    """Whether somebody trusted this workspace, with its present configuration or another one."""
    return _kept(home, workspace) is not None


def trusted_text(home: str, workspace: str, file: ConfigFile) -> tuple[str, str] | None:
    """The text of this file when it was trusted, and the salt of its digests; None if no text was stored."""
    kept = _kept(home, workspace)
    if kept is None or kept.get("file") != os.path.basename(file.path):
        return None
    text, salt = kept.get("text"), kept.get("salt")
    if not isinstance(text, str) or not isinstance(salt, str) or not re.fullmatch("[0-9a-f]{32}", salt):
        return None
    return text, salt


def trusted_agents(home: str, workspace: str) -> dict[str, str]:
    """The files with types of sub-agents that somebody trusted: for each path in the workspace, the digest."""
    kept = _kept(home, workspace)
    agents = None if kept is None or kept.get("path") != os.path.realpath(workspace) else kept.get("agents")
    return {str(path): str(digest) for path, digest in agents.items()} if isinstance(agents, dict) else {}


def trust(
    home: str,
    workspace: str,
    file: ConfigFile | None,
    who: str,
    text: tuple[str, str] | None = None,
    agents: Mapping[str, str] | None = None,
) -> str | None:
    """Trust this workspace, whoever owns it, and the present bytes of its configuration `file`, if it has one. Returns
    the digest of these bytes, or None without a file. `text`, a pair of text and salt, is stored to show later what
    changed. `agents` are the digests of the files with types of sub-agents that are trusted from now on."""
    digest = None if file is None else digest_of(file.data)
    record = {
        "path": os.path.realpath(workspace),
        "owner": os.stat(workspace).st_uid,
        "file": None if file is None else os.path.basename(file.path),
        "digest": digest,
        "text": None if text is None else text[0],
        "salt": None if text is None else text[1],
        "agents": dict(agents or {}),
        "who": who,
        "at": iso_time(time.time()),
    }
    directory = os.path.join(home, DIRECTORY)
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        Root(directory).replace(_name(workspace), json.dumps(record).encode())
    except (OSError, HaftError) as error:
        raise StorageFailed("haft could not store the trust", error) from error
    return digest


def revoke(home: str, workspace: str) -> bool:
    """End the trust in a workspace; False if nobody trusted it."""
    try:
        os.unlink(os.path.join(home, DIRECTORY, _name(workspace)))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageFailed("haft could not revoke the trust", error) from error
    return True


def _name(workspace: str) -> str:
    return f"{digest_of(os.fsencode(os.path.realpath(workspace)))}.json"


def _kept(home: str, workspace: str) -> dict[str, Any] | None:
    """The stored record of a workspace; None if there is none, or it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        with open(os.path.join(home, DIRECTORY, _name(workspace)), "rb") as file:
            kept = json.loads(file.read(MOST_BYTES))
        if isinstance(kept, dict):
            return kept
    return None
