"""`haft tools test`: exit codes, reports, updating and watching."""

import json
import os
import signal
import time
import xml.etree.ElementTree as ElementTree

import pytest

pytestmark = pytest.mark.takes_turns

GOOD = """\
tool: edit_file
args: {path: a.txt, old_string: one, new_string: two}
files: {a.txt: "one\\n"}
expect: {files: {a.txt: "two\\n"}}
"""
BAD = GOOD.replace("two\\n", "three\\n").replace("expect: ", "# What must be true.\nexpect: ")
TOOL = """#!/bin/sh
[ "$TOOLBOX_ACTION" = describe ] && { printf 'name: count\\ndescription: Counts.\\n'; exit; }
echo lines: 3; echo from $PWD
"""


def write(haft, files):
    for path, text in files.items():
        full = haft.workspace / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
        if text.startswith("#!"):
            full.chmod(0o755)


@pytest.mark.every_user
def test_exit_codes_and_reports(haft):
    write(haft, {"tests/good.scenario.yaml": GOOD})
    said = haft("tools", "test")
    assert (said.code, said.err.strip().rpartition(" in ")[0]) == (0, "1 passed")
    assert "passed  tests/good.scenario.yaml:1  good" in said.out

    write(haft, {"tests/bad.scenario.yaml": BAD})
    said = haft("tools", "test")
    assert said.code == 1
    assert "FAILED  tests/bad.scenario.yaml:1  bad" in said.out
    assert "tests/bad.scenario.yaml:5\n    File a.txt content mismatch:\n    Expected: three\n" in said.out
    assert "1 passed, 1 failed" in said.err
    assert haft("-q", "tools", "test").out.count("passed") == 0

    write(haft, {"tests/worse.scenario.yaml": "tool: a\nwords: {}\n", "tests/worst.scenario.json": "{"})
    said = haft("tools", "test")
    assert (said.code, said.out) == (2, "")
    assert "worse.scenario.yaml:2: a scenario has no `words`" in said.err
    assert "worst.scenario.json:1: this is not JSON" in said.err

    assert haft("tools", "test", "tests/good.scenario.yaml").code == 0
    write(haft, {"plain.yaml": GOOD, "plain.txt": GOOD, "empty/a.txt": ""})
    assert haft("tools", "test", "plain.yaml").code == 0
    said = haft("tools", "test", "plain.txt")
    assert (said.code, "its name must end with .yaml" in said.err) == (2, True)
    said = haft("tools", "test", "nowhere")
    assert (said.code, "there is no file or folder nowhere" in said.err) == (2, True)
    said = haft("tools", "test", "empty")
    assert (said.code, "there are no scenarios" in said.err) == (5, True)
    said = haft("tools", "test", "-k", "missing", "-k", "gone", "tests/good.scenario.yaml")
    assert (said.code, said.out) == (5, "")
    assert said.err == "-k: 'missing' or 'gone' is in the name or path of none of the scenarios (1)\n"
    for words in (["goo"], ["GOOD"], ["missing", "good"], ["TESTS/"]):
        options = [each for word in words for each in ("-k", word)]
        assert haft("tools", "test", *options, "tests/good.scenario.yaml").code == 0


def test_json_and_junit(haft):
    cases = GOOD.replace("expect:", "cases:\n- name: first\n  expect: {output: {contains: a.txt}}\n- expect:")
    write(haft, {"a.scenario.yaml": cases, "b.scenario.yaml": BAD})
    said = haft("tools", "test", "--json", "--junit", "out.xml")
    first, second, third = said.json
    assert said.code == 1
    assert [each["name"] for each in said.json] == ["a: first", "a: 2", "b"]
    assert (first["file"], first["line"], first["passed"]) == ("a.scenario.yaml", 5, False)
    assert "nothing else" not in first["validationErrors"]
    assert second["passed"]
    assert second["executionResult"]["status"] == "done"
    assert third["validationErrors"] == ["File a.txt content mismatch:\nExpected: three\n\nActual: two\n"]
    assert third["mismatches"] == [
        {
            "path": "expect.files.a.txt",
            "expected": "three\n",
            "actual": "two\n",
            "message": third["validationErrors"][0],
            "line": 5,
        }
    ]
    suite = ElementTree.parse(haft.workspace / "out.xml").getroot()
    suite = suite if suite.tag == "testsuite" else suite[0]
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    cases = {each.get("name"): each for each in suite.iter("testcase")}
    failed = cases["b"].find("failure")
    assert failed.get("message") == "File a.txt content mismatch: expected three, actual two"
    assert failed.text.splitlines()[:3] == [
        'call: edit_file {"path": "a.txt", "old_string": "one", "new_string": "two"}',
        "",
        "b.scenario.yaml:5",
    ]
    assert "Expected: three" in failed.text
    assert (cases["b"].get("file"), cases["b"].get("line")) == ("b.scenario.yaml", "1")
    odd = {"tool": "shell", "args": {"command": "printf 'bad \\033 \\0 \\357\\277\\276' >&2; exit 3"}}
    write(haft, {"odd.scenario.json": json.dumps({**odd, "name": "name \x1b", "expect": {"exit": 4}})})
    assert haft("tools", "test", "odd.scenario.json", "--junit", "odd.xml").code == 1
    (case,) = ElementTree.parse(haft.workspace / "odd.xml").getroot().iter("testcase")
    assert case.get("name") == "name \N{REPLACEMENT CHARACTER}"
    assert "The tool wrote:\n  bad " in case.find("failure").text
    said = haft("tools", "test", "--junit", "missing/out.xml")
    assert (said.code, "missing/out.xml cannot be written" in said.err) == (2, True)


def test_update_writes_what_the_call_did_and_nothing_else(haft):
    write(
        haft,
        {
            "count": TOOL,
            "count.scenario.yaml": (
                "tool: tb__count  # the tool beside\n"
                "expect:\n"
                "  output: |\n"
                "    lines: 2\n"
                "  exit: 1   # kept\n"
                "  status: done\n"
            ),
            "edit.scenario.json": json.dumps(
                {
                    "tool": "edit_file",
                    "args": {"path": "a.txt", "old_string": "one", "new_string": "two"},
                    "files": {"a.txt": "one\n"},
                    "expect": {"files": {"a.txt": "three\n"}},
                }
            ),
        },
    )
    said = haft("tools", "test", "--update")
    assert said.code == 0, said.err
    assert (haft.workspace / "count.scenario.yaml").read_text() == (
        "tool: tb__count  # the tool beside\n"
        "expect:\n"
        "  output: |\n"
        "    lines: 3\n"
        "    from <workspace>\n"
        "  exit: 0   # kept\n"
        "  status: done\n"
    )
    assert '"a.txt": "two\\n"' in (haft.workspace / "edit.scenario.json").read_text()
    assert haft("tools", "test").code == 0


def test_update_begins_a_scenario_that_expects_nothing_yet(haft):
    write(
        haft,
        {
            "block.scenario.yaml": (
                "tool: shell\n"
                "files: {a/b.txt: one, old.txt: x, twice.txt: x}\n"
                "cases:\n"
                "  - name: more  # lines\n"
                "    args:\n"
                "      command: |\n"
                "        printf '1\\n2\\n' | tee a/b.txt; rm old.txt; mkdir empty; chmod 700 twice.txt\n"
                "\n"
                "  # The next one.\n"
                "  - name: nothing\n"
                "    files: {old.txt: null}\n"
                "    args: {command: ls}"
            ),
            "flow.scenario.yaml": "{tool: shell, args: {command: 'printf \"\\\\000\" > x; ln -s x y'}, }\n",
            "json.scenario.json": '{"tool": "shell",\n "args": {"command": "echo hello"}\n}\n',
        },
    )
    said = haft("tools", "test", "--update")
    assert said.code == 0, said.out + said.err
    assert (haft.workspace / "block.scenario.yaml").read_text() == (
        "tool: shell\n"
        "files: {a/b.txt: one, old.txt: x, twice.txt: x}\n"
        "cases:\n"
        "  - name: more  # lines\n"
        "    args:\n"
        "      command: |\n"
        "        printf '1\\n2\\n' | tee a/b.txt; rm old.txt; mkdir empty; chmod 700 twice.txt\n"
        "    expect:\n"
        "      output: |\n"
        "        1\n"
        "        2\n"
        "      files:\n"
        '        "a/b.txt": |\n'
        "          1\n"
        "          2\n"
        '        empty: {"kind": "directory"}\n'
        '        "old.txt": null\n'
        '        "twice.txt": {"mode": "700"}\n'
        "\n"
        "  # The next one.\n"
        "  - name: nothing\n"
        "    files: {old.txt: null}\n"
        "    args: {command: ls}\n"
        "    expect:\n"
        "      output: |\n"
        "        a\n"
        "        twice.txt\n"
    )
    assert '"expect": {"output": "hello\\n"}\n}' in (haft.workspace / "json.scenario.json").read_text()
    said = haft("tools", "test")
    assert said.code == 0, said.out


def test_update_says_what_it_cannot_write(haft):
    text = "tool: write_file\nargs: {path: a.txt, content: x}\nexpect: {output: {contains: never}}\n"
    write(haft, {"a.scenario.yaml": text})
    said = haft("tools", "test", "--update")
    assert said.code == 1
    assert "these cannot be updated, change them by hand: " in said.err
    assert "`expect.only_changed` (line 3)" in said.err
    assert (haft.workspace / "a.scenario.yaml").read_text() == text
    # A call that ended in another way is not what somebody wants to keep.
    text = "tool: shell\nargs: {command: 'echo no; exit 3'}\nexpect: {output: \"yes\\n\"}\n"
    write(haft, {"a.scenario.yaml": text})
    said = haft("tools", "test", "--update", "a.scenario.yaml")
    assert (said.code, "`expect.status` (line 3), `expect.output` (line 3)" in said.err) == (1, True), said.err
    assert (haft.workspace / "a.scenario.yaml").read_text() == text
    toml = 'tool = "list_directory"\nargs = {path = "."}\n[expect]\noutput = "x"\n'
    write(haft, {"b.scenario.toml": toml})
    assert haft("tools", "test", "--update", "b.scenario.toml").code == 1
    assert (haft.workspace / "b.scenario.toml").read_text() == toml


def test_a_tool_that_ends_its_process_fails_alone(haft):
    write(
        haft,
        {
            "ends.py": '"""Ends."""\nimport os\nfrom haft import tool\n@tool\ndef ends() -> str:\n    os._exit(0)\n',
            "ends.scenario.yaml": "tool: ends\nexpect: {status: done}\n",
            "good.scenario.yaml": GOOD,
        },
    )
    said = haft("tools", "test", "-j", "1")
    assert said.code == 1
    assert "passed  good.scenario.yaml" in said.out
    assert "FAILED  ends.scenario.yaml" in said.out


def test_watch_runs_again_what_changed_until_the_person_ends_it(haft):
    write(haft, {"count": TOOL, "count.scenario.yaml": "tool: tb__count\nexpect: {output: {contains: 'lines: 3'}}\n"})
    write(haft, {"good.scenario.yaml": GOOD})
    said = haft("tools", "test", "--watch", "--json")
    assert (said.code, "cannot be combined" in said.err) == (2, True)
    with haft.start("tools", "test", "--watch") as process:
        try:
            until(process.stderr, b"waiting for changes")
            write(haft, {"count": TOOL.replace("lines: 3", "lines: 4")})
            heard = until(process.stderr, b"waiting for changes")
            assert b"1 failed" in heard
            assert b"passed" not in heard, "the other scenario did not run again"
            write(haft, {"count": TOOL})
            assert b"1 passed" in until(process.stderr, b"waiting for changes")
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def until(stream, words):
    """What a process writes, up to these words."""
    heard = b""
    ends = time.monotonic() + 60
    while words not in heard:
        assert time.monotonic() < ends, heard
        heard += os.read(stream.fileno(), 65_536)
    return heard


def test_tools_are_found_beside_scenarios_and_in_hidden_folders_of_tools(haft):
    scenario = "tool: tb__count\nexpect: {output: {contains: 'lines: 3'}}\n"
    write(haft, {".agents/tools/count": TOOL, ".agents/tools/count.scenario.yaml": scenario})
    write(haft, {"two/other.sh": TOOL, "two/other.scenario.yaml": scenario, "two/other.md": ""})
    write(haft, {".hidden/count.scenario.yaml": scenario, ".venv/count.scenario.yaml": scenario})
    said = haft("tools", "test")
    assert (said.code, said.err.startswith("2 passed")) == (0, True), said.out

    write(haft, {"one.scenario.yaml": "tool: tb__cout\nload: two/other.sh\nexpect: {output: x, files: {a: b}}\n"})
    said = haft("tools", "test", "one.scenario.yaml")
    assert "there is no tool called `tb__cout`; did you mean `tb__count`?\n    hint: " in said.out
    assert "mismatch" not in said.out
    write(haft, {"one.scenario.yaml": "tool: tb__cout\nload: two/other.sh\nexpect: {error: unknown-tool}\n"})
    assert haft("tools", "test", "one.scenario.yaml").code == 0
    write(haft, {"one.scenario.yaml": "tool: shell\nexpect: {decision: ask}\n"})
    assert "must be `allow` or `reject`, not 'ask'" in haft("tools", "test", "one.scenario.yaml").err


def test_skips_can_count_as_failures(haft):
    text = "tool: read_file\nargs: {path: a.txt}\nfiles: {a.txt: x}\nfault: kill\n"
    write(haft, {"skipped.scenario.yaml": text, "good.scenario.yaml": GOOD})
    said = haft("tools", "test")
    assert (said.code, said.err.startswith("1 passed, 1 skipped")) == (0, True)
    assert haft("tools", "test", "--no-skips").code == 1
    assert haft("tools", "test", "--no-skips", "good.scenario.yaml").code == 0
