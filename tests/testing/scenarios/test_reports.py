"""What a report says about a failed scenario, part by part."""

import asyncio

import pytest

from haft.testing import check_scenario, run_scenario, scenarios_from
from haft.testing.scenarios import failure


def report(command, **parts):
    (scenario,) = scenarios_from({"tool": "shell", "args": {"command": command}, **parts})
    result = asyncio.run(run_scenario(scenario))
    if result.skipped is not None:
        pytest.skip(result.skipped)
    return "\n".join(failure(result))


def test_a_change_is_shown_as_a_difference():
    said = report("echo new >a.txt; seq 100 >b.txt; : >c.txt; printf '\\0' >d.bin", files={"a.txt": "old\n"})
    assert "Expected: unchanged, because `expect.files` does not name it\nActual: changed" in said
    assert "- before the call, + after the call\n@@ -1 +1 @@\n-old\n+new" in said
    assert "+14\n… and 86 more lines" in said
    assert "Actual: created\nThe file is empty." in said
    assert said.endswith("Actual: created"), "bytes have no lines"
    said = report("echo new >a.txt", expect={"only_changed": ["*.md"]})
    assert "because neither `expect.only_changed` nor `expect.files` names it" in said


def test_files_are_names_and_only_changed_has_patterns():
    command = "echo x >a.md; echo x >'[b].md'"
    assert report(command, expect={"only_changed": ["*.md"], "files": {"[b].md": "x\n"}}).count("\n") == 0
    said = report(command, expect={"files": {"*.md": "x\n", "[b].md": "x\n"}})
    assert "File *.md content mismatch:" in said
    assert "`files` has names; only `only_changed` has patterns." in said
    assert "File a.md mismatch:" in said
    assert "File [b].md" not in said


def test_what_the_tool_wrote_is_shown_once():
    said = report("echo out; echo err >&2; touch a")
    assert said.endswith("\n\nThe tool wrote to stderr:\n  err")
    assert "  out" not in said
    said = report("echo out; echo err >&2; touch a; exit 3", expect={"status": "error"})
    assert said.endswith("\n\nThe tool wrote:\n  out\n  err")
    said = report("echo out; echo err >&2; exit 3", expect={"status": "error", "output": "other\n"})
    assert "The tool wrote" not in said
    said = report("echo out; echo err >&2; exit 3", expect={"status": "error", "stderr": "other\n"})
    assert said.endswith("\n\nThe tool wrote:\n  out\n  err")
    said = report("echo out; echo err >&2", expect={"stderr": "other\n"})
    assert "The tool wrote" not in said


def test_a_fault_is_named_and_says_where_the_expected_status_comes_from():
    said = report("exit 3", fault="slow-pipes")
    assert said.startswith('call: shell {"command": "exit 3"} with the fault slow-pipes\n')
    assert "The scenario does not say how the call ends, so it must end as the fault slow-pipes says." in said
    said = report("exit 3", fault="slow-pipes", expect={"status": "done"})
    assert "Status mismatch" in said
    assert "must end as the fault" not in said


def test_answers_that_are_not_used_are_a_mismatch():
    assert "\n2 answers to approval requests were not used" in report(
        "touch a", approve=[True] * 3, expect={"only_changed": "any"}
    )
    assert "\n1 answer to approval requests was not used" in report("touch a", approve=[True, {"reject": "no"}])
    assert "\n\n" not in report("touch a", approve=[True], expect={"only_changed": "any"})


def test_a_failed_check_in_python_has_the_whole_report():
    with pytest.raises(AssertionError) as caught:
        check_scenario({"tool": "shell", "args": {"command": "echo why >&2; exit 3"}})
    said = str(caught.value)
    assert 'call: shell {"command": "echo why >&2; exit 3"}\n\nStatus mismatch:' in said
    assert said.endswith("The tool wrote:\n  why")
    assert "<python>" not in said
