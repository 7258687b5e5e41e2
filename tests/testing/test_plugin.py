"""The pytest plugin, as pytest runs it in a folder of its own."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.takes_turns

TWO = """tool: edit_file
args: {path: test.js, old_string: hello, new_string: goodbye}
files: {test.js: "hello\\nmore"}
cases:
  - name: good
    expect: {files: {test.js: "goodbye\\nmore"}}
  - name: bad
    expect:
      message: {contains: nothing}
      files:
        test.js: |
          goodbye
          less
"""


@pytest.fixture
def run(tmp_path):
    def pytest_in(*options):
        # That plugin of another package takes seconds of processor time to load.
        words = [sys.executable, "-m", "pytest", "-p", "no:langsmith_plugin", "-W", "error", "--rootdir", tmp_path]
        return subprocess.run([*words, *options], cwd=tmp_path, capture_output=True, text=True, check=False)

    return pytest_in


def test_a_case_is_an_item_that_fails_at_its_line(run, tmp_path):
    (tmp_path / "edit.scenario.yaml").write_text(TWO)
    done = run("-rA")
    assert done.returncode == 1, done.stderr
    assert "PASSED edit.scenario.yaml::edit: good" in done.stdout
    assert f"{tmp_path}/edit.scenario.yaml:9: expect.message" in done.stdout
    assert f"{tmp_path}/edit.scenario.yaml:11: expect.files.test.js" in done.stdout
    assert 'E   call: edit_file {"path": "test.js",' in done.stdout
    assert "E   -less\nE   +more" in done.stdout
    assert "FAILED edit.scenario.yaml::edit: bad - Error message mismatch" in done.stdout
    assert "Traceback" not in done.stdout

    again = run("--lf", "-q")
    assert "1 failed in" in again.stdout, "the one that passed does not run again"
    listed = run("--collect-only", "-q", "-k", "good")
    assert "edit.scenario.yaml::edit: good" in listed.stdout
    assert "1/2 tests collected" in listed.stdout
    one = run("edit.scenario.yaml::edit: good")
    assert "1 passed in" in one.stdout


def test_workers_and_reports_of_other_plugins_get_the_same(run, tmp_path):
    (tmp_path / "edit.scenario.yaml").write_text(TWO)
    done = run("-n", "2", "-q", "--junit-xml=out.xml")
    assert "FAILED edit.scenario.yaml::edit: bad - Error message mismatch" in done.stdout
    assert f"{tmp_path}/edit.scenario.yaml:11: expect.files.test.js" in done.stdout
    assert "1 failed, 1 passed in" in done.stdout
    assert "Error message mismatch" in (tmp_path / "out.xml").read_text()


def test_what_cannot_be_read_is_an_error_of_its_file(run, tmp_path):
    (tmp_path / "broken.scenario.yaml").write_text("tool: edit_file\nargs: {}\narguments: {}\n")
    (tmp_path / "fine.scenario.json").write_text(
        json.dumps({"tool": "read_file", "args": {"path": "a"}, "files": {"a": "1"}, "expect": {}})
    )
    done = run("-q", "--continue-on-collection-errors")
    assert "ERROR broken.scenario.yaml" in done.stdout
    assert "broken.scenario.yaml:3: `arguments` says again what `args` says" in done.stdout
    assert "Traceback" not in done.stdout
    assert "1 passed, 1 error" in done.stdout


def test_a_scenario_that_the_machine_cannot_run_is_skipped(run, tmp_path, monkeypatch):
    (tmp_path / "edit.scenario.yaml").write_text(TWO)
    (tmp_path / "conftest.py").write_text(
        "import haft.testing.running as running\n"
        "from haft.testing.scenarios import Result\n"
        "async def skipped(scenario):\n"
        "    return Result(scenario, skipped='no such program')\n"
        "running.run_scenario = skipped\n"
    )
    done = run("-rs")
    assert "2 skipped" in done.stdout
    assert "no such program" in done.stdout


def test_nothing_of_haft_is_imported_where_it_is_not_used(run, tmp_path):
    (tmp_path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    print('IMPORTED', sorted(name for name in sys.modules if name.partition('.')[0] == 'haft'))\n"
    )
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    done = run("-q", "-s")
    assert "IMPORTED ['haft', 'haft.lazy', 'haft.testing', 'haft.testing.plugin', 'haft.version']" in done.stdout


def test_what_a_tool_writes_does_not_control_the_terminal(run, tmp_path):
    command = "printf '\\033[2J\\033]0;title\\007'; touch \"$(printf '\\033[31m')\"; exit 3"
    data = {"tool": "shell", "args": {"command": command}, "name": "a\x1b[31m\u202eb", "expect": {"output": "none"}}
    (tmp_path / "a.scenario.json").write_text(json.dumps(data))
    (tmp_path / "b.scenario.yaml").write_text('"\\e[2J": a')
    done = run("-rA", "-v")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout
    assert "\\x1b[2J" in done.stdout
