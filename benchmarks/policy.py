"""How long decisions about command lines take: for ordinary ones, and for the slowest that anyone can send.

It is a program of its own that prints one JSON object, in seconds: the 99th percentile for ordinary lines, the slowest
odd input, and, for comparison, the time that `bash -n` needs to check the syntax of one line.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from haft.builtin import builtin_tools
from haft.policy.enablement import Enablement
from haft.policy.policy_engine import PolicyEngine
from haft.policy.query import PolicyQuery

CORPORA = Path(__file__).parents[1] / "tests" / "policy" / "corpora"
ODD = (
    "x" * 1_000_000,
    "ls \0",
    "ls \udcff",
    "(" * 10_000,
    "$(" * 10_000,
    "a;" * 16_000,
    "`" * 30_000,
    '"$(' * 10_000,
    "ls " * 10_000,
    "{" * 30_000,
    "<<a\n" * 8_000,
    "$((" * 10_000,
    "[[ " * 10_000,
    "if " * 10_000,
    "a|" * 16_000,
    "*/" * 500 + " " + "ls */*/*/*",
)


def measure() -> dict[str, float]:
    """The measured times, in seconds."""
    shell = next(tool.spec for tool in builtin_tools() if tool.spec.name == "shell")
    lines = [
        json.loads(line)["command"]
        for name in ("harmless_seed", "harmless_other", "harmful")
        for line in (CORPORA / f"{name}.jsonl").read_text().splitlines()
    ]
    with tempfile.TemporaryDirectory() as workspace:
        engine = PolicyEngine((), Enablement(), workspace, "/nonexistent")

        def taken(line: str) -> float:
            start = time.perf_counter()
            engine.decide(PolicyQuery(shell, {"command": line}))
            return time.perf_counter() - start

        for line in lines[:50]:
            taken(line)
        ordinary = sorted(taken(line) for _ in range(3) for line in lines)
        odd = max(statistics.median(taken(line) for _ in range(3)) for line in ODD)
    floor = []
    for line in lines[:40]:
        start = time.perf_counter()
        subprocess.run(["bash", "-n", "-c", line], check=False, capture_output=True)
        floor.append(time.perf_counter() - start)
    return {
        "median": statistics.median(ordinary),
        "p99": ordinary[int(len(ordinary) * 0.99)],
        "odd": odd,
        "bash": statistics.median(floor),
        "lines": float(len(ordinary)),
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
