"""Three layers, from the fastest: the script by hand, the tool as an agent calls it, a configuration that loads it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]
SCRIPT = FOLDER / "read_line_range.bash"
NUMBERS = "one\ntwo\nthree\nfour\n"


def by_hand(*words, cwd=None, env=None):
    done = subprocess.run(["bash", SCRIPT, *words], capture_output=True, text=True, check=False, cwd=cwd, env=env)
    return done.returncode, done.stdout, done.stderr


# By hand.


def test_the_schema_is_json_and_has_a_place_for_every_parameter():
    code, said, _stderr = by_hand("schema")
    schema = json.loads(said)
    function = schema["tools"][0]["function"]
    assert (code, schema["id"]) == (0, function["name"])
    assert [place["name"] for place in schema["positional"]] == list(function["parameters"]["properties"])


def test_run_prints_the_lines_and_says_on_stderr_what_is_wrong(tmp_path):
    (tmp_path / "-n").write_text(NUMBERS)
    assert by_hand("run", "-n", "2", "3", cwd=tmp_path) == (0, "two\nthree\n", "")
    assert by_hand("run", "-n", "3", "99", "true", cwd=tmp_path) == (0, "3\tthree\n4\tfour\n", "")
    assert by_hand("run", "-n", "3", "2", cwd=tmp_path)[::2] == (1, "Error: end_line 2 is before start_line 3\n")
    assert by_hand("run", "-n", "1", "$(date)", cwd=tmp_path)[0] == 1
    assert by_hand("run", "b", "1", "1", cwd=tmp_path)[::2] == (1, "Error: there is no file b\n")


def test_preview_and_error_say_it_in_a_line():
    assert by_hand("preview", "a b", "1", "2")[1] == "read_line_range path=a\\ b lines 1 to 2\n"
    late = {"AGENT_TOOL_TIMED_OUT": "1", "AGENT_TOOL_TIMEOUT_SECONDS": "60"}
    code, said, _stderr = by_hand("error", "124", "a", "1", "2", env=late)
    assert (code, said) == (0, "read_line_range did not finish within 60 seconds; ask for fewer lines\n")


# As a tool.


@pytest.mark.parametrize("path", [FOLDER, SCRIPT], ids=["folder", "file"])
def test_it_reads_a_file_of_the_workspace_and_explains_what_it_cannot(haft_tools, path):
    haft_tools.load(path)
    (haft_tools.workspace / "a b.txt").write_text(NUMBERS)
    outcome = haft_tools.call("read_line_range", path="a b.txt", start_line=2, end_line=3)
    assert (outcome.status, outcome.output) == ("done", "two\nthree\n")
    assert haft_tools.asked[0].preview == "read_line_range path=a\\ b.txt lines 2 to 3"
    failed = haft_tools.call("read_line_range", path="c", start_line=1, end_line=1)
    assert (failed.status, failed.exit_code) == ("error", 1)
    assert failed.output == "read_line_range failed with exit code 1: there is no file c\n"
    assert (
        haft_tools.call("read_line_range", path="a b.txt", start_line=0, end_line=1).error.code == "invalid-arguments"
    )


# As it is configured.


def test_a_configuration_loads_it_when_bash_tools_are_allowed(haft_tools):
    shutil.copytree(FOLDER, haft_tools.workspace / "plugins/read", ignore=shutil.ignore_patterns("tests"))
    (haft_tools.workspace / "a").write_text(NUMBERS)
    (haft_tools.workspace / "haft.toml").write_text(
        'plugins = ["bash:./plugins/read"]\n[plugin_policy]\nallow_bash_tools = true\n'
    )
    outcome = haft_tools.call("read_line_range", path="a", start_line=1, end_line=1, show_line_numbers=True)
    assert outcome.output == "1\tone\n"
