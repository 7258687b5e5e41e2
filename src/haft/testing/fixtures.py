"""The fixtures, by the names under which tests ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from haft.testing.bench import ToolBench


@pytest.fixture
def haft_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolBench]:
    """A `ToolBench` over a workspace and a state home of its own: `load` tools, `call` them, see who was `asked`.

    What whoever runs the tests has configured and what tools they have for themselves does not count.
    """
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AMP_TOOLBOX", "")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with ToolBench(workspace, tmp_path / "state") as bench:
        yield bench
