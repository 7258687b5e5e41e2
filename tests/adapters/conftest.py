"""A world for the journeys of the frameworks."""

import sys
from pathlib import Path

import pytest

from haft.testing.scripted_model import ScriptedModel

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("journeys")


@pytest.fixture(scope="session")
def model():
    with ScriptedModel() as made:
        yield made


@pytest.fixture
def world(tmp_path, model):
    from journeys import World

    return World(tmp_path, model)
