"""The state home: the directory in which haft stores its state, and its layout.

HAFT_HOME/            0700
  haft.db             runs, events, cancel requests (SQLite)
  approval/           the verifier of the approval passphrase: see service/approval_secret.py
  cache/              kept answers of calls, and the key under which they are found: see answer_files.py
  clients/            which agents use haft now: see service/living_clients.py
  hosts/              the lock and the journals of each host that is alive, or that died
  outputs/            whole outputs of runs
  changes/            layers, held change sets and originals (files that a run replaced), by workspace
  blobs/              contents of files by digest
  audit/              the audit log, its head and its key
  conversations/      what tasks of sub-agents said and called so far: see conversation_files.py
  connections/        what `haft connect` wrote into the files of agents, and what was there before
  definitions/        a cache of the descriptions of tools
  hook/               the socket of the process that answers the hooks of agents, and its lock
  skills/             which skills are active, by workspace
  locks/              which calls will write which paths, by workspace: see schedule/claim_files.py
  logins/             tokens of remote MCP servers
  providers/          MCP servers: which may start, values that a person gave for them, tokens, logs and packages
  package-indexes/    from which hosts package indexes serve their files, for a day
  tokens/             the tokens of MCP clients, hashed: see service/tokens.py
  request-states/     the key of request states, and which states were used: see service/sealed_states.py
  provider-logs/      what MCP servers wrote to stderr, bounded
  scratch/            the `/tmp` that threads keep between calls
  trust/              which workspaces' configuration was trusted, by digest
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from haft.contracts import BadConfig, StorageFailed
from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.storage.ports.stores import Stores


def default_home(env: Mapping[str, str]) -> str:
    """The path of the state home: `HAFT_HOME` if it is set, else a directory where the platform keeps state."""
    if env.get("HAFT_HOME"):
        return os.path.abspath(os.path.expanduser(env["HAFT_HOME"]))
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/haft")
    state = env.get("XDG_STATE_HOME", "")
    base = state if os.path.isabs(state) else os.path.expanduser("~/.local/state")
    return os.path.join(base, "haft")


@dataclass(frozen=True, slots=True)
class StateHome:
    """The paths of the state home. Only `prepare` accesses the disk."""

    path: str
    opener: Callable[[StateHome], Stores] | None = field(default=None, compare=False)
    """The function that opens the storage of this state home; None means SQLite. See `open_stores`."""

    def __fspath__(self) -> str:
        return self.path

    @property
    def database(self) -> str:
        return os.path.join(self.path, "haft.db")

    @property
    def hosts(self) -> str:
        return os.path.join(self.path, "hosts")

    @property
    def outputs(self) -> str:
        return os.path.join(self.path, "outputs")

    @property
    def changes(self) -> str:
        return os.path.join(self.path, "changes")

    @property
    def blobs(self) -> str:
        return os.path.join(self.path, "blobs")

    @property
    def conversations(self) -> str:
        return os.path.join(self.path, "conversations")

    @property
    def definitions(self) -> str:
        return os.path.join(self.path, "definitions")

    @property
    def answers(self) -> str:
        return os.path.join(self.path, "cache")

    def locks_of(self, workspace: str) -> str:
        """The directory with the claims of the calls on a workspace."""
        return os.path.join(self.path, "locks", hashlib.sha256(os.fsencode(workspace)).hexdigest()[:32])

    @property
    def audit(self) -> str:
        return os.path.join(self.path, "audit")

    def prepare(self) -> None:
        """Make the directories, accessible only to their owner."""
        try:
            for path in (self.path, self.hosts, self.outputs, self.audit, self.changes, self.blobs):
                os.makedirs(path, mode=0o700, exist_ok=True)
            found = os.stat(self.path)
            if stat.S_IMODE(found.st_mode) & 0o077:
                os.chmod(self.path, 0o700)
        except NotADirectoryError as error:
            raise BadConfig(f"the state home {self.path} is not a directory", hint="set HAFT_HOME") from error
        except FileExistsError as error:
            raise BadConfig(f"the state home {self.path} is not a directory", hint="set HAFT_HOME") from error
        except OSError as error:
            raise StorageFailed(f"the state home {self.path} cannot be used", error) from error
