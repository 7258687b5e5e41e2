"""`make mutations`: makes random command lines, and runs in a jail those that analysis allows without approval.

None may write, start an unknown program, reach the network, or read outside the workspace. Prints each line that does,
and exits 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "policy"))
from corpora import lines, project, trying
from corpora.jail import Cannot, Jail
from corpora.mutating import Mutator


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=2)
    arguments = parser.parse_args()
    begun, shown = time.monotonic(), 0

    def report(trial: trying.Trial) -> None:
        nonlocal shown
        for command, found in trial.violations[shown:]:
            print(f"\n{command!r}\n    " + "\n    ".join(map(str, found)), flush=True)
        shown = len(trial.violations)
        if sys.stderr.isatty() or trial.lines % 10_000 == 0:
            ending = "\r" if sys.stderr.isatty() else "\n"
            print(f"{trial} ({time.monotonic() - begun:.0f} s)", end=ending, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="mutations-") as base:
        try:
            jail = Jail(project.build(Path(base) / "around" / "project"))
        except Cannot as problem:
            print(f"no jail can be built here: {problem}", file=sys.stderr)
            return 2
        with jail:
            trial = trying.try_out(jail, Mutator(lines.stock(), arguments.seed).lines(arguments.lines), report)
    print(f"\n{trial}")
    return 1 if trial.violations else 0


if __name__ == "__main__":
    sys.exit(main())
