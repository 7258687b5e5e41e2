"""A sample of what `make mutations` does at length: mutated lines that pass do nothing but read when bash runs them."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from corpora import lines, project, trying
from corpora.jail import Cannot, Jail
from corpora.mutating import Mutator

COUNT = 1500 * int(os.environ.get("HAFT_MORE", "1"))


def test_mutated_lines_that_pass_only_read(tmp_path):
    workspace = project.build(tmp_path / "around" / "project")
    try:
        jail = Jail(workspace)
    except Cannot as problem:
        pytest.skip(f"no jail can be built here: {problem}")
    with jail:
        trial = trying.try_out(jail, Mutator(lines.stock(), seed=1).lines(COUNT))
    print(trial)
    wrong = [f"{command!r}: {'; '.join(map(str, found))}" for command, found in trial.violations]
    assert not wrong, "\n".join(wrong)
    assert trial.passed >= trial.lines / 50, "too few passed to prove anything"


def test_the_same_seed_makes_the_same_lines():
    stock = ["ls -la src", "cat a.txt | sort", "git log --oneline"]
    once, again = (list(Mutator(stock, seed=5).lines(200)) for _ in range(2))
    assert once == again
    assert once != list(Mutator(stock, seed=6).lines(200))
    assert len(set(once)) > 150
