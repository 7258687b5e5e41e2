"""The pytest fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from haft.testing.bench import ToolBench


@pytest.fixture
def haft_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolBench]:
    """A `ToolBench` with its own workspace and state home: `load` tools, `call` them, look at the requests in `asked`.

    The configuration and the tools of the user who runs the tests are not used.
    """
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AMP_TOOLBOX", "")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with ToolBench(workspace, tmp_path / "state") as bench:
        yield bench
