"""The tool of every format meets the stubs, and each call is recorded."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from formats import FORMATS, write

PROGRAMS = {"git": [{"args": ["status"], "stdout": "M a.txt\n"}, {"args": ["apply"], "writes": {"a.txt": "b"}}]}
FILES = {"a.txt": "b"}
CALLS = ["git status --short", {"command": "git apply -", "stdin": "a patch", "cwd": "."}]
WRITES_NOTHING = "python-plugin"
"""The process of a Python plugin writes in the workspace only by a grant, and so do its stubs."""


@pytest.mark.parametrize("form", FORMATS)
def test_a_tool_of_each_format_meets_the_stub(passes, tmp_path, form):
    tool, programs, expect = write(tmp_path, form), PROGRAMS, {"files": FILES, "programs": CALLS}
    if form == WRITES_NOTHING:
        programs, expect = {"git": {"stdout": "M a.txt\n"}}, {"programs": CALLS}
    result = passes(tool=tool, programs=programs, expect=expect)
    assert "M a.txt" in result.outcome["output"]


@pytest.mark.parametrize("form", ["amp-shell", "python-plugin"])
def test_a_call_that_is_missing_or_too_much_is_a_mismatch(failures, tmp_path, form):
    tool, programs = write(tmp_path, form), {"git": {}}
    (message,) = failures(tool=tool, programs=programs, expect={"programs": [*CALLS, "git commit"]})
    assert message == (
        "Program calls mismatch:\nExpected: git status --short\ngit apply -\ngit commit\n"
        "Actual: git status --short\ngit apply -"
    )
    (message,) = failures(tool=tool, programs=programs, expect={"programs": CALLS[:1]})
    assert message.endswith("Actual: git status --short\ngit apply -")
