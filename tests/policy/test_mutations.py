"""A sample of what `make mutations` does at length: mutated lines that pass do nothing but read when bash runs them."""

import sys
from pathlib import Path

import pytest

from sampling import IS_WHOLE, MORE, SEED, chance

sys.path.insert(0, str(Path(__file__).parent))
from corpora import lines, project, tables, trying
from corpora.jail import Cannot, Jail
from corpora.mutating import Mutator

COUNT, OPTIONS = (800 * MORE, 150 * MORE) if IS_WHOLE else (400, 60)


@pytest.fixture
def jail(tmp_path):
    try:
        found = Jail(project.build(tmp_path / "around" / "project"))
    except Cannot as problem:
        pytest.skip(f"no jail can be built here: {problem}")
    with found:
        yield found


def only_read(trial):
    print(trial)
    wrong = [f"{command!r}: {'; '.join(map(str, found))}" for command, found in trial.violations]
    assert not wrong, "\n".join(wrong)
    return True


def test_mutated_lines_that_pass_only_read(jail):
    trial = trying.try_out(jail, Mutator(lines.stock(), seed=SEED).lines(COUNT))
    assert only_read(trial)
    assert trial.passed >= trial.lines / 20, "too few passed to prove anything"


def test_options_that_the_tables_call_harmless_are(jail):
    every = sorted(set(tables.lines()))
    trial = trying.try_out(jail, chance("options").sample(every, min(len(every), OPTIONS)))
    assert only_read(trial)
    assert trial.passed >= trial.lines / 2, "the tables and their lines do not match"


def test_the_same_seed_makes_the_same_lines():
    stock = ["ls -la src", "cat a.txt | sort", "git log --oneline"]
    once, again = (list(Mutator(stock, seed=5).lines(200)) for _ in range(2))
    assert once == again
    assert once != list(Mutator(stock, seed=6).lines(200))
    assert len(set(once)) > 150
