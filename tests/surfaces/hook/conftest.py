"""Fixtures of the hook's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from residents import end_resident


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A state home whose resident, if a test starts one, ends with the test."""
    path = tmp_path / "home"
    yield path
    end_resident(path)
