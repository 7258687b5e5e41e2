"""Runs programs in a read-only sandbox to describe tools, without a service.

Commands that list and check tools use this.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from haft.config import load_config
from haft.contracts import DescribeLauncher
from haft.files import Root
from haft.sandbox import Sandbox

if TYPE_CHECKING:
    from haft.config import Config
    from haft.storage import StateHome


@contextlib.contextmanager
def probe_launcher(workspace: str, home: StateHome, config: Config | None = None) -> Iterator[DescribeLauncher]:
    """A launcher for programs that may write nothing and have no network. Their processes end when the `with` block
    ends."""
    config = config or load_config(workspace, os.environ, trust_home=home.path)
    root = Root(workspace)
    home.prepare()
    sandbox = Sandbox(workspace, home.path, os.environ, root.open_directory, config.limits, config.sandbox_mode)
    try:
        yield sandbox.describe_launcher()
    finally:
        sandbox.close()
