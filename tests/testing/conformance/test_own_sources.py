"""haft's own sources pass the conformance suite."""

import asyncio
import sys
from pathlib import Path

import pytest

from haft.testing.conformance import check_source
from haft.toolsets.formats import FORMATS

sys.path.insert(0, str(Path(__file__).parent))
from own_cases import CASES

from sampling import today

WITHOUT_FILES = {"python"}
"""The functions of installed packages."""


def test_every_source_has_a_case():
    assert {each.source for each in CASES} | WITHOUT_FILES == {each.name for each in FORMATS}


@pytest.mark.parametrize("case", today(CASES, "sources of haft"), ids=lambda case: case.source)
def test_a_source_of_haft_keeps_all_promises(case):
    verdicts = asyncio.run(check_source(case))
    failed = {each.check: each.problems for each in verdicts if each.problems}
    assert not failed
    assert [each.check for each in verdicts if each.check == "can-be-called" and each.passed]
