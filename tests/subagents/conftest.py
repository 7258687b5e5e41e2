"""A workspace and a scripted model, for tests of tasks."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from worlds import World

from haft.testing.scripted_model import ScriptedModel


@pytest.fixture
def world(tmp_path, monkeypatch):
    # The client of each task loads all certificates of the machine, which takes half of its time, and uses none.
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with ScriptedModel() as model:
        yield World(tmp_path, model)
