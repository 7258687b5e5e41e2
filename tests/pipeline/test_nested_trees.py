"""Random trees of nested calls end, lose no place and no lock, and are undone byte for byte."""

import sys
from pathlib import Path

import pytest

import sampling

sys.path.insert(0, str(Path(__file__).parent))
from nested_trees import prove

TREES = 200
AT_ONCE = 5
SOME = sampling.some([*range(0, TREES, AT_ONCE)], 2, "nested trees")


@pytest.mark.parametrize("first", SOME)
def test_every_run_of_a_tree_ends_no_place_is_lost_and_undo_brings_back_what_was(outside_tmp, first):
    assert prove(range(first, first + AT_ONCE), outside_tmp) >= AT_ONCE


@pytest.mark.parametrize("first", SOME if sampling.IS_WHOLE else SOME[:1])
def test_so_it_is_where_calls_have_the_workspace_alone(outside_tmp, first):
    assert prove(range(first, first + 2), outside_tmp, "snapshot", isolated=False) >= 2
