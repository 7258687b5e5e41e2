"""The fixture for tool writers, held against what its docstring says."""

import subprocess
import sys

import pytest

from haft.contracts import BadUsage
from haft.testing import ToolBench
from haft.testing.scenarios.scenario import Answer

PLUGIN = """case "$1" in
schema) printf '%s' '{"id": "NAME", "version": "1", "args_mode": "json", "config_keys": ["word"],
"tools": [{"type": "function", "function": {"name": "NAME"}}]}' ;;
preview) echo "would run NAME" ;;
run) cat; echo "$AGENT_TOOL_CONFIG_WORD"; echo made >made ;;
esac
"""
TOOLBOX = """#!/bin/sh
[ "$TOOLBOX_ACTION" = execute ] && exec cat
printf 'name: box\\ndescription: A box.\\na: string any\\n'
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_plugins_and_toolbox_executables_are_loaded_one_after_the_other_and_called(haft_tools, tmp_path):
    file = write(tmp_path / "outside/one.bash", PLUGIN.replace("NAME", "one"))
    write(tmp_path / "folder/two.bash", PLUGIN.replace("NAME", "two"))
    write(tmp_path / "folder/agent_plugin.json", '{"bash_tools": [{"file": "two.bash"}, {"file": "three.bash"}]}')
    (box,) = haft_tools.load(write(tmp_path / "outside/box", TOOLBOX))
    (one,) = haft_tools.load(str(file))
    found = [box, one, *haft_tools.load(tmp_path / "folder")]
    assert {listing.spec.name: listing.state for listing in found} == {
        **dict.fromkeys(("tb__box", "one", "two"), "ready"),
        "three": "broken",
    }
    haft_tools.close()
    haft_tools.settings["config"] = {"word": "configured"}
    for name, output in (("one", '{"name": "x"}configured\n'), ("two", '{"name": "x"}configured\n')):
        outcome = haft_tools.call(name, name="x")
        assert (outcome.status, outcome.output) == ("done", output)
    assert haft_tools.call("tb__box", a="b").output == "a: b\n", "what was loaded stays when the service opens anew"
    assert (haft_tools.workspace / "made").read_text() == "made\n"
    assert [(request.tool, request.preview) for request in haft_tools.asked] == [
        ("one", "would run one"),
        ("two", "would run two"),
        ("tb__box", None),
    ]
    assert haft_tools.call("missing").error.code == "unknown-tool"


def test_what_is_no_tool_is_said_at_once(haft_tools, tmp_path):
    with pytest.raises(BadUsage):
        haft_tools.load(tmp_path / "nowhere")
    with pytest.raises(BadUsage, match="is not a tool"):
        haft_tools.load(write(tmp_path / "empty", ""))


def test_it_is_there_without_a_conftest_and_knows_nothing_of_whoever_runs_it(tmp_path):
    write(tmp_path / "config/haft/haft.toml", "this is no configuration\n")
    write(tmp_path / "box/own", TOOLBOX)
    write(
        tmp_path / "test_mine.py",
        "def test_it(haft_tools):\n"
        "    assert haft_tools.call('shell', command='pwd').output.strip() == str(haft_tools.workspace)\n"
        "    assert 'tb__box' not in haft_tools.tools()\n"
        "    assert list(haft_tools.workspace.iterdir()) == []\n",
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:langsmith_plugin",
            "-W",
            "error",
            "--rootdir",
            tmp_path,
            tmp_path,
        ],
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "AMP_TOOLBOX": str(tmp_path / "box"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_conftest_may_still_name_the_package(tmp_path):
    write(tmp_path / "conftest.py", 'pytest_plugins = ["haft.testing"]\n')
    write(tmp_path / "test_mine.py", "def test_it(haft_tools):\n    assert haft_tools.asked == []\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:langsmith_plugin",
            "-W",
            "error",
            "--rootdir",
            tmp_path,
            tmp_path,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_answers_files_and_variables_are_given_and_it_works_without_pytest(tmp_path):
    write(
        tmp_path / "box",
        '#!/bin/sh\n[ "$TOOLBOX_ACTION" = execute ] && { cat in/a.txt; echo $WORD; exit; }\n'
        "printf 'name: box\\ndescription: A box.\\n'\n",
    )
    with ToolBench() as bench:
        bench.load(tmp_path / "box")
        bench.write({"in/a.txt": "given ", "b.bin": b"\xff"})
        bench.env["WORD"] = "word"
        bench.approve([False, Answer(approve=False, message="not now"), True])
        first, second, third, fourth = (bench.call("tb__box") for _ in range(4))
        assert [each.status for each in (first, second, third, fourth)] == ["rejected-by-user"] * 2 + [
            "done",
            "rejected-by-user",
        ]
        assert "not now" in second.error.message
        assert third.output == "given word\n"
        assert "no answer" in fourth.error.message
        assert len(bench.asked) == 4
        bench.approve("all")
        assert bench.call("tb__box").status == "done"
        root = bench.workspace.parent
    assert not root.exists()


def test_programs_are_stubbed_and_their_calls_are_counted_from_the_opening_of_the_service(haft_tools):
    haft_tools.programs = {"git": {"args": ["branch"], "stdout": "main\n"}}
    assert haft_tools.call("shell", command="git branch").output == "main\n"
    assert [each["args"] for each in haft_tools.program_calls()] == [["branch"]]
    haft_tools.call("shell", command="git push || true")
    with pytest.raises(BadUsage, match="the tool called `git push`, for which the scenario has no answer"):
        haft_tools.program_calls()
    haft_tools.close()
    assert haft_tools.program_calls() == ()
    haft_tools.programs = {"git": {}, "others": "refuse"}
    haft_tools.settings["sandbox.mode"] = "off"
    with pytest.raises(BadUsage, match="the programs cannot be stubbed on this machine: `others: refuse` needs"):
        haft_tools.call("shell", command="true")
