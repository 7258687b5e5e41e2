"""`scripts/mutants.py`: the scenarios in `examples/` notice mistakes in the tools. `make test` makes a few of them,
`make test-more` all."""

import importlib.util
import sys
from pathlib import Path

import pytest

import sampling

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def mutants():
    before = sys.path
    sys.path = [str(SCRIPTS), *before]
    try:
        found = importlib.util.spec_from_file_location("haft_mutants", SCRIPTS / "mutants.py")
        module = importlib.util.module_from_spec(found)
        sys.modules["haft_mutants"] = module  # worker processes find the functions by this name
        found.loader.exec_module(module)
        yield module
    finally:
        sys.path = before


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HAFT_HOME", str(tmp_path))  # Set back afterwards: `judge` changes it.


def test_every_example_gets_at_least_twelve_mistakes_and_every_format_has_one(mutants):
    for name in mutants.TABLE:
        assert 12 <= len({*mutants.drawn(name, mutants.MOST)}) <= mutants.MOST
    assert len(mutants.BEHAVIOURS) >= 10
    assert len({*mutants.whole()}) == len(mutants.BEHAVIOURS)


def test_every_reason_is_about_a_mistake_that_is_made(mutants):
    made = {(each.example, each.shown) for name in mutants.TABLE for each in mutants.drawn(name, None)}
    assert {*mutants.REASONS} <= made


def test_scenarios_notice_mistakes(mutants):
    small = [each for name in mutants.TABLE for each in mutants.drawn(name, mutants.MOST)]
    made = [*sampling.some(small, 1, "small mistakes"), *sampling.some([*mutants.whole()], 1, "whole mistakes")]
    whole = {*mutants.whole()}
    by_example = {}
    for each in made:
        by_example.setdefault(each.example, []).append(each)
    verdicts = [verdict for mistakes in by_example.values() for verdict in mutants.judge(mistakes)]
    found = (
        [each for each in verdicts if each.mistake not in whole],
        [each for each in verdicts if each.mistake in whole],
    )
    missed = [each.mistake for each in verdicts if each.noticed_by is None]
    without_reason = [each for each in missed if (each.example, each.shown) not in mutants.REASONS]
    assert without_reason == []
    assert not any(each in whole for each in missed)
    if sampling.IS_WHOLE:
        assert mutants.is_good(*found), "\n".join(mutants.table(*found))
