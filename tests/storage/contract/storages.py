"""The storages that the contract is held against. A process of a test finds the same one by its name."""

import functools
import sys
from pathlib import Path

from haft.storage import StateHome, Waiting

sys.path.insert(0, str(Path(__file__).parent))
from file_stores import FileStores

HERE = str(Path(__file__).parent)

NOW = 1_000.0
WAITING = Waiting(
    id="a_1", run="r_1", host="h_1", workspace="/w", who="ann", thread="T-1", created_at=NOW, expires_at=NOW + 60,
    tried=False, fingerprint="f", shown={"tool": "shell", "arguments": {"command": "ü"}},
)  # fmt: skip


def home_at(kind, path, **options):
    """A state home with one of the storages. `options` are for the one in files: the time of a lease."""
    opener = functools.partial(FileStores, **options) if kind == "files" else None
    home = StateHome(str(path), opener)
    home.prepare()
    return home
