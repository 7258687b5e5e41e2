"""The table of codes."""

import re
from pathlib import Path

import pytest

from haft.authoring.check import CODES, code_of
from haft.contracts import BadUsage


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_a_code_is_explained_with_a_bad_and_a_good_example(code):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code.code)
    assert code.level in ("error", "warning", "note")
    assert code.meaning.endswith(".") and "\n" not in code.meaning
    assert len(code.explanation) > 40 and code.explanation.endswith(".")
    assert code.bad and code.good and code.bad != code.good


def test_every_code_has_a_test():
    of_calls = Path(__file__).parents[2] / "testing/conformance/test_tools.py"
    tests = "".join(path.read_text() for path in (*Path(__file__).parent.glob("test_*.py"), of_calls))
    assert [code for code in CODES if f'"{code}"' not in tests] == []


def test_what_is_no_code_is_answered_with_the_near_miss():
    with pytest.raises(BadUsage) as caught:
        code_of("no-shebag")
    assert caught.value.hint == "did you mean `no-shebang`?"
    with pytest.raises(BadUsage) as caught:
        code_of("qqqqq")
    assert "not-executable" in caught.value.hint
