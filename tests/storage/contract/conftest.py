"""What every storage must do, held against each of them."""

import sys
import time
from pathlib import Path

import pytest

from haft.contracts import new_run_id
from haft.storage import encode, open_stores

sys.path.insert(0, str(Path(__file__).parent))
from storages import home_at


@pytest.fixture(params=["sqlite", "files"])
def kind(request):
    return request.param


@pytest.fixture
def home(kind, tmp_path):
    return home_at(kind, tmp_path / "home")


@pytest.fixture
def stores(home):
    return open_stores(home)


@pytest.fixture
def connection(stores):
    connection = stores.connect()
    yield connection
    connection.close()


def _document(run=None, *, status="done", host="h_1", at=None, paths=(), noted=(), seconds=1, output="", **record):
    at = time.time() if at is None else at
    is_open = status in ("queued", "in-progress")
    facts = {"tool": "add", "who": "me", "thread": "T-1", "parent": None, "workspace": "/w", "arguments": {}, **record}
    changes = {"files": [{"path": path} for path in paths]}
    return encode(
        {
            "record": {"run": run or new_run_id(), "status": status, **facts, "changes": changes},
            "rest": {
                "host": host,
                "startedAt": at,
                "endedAt": None if is_open else at + seconds,
                "output": output,
                "noted": list(noted),
            },
        }
    )


@pytest.fixture
def document():
    """A run as it is written."""
    return _document
