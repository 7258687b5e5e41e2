"""Fixtures of the hook's tests."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warm import Warm

sys.path.insert(0, str(Path(__file__).parent))

from residents import end_resident, resident_of


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A state home whose resident, if a test starts one, ends with the test."""
    path = tmp_path / "home"
    yield path
    end_resident(path)


@pytest.fixture
def warm_home(home: Path, warm: Warm) -> Iterator[Path]:
    """A state home whose resident listens already: a process forked from one that has loaded haft before."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    begun = warm.begin(["hook", "--resident"], home.parent, {**env, "HAFT_HOME": str(home)})
    while resident_of(home) is None and begun.poll() is None:
        time.sleep(0.01)
    yield home
    end_resident(home)
    begun.communicate()


@pytest.fixture
def haft(warm: Warm) -> Callable[..., str]:
    """Calls haft with a state home and a workspace, as a person does, and returns what it printed."""

    def call(home: Path, workspace: Path, *words: str) -> str:
        code, out, err = warm.run(words, b"", workspace, {"HAFT_HOME": str(home)})
        assert code == 0, err.decode()
        return out.decode()

    return call
