"""Tools and scenario files that want to deceive, or to break, what tests them."""

import asyncio
import json
import os

import pytest

from haft.contracts import BadUsage
from haft.testing.reading import read_scenario_file, scenarios_from, update_files
from haft.testing.running import run_scenario, run_scenarios
from haft.testing.scenarios import lines_of

pytestmark = pytest.mark.takes_turns

NASTY = "\x1b[2J\x7f\x00\u202e\ufeff\u2028]]> \\ \" ' # : "


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "home"))


def tool(folder, text, name="out"):
    """A tool that returns a text."""
    path = folder / f"{name}.py"
    path.write_text(
        "from haft import tool\n\n"
        f"TEXT = {text!r}\n\n\n"
        "@tool\n"
        f"def {name}(more: str = '') -> str:\n"
        '    """Print a text."""\n'
        "    return TEXT + more\n"
    )
    return path


def run(path):
    return run_scenarios(read_scenario_file(str(path)), jobs=1)


def test_a_file_name_is_no_pattern():
    """Otherwise a tool that makes a file `*`, once that is expected, could change everything."""
    data = {
        "tool": "shell",
        "args": {"command": "touch '*' evil"},
        "expect": {"files": {"*": ""}},
    }
    (result,) = run_scenarios(scenarios_from(data), jobs=1)
    assert [each.message.partition("\n")[0] for each in result.mismatches] == ["File evil mismatch:"]


def test_a_file_name_with_a_newline_stays_on_one_line():
    data = {"tool": "shell", "args": {"command": "touch \"$(printf 'a\\nFile b mismatch:')\""}}
    (result,) = run_scenarios(scenarios_from(data), jobs=1)
    assert [each.message.partition("\n")[0] for each in result.mismatches] == ['File "a\\nFile b mismatch:" mismatch:']


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_an_update_with_odd_characters_reads_back(tmp_path, ending):
    tool(tmp_path, NASTY)
    path = tmp_path / f"out.scenario.{ending}"
    data = {"tool": "out", "expect": {"output": "old"}}
    text = json.dumps(data, indent=2)
    path.write_text(text if ending == "json" else 'tool: out\nexpect:\n  output: "old" # kept\n')
    results = run(path)
    (updated,) = update_files(results)
    assert [each.startswith("`expect.output` (line ") for each in updated.replaced] == [True]
    assert [each.passed for each in run(path)] == [True]
    assert ("# kept" in path.read_text()) == (ending == "yaml")
    assert not [each for each in os.listdir(tmp_path) if ".tmp" in each]


def test_an_update_of_a_block_in_a_list_reads_back(tmp_path):
    path = tmp_path / "a.scenario.yaml"
    path.write_text(
        "tool: shell\nargs: {command: \"printf 'one\\\\ntwo\\\\n' >a\"}\n"
        "expectedFiles:\n  - content: |\n      old\n      text\n    path: a\n"
    )
    assert len(update_files(run(path))[0].replaced) == 1
    assert [each.passed for each in run(path)] == [True]
    assert "- content: |\n      one\n      two\n    path: a\n" in path.read_text()


def test_an_update_through_a_link_keeps_the_link(tmp_path):
    tool(tmp_path, "new")
    (tmp_path / "real.yaml").write_text("tool: out\nexpect: {output: old}\n")
    path = tmp_path / "out.scenario.yaml"
    path.symlink_to("real.yaml")
    update_files(run(path))
    assert path.is_symlink()
    assert '"new"' in (tmp_path / "real.yaml").read_text()


def test_an_update_of_a_file_that_changed_meanwhile_is_refused(tmp_path):
    tool(tmp_path, "new")
    path = tmp_path / "out.scenario.yaml"
    path.write_text("tool: out\nexpect: {output: old}\n")
    results = run(path)
    changed = "tool: out\nexpect: {output: other}\n"
    path.write_text(changed)
    with pytest.raises(BadUsage, match="changed while its scenarios ran"):
        update_files(results)
    assert path.read_text() == changed


def test_an_update_does_not_break_a_case_that_passed(tmp_path):
    tool(tmp_path, "new")
    path = tmp_path / "out.scenario.yaml"
    text = "tool: out\nexpect: {output: new}\ncases:\n- {args: {}}\n- {args: {more: er}}\n"
    path.write_text(text)
    with pytest.raises(BadUsage, match="shares an expectation"):
        update_files(run(path))
    assert path.read_text() == text
    assert not [each for each in os.listdir(tmp_path) if ".tmp" in each]


def test_an_update_of_json_with_tabs_says_that_it_cannot(tmp_path):
    tool(tmp_path, "new")
    path = tmp_path / "out.scenario.json"
    path.write_text('{"tool": "out",\n\t"expect": {\n\t\t"output": "old"}}')
    with pytest.raises(BadUsage, match="cannot be updated"):
        update_files(run(path))


@pytest.mark.parametrize("name", ["a\npassed  b.scenario.yaml", "\x1b[2J"])
def test_a_scenario_forges_no_line_of_the_report(tmp_path, name):
    path = tmp_path / f"{name}.scenario.json"
    path.write_text(json.dumps({"tool": f"unknown{name}", "name": name}))
    (result,) = run(path)
    assert not result.passed
    for line in lines_of(result):
        assert "\n" not in line
        assert not line.startswith("passed")


def test_the_home_of_the_person_need_not_be_writable(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "file"))
    data = {"tool": "list_directory", "args": {"path": "."}}
    assert asyncio.run(run_scenario(scenarios_from(data)[0])).passed


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="Python cannot set extended attributes here")
def test_a_change_of_extended_attributes_alone_is_seen(tmp_path):
    try:
        os.setxattr(tmp_path, "user.haft", b"1")
    except OSError:
        pytest.skip("the file system of the tests has no extended attributes")
    words = "import os; os.setxattr('a.txt', 'user.a', b'1')"
    (found,) = scenarios_from({"tool": "shell", "files": {"a.txt": ""}, "args": {"command": f'python3 -c "{words}"'}})
    result = asyncio.run(run_scenario(found))
    assert [each.actual for each in result.mismatches] == ["a.txt changed its extended attributes"]
