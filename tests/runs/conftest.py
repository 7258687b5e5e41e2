"""Entries of runs without a pipeline, and a host's parts on a real state home."""

import itertools

import pytest

from haft.contracts import new_run_id
from haft.runs import entry_of
from haft.storage import StateHome, encode

_clock = itertools.count(1_700_000_000)


def _entry(run=None, *, host="h_test", status="done", at=None, noted=(), recorded=True, output="", seq=1, **record):
    """`seq` numbers its last status: the higher one is the later."""
    at = next(_clock) if at is None else at
    is_open = status in ("queued", "blocked-on-user", "in-progress", "cancellation-requested")
    facts = {
        "type": "start" if is_open else "end", "at": "2026-01-01T00:00:00.000Z", "run": run or new_run_id(), "tool":
        "add", "who": "me", "thread": "T-1", "parent": None, "workspace": "/w", "arguments": {}, "cwd": ".", "digest":
        None, "status": status, "decision": None, "limits": {}, "sandbox": {}, "error": None, "exitCode": None,
        "durationMs": 0, "changes": {"files": [{"path": path} for path in record.pop("paths", ())]}, "outputBytes": 0,
        "endedChildren": [], **record,
    }  # fmt: skip
    rest = {
        "host": host, "startedAt": float(at), "endedAt": None if is_open else float(at + 1), "output": output,
        "stderr": "", "result": None, "truncated": False, "noted": list(noted), "recorded": recorded,
        "states": [(0, float(at), "queued"), (seq, float(at), status)],
    }  # fmt: skip
    return entry_of(facts["run"], encode(facts), rest)


@pytest.fixture
def entry():
    return _entry


@pytest.fixture
def home(tmp_path):
    home = StateHome(str(tmp_path / "home"))
    home.prepare()
    return home
