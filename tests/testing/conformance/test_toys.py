"""A source that breaks one promise fails exactly the check of this promise."""

import asyncio
import sys
from pathlib import Path

import pytest

import sampling
from haft.testing.conformance import CHECKS, check_source

sys.path.insert(0, str(Path(__file__).parent))
import toys

BROKEN = {
    toys.StartsAProcess: "starts-nothing",
    toys.ListsTwice: "lists-the-tool",
    toys.HasNoDescription: "has-a-whole-spec",
    toys.HasNoSchemaOfAnObject: "has-a-whole-spec",
    toys.Forgets: "remembers",
    toys.IsNeverTheSame: "stays-the-same",
    toys.Writes: "changes-nothing",
    toys.NamesRelativePlaces: "names-absolute-places",
    toys.RecognizesAnything: "recognizes-its-own",
    toys.RecognizesByReading: "recognizes-its-own",
    toys.LoadsAnother: "loads-by-path",
    toys.ChecksTooMuch: "checks-its-own",
    toys.HasUnexplainedFindings: "checks-its-own",
    toys.ClosesOnce: "closes",
    toys.IsAlwaysCurrent: "notices-changes",
    toys.NamesNoPlaces: "notices-changes",
    toys.HidesTheBroken: "lists-the-broken",
    toys.RaisesForTheBroken: "lists-the-broken",
    toys.KeepsTheRemoved: "forgets-the-removed",
    toys.SaysNothing: "can-be-called",
    toys.AcceptsAnything: "refuses-wrong-arguments",
    toys.HidesFailures: "reports-failures",
    toys.StaysBusyWhenCancelled: "can-be-cancelled",
}


def test_every_check_has_a_source_that_fails_it():
    assert {*BROKEN.values()} == {*CHECKS}


def test_a_source_that_keeps_all_promises_passes():
    verdicts = asyncio.run(check_source(toys.case_of(toys.Toys)))
    assert [each.check for each in verdicts] == [*CHECKS]
    assert [each for each in verdicts if not each.passed] == []


TODAY = sampling.some([*BROKEN], 6, "toys") if sampling.IS_DAILY else [*BROKEN]


@pytest.mark.parametrize("source", TODAY, ids=lambda each: each.__name__)
def test_a_source_that_breaks_one_promise_fails_exactly_its_check(source):
    verdicts = asyncio.run(check_source(toys.case_of(source)))
    failed = {each.check: each.problems for each in verdicts if not each.passed}
    assert [*failed] == [BROKEN[source]], failed


def test_a_part_that_a_case_does_not_have_is_skipped_with_a_word():
    whole = toys.case_of(toys.Toys)
    case = toys.SourceCase(source="toy", tool="bear", write=whole.write, opened=toys.Toys)
    skipped = {each.check: each.skipped for each in asyncio.run(check_source(case)) if each.skipped}
    assert skipped["notices-changes"] == "the case has no `change`"
    assert {"recognizes-its-own", "loads-by-path", "can-be-cancelled"} < {*skipped}
