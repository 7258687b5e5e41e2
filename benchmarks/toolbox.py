"""Listing a toolbox of 300 tools, two dozen of them hostile: the first time, when haft describes all of them, and
later."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from typing import Any

from benchmarks.measure import Row, in_turns_blocking, print_table
from haft.sources.brief_run import DESCRIBE_SECONDS

EVERY = 300


def rows(scratch: str) -> list[Row]:
    """The first listing compared with the deadline of one description, and the second with that of an empty
    workspace."""
    full, empty = os.path.join(scratch, "full"), os.path.join(scratch, "empty")
    os.makedirs(empty)
    hostile = _hostile()
    good = EVERY - len(hostile.SCRIPTS) - len(hostile.NOT_FILES)
    hostile.fill(os.path.join(full, ".agents", "tools"), good)
    env = {**os.environ, "HAFT_HOME": os.path.join(scratch, "state"), "AMP_TOOLBOX": "", "HOME": scratch}

    def listing(workspace: str) -> bytes:
        words = [sys.executable, "-m", "haft.surfaces.cli.main", "tools", "list", "--all", "-w", workspace]
        return subprocess.run(words, env=env, capture_output=True, check=True).stdout

    start = time.perf_counter()
    listed = listing(full)
    first = time.perf_counter() - start
    ready = sum(b" ready " in line for line in listed.splitlines() if line.startswith(b"tb__good_"))
    again, floor = in_turns_blocking(lambda: listing(full), lambda: listing(empty), rounds=9)
    return [
        Row(f"{EVERY} tools, {ready}/{good} ready, first listing", first, "describe deadline", DESCRIBE_SECONDS, 1.2),
        Row("the second listing of them", again, "an empty one", floor, 2.0),
    ]


def _hostile() -> Any:
    path = os.path.join(os.path.dirname(__file__), "..", "tests", "sources", "amp_toolbox", "hostile.py")
    spec = importlib.util.spec_from_file_location("hostile", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        print_table(rows(directory))
