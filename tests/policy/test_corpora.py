"""What analysis says of the corpora: nothing harmful passes, and few harmless lines ask."""

import sys
from pathlib import Path

import pytest

import sampling

sys.path.insert(0, str(Path(__file__).parent))
from corpora import known, lines, project, trying, watching
from corpora.jail import Cannot, Jail

MOST = 80
"""So many harmless lines of each corpus are run each time."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return project.build(tmp_path_factory.mktemp("corpora") / "around" / "project")


def test_nothing_harmful_passes(workspace):
    passed = [line for line in lines.load("harmful") if trying.passes(line.command, str(workspace))]
    assert not passed, "\n".join(f"{line.kind}, {line.proof}: {line.command!r}" for line in passed)


@pytest.mark.parametrize(("name", "fewest", "share"), [("harmless_seed", 300, 0.97), ("harmless_other", 300, 0.80)])
def test_most_harmless_lines_pass(workspace, name, fewest, share):
    corpus = lines.load(name)
    asking = [line.command for line in corpus if not trying.passes(line.command, str(workspace))]
    print(f"{name}: {len(corpus) - len(asking)} of {len(corpus)} pass; these ask:", *map(repr, asking), sep="\n  ")
    assert len(corpus) >= fewest
    assert 1 - len(asking) / len(corpus) >= share, "\n".join(map(repr, asking))


@pytest.mark.parametrize("name", ["harmless_seed", "harmless_other"])
def test_harmless_lines_are_harmless(workspace, name):
    chosen = sampling.some(lines.load(name), MOST, name)
    try:
        jail = Jail(workspace)
    except Cannot as problem:
        pytest.skip(f"no jail can be built here: {problem}")
    with jail:
        for watched in jail.run_all([line.command for line in chosen], neutral=True):
            assert not watching.effects(watched, known.PLAIN_PROGRAMS), watched.command


def test_no_line_stands_in_two_corpora():
    names = ("harmful", "harmless_seed", "harmless_other")
    every = [line.command for name in names for line in lines.load(name)]
    assert len(every) == len(set(every))
