"""Three layers, from the fastest: the program by hand, the template as it is checked, the tool as an agent calls it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from haft.sources.agent_studio.check import check_template

FOLDER = Path(__file__).resolve().parents[1]
SAMPLE = json.loads((FOLDER / "data/sample.json").read_text())


def by_hand(**tool_params):
    words = ["--user-params", "{}", "--tool-params", json.dumps(tool_params)]
    done = subprocess.run([sys.executable, FOLDER / "tool.py", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


# By hand.


def test_it_prints_the_key_and_then_the_file():
    code, said, _stderr = by_hand(filepath="data/sample.json")
    key, _, answer = said.partition(" ")
    assert (code, key, json.loads(answer)) == (0, "tool_output", SAMPLE)


def test_it_fails_where_there_is_no_such_file_or_no_argument():
    assert "FileNotFoundError" in by_hand(filepath="data/none.json")[2]
    assert "filepath" in by_hand()[2]


# As it is checked.


def test_there_is_nothing_against_it_but_the_name_of_its_folder():
    assert [finding.code for finding in check_template(str(FOLDER), ()).findings] == ["studio-name"]


# As a tool.


def test_an_agent_reads_the_files_that_lie_beside_it(haft_tools):
    shutil.copytree(FOLDER, haft_tools.workspace / "templates/read_json", ignore=shutil.ignore_patterns("tests", ".*"))
    (haft_tools.workspace / "haft.toml").write_text('[templates]\npaths = ["./templates"]\n')
    outcome = haft_tools.call("read_json", filepath="data/sample.json")
    assert (outcome.status, outcome.result) == ("done", SAMPLE)
    failed = haft_tools.call("read_json", filepath="data/none.json")
    assert failed.error.message.startswith("`read_json` failed: FileNotFoundError: ")
    assert haft_tools.call("read_json").error.code == "invalid-arguments"
