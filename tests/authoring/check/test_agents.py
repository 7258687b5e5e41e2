"""Checks of files that define types of sub-agents."""

import pytest

from haft.authoring.check import agent_files, check_agent
from haft.builtin import builtin_tools
from haft.contracts import BadUsage, Listing

TOOLS = [Listing(tool.spec) for tool in builtin_tools()]
GOOD = "---\nname: one\ndescription: Reviews a change. Use before a commit.\n---\nReview it.\n"


@pytest.fixture
def check(tmp_path):
    def check(text, name="one"):
        (tmp_path / f"{name}.md").write_text(text)
        report = check_agent(str(tmp_path / f"{name}.md"), str(tmp_path), TOOLS)
        return report, {finding.code: finding for finding in report.findings}

    return check


def test_a_good_file_has_no_findings(check):
    report, found = check(GOOD)
    assert found == {} and report.ok and report.name == "one" and report.to_json()["kind"] == "agent"


@pytest.mark.parametrize(
    ("before", "after", "code", "message", "ok"),
    [
        ("name: one", "name one", "agent-definition", "its front matter cannot be understood: `name one`", False),
        ("name: one", "name: One", "agent-definition", "`One` is not a valid name", False),
        ("name: one", "name: explore", "agent-definition", "`explore` is a built-in type", False),
        (
            "---\nRev",
            "tols: Read\n---\nRev",
            "agent-unknown-key",
            "there is no key `tols`; did you mean `tools`?",
            True,
        ),
        ("---\nRev", "hooks: {}\n---\nRev", "agent-ignored", "no effect in haft: `hooks`", True),
        ("---\nRev", "tools: Read, Grepp\n---\nRev", "agent-tool", "it does not get `Grepp`: there is no such", True),
        ("---\nRev", "tools: WebSearch\n---\nRev", "agent-no-tools", "it has no tools", False),
        ("name: one", "name: two", "agent-name", "its name is `two` and its file is `one.md`", True),
        ("Review it.\n", "", "agent-prompt", "it has no system prompt", True),
        ("Reviews a change. Use before a commit.", "stuff", "vague-description", "the description is vague", True),
        ("Review it", "Review\u202e it", "hidden-characters", "", False),
    ],
)
def test_what_is_found(check, before, after, code, message, ok):
    report, found = check(GOOD.replace(before, after))
    assert code in found and message in found[code].message and report.ok is ok


def test_lines_and_near_misses(check):
    _, found = check(GOOD.replace("---\nRev", "disalowedTools: Bash\ntools: raed_file, Read\n---\nRev"))
    assert found["agent-unknown-key"].line == 4
    assert found["agent-tool"].hint == "did you mean `read_file`?"


def test_files_folders_and_the_usual_places(tmp_path):
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / "b.txt").write_text(GOOD)
    assert agent_files([str(tmp_path), str(tmp_path / "b.txt")], ["/nowhere"]) == [
        str(tmp_path / "a.md"),
        str(tmp_path / "b.txt"),
    ]
    assert agent_files([], ["/nowhere", str(tmp_path)]) == [str(tmp_path / "a.md")]
    with pytest.raises(BadUsage, match="does not exist"):
        agent_files(["/nowhere.md"], [])
