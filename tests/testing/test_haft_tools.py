"""The fixture for tool writers, held against what its docstring says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from haft import tool
from haft.contracts import BadUsage
from haft.testing import ToolBench
from haft.testing.scenarios.scenario import Answer

EXAMPLES = Path(__file__).parents[2] / "examples"
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


def test_answers_have_the_forms_of_scenarios(haft_tools):
    haft_tools.approve(
        [{"args": {"command": "echo edited"}}, {"reject": "not now"}, {"grant": {"network": True}}, True]
    )
    outcomes = [haft_tools.call("shell", command="echo asked; touch a") for _ in range(4)]
    assert [each.status for each in outcomes] == ["done", "rejected-by-user", "done", "done"]
    assert [each.output for each in outcomes] == ["edited\n", "", "asked\n", "asked\n"]
    assert "not now" in outcomes[1].error.message
    haft_tools.approve(False)
    assert haft_tools.call("shell", command="touch b").status == "rejected-by-user"
    for wrong, message in (
        ([True, {"arg": {}}], "`approve.1` has no `arg`; did you mean `args`?"),
        (["yes"], "`approve.0` must be a table, not 'yes'"),
        ("some", "`approve` must be `all`, `none` or a list of answers"),
    ):
        with pytest.raises(BadUsage, match=re.escape(message)):
            haft_tools.approve(wrong)


def test_files_have_the_forms_of_scenarios(haft_tools):
    haft_tools.write(
        {
            "bin/x": {"content": "#!/bin/sh\necho ran\n", "mode": "755"},
            "empty/": {},
            "link": {"link": "bin/x"},
            "encoded": {"base64": "/w=="},
            "bytes": b"\xff",
        }
    )
    haft_tools.write({"link": {"link": "bin"}, "bytes": "text"})
    outcome = haft_tools.call("shell", command="link/x; ls -d empty; cat bytes encoded | wc -c")
    assert (outcome.output.split(), outcome.stderr) == (["ran", "empty", "5"], "")
    haft_tools.write({"link": "no link any more"})
    assert (haft_tools.workspace / "link").read_text() == "no link any more"
    with pytest.raises(BadUsage, match=r"^`files` has the path '/etc/x', which must lie in the workspace"):
        haft_tools.write({"/etc/x": ""})


def test_what_the_service_read_cannot_be_changed_silently(haft_tools):
    haft_tools.env["WORD"] = "one"
    assert haft_tools.call("shell", command="echo $WORD").output == "one\n"
    haft_tools.env["WORD"] = "two"
    assert haft_tools.call("shell", command="echo $WORD").output == "two\n"
    for name, value in (("programs", {"git": {}}), ("settings", {"limits.max_seconds": 5})):
        before = getattr(haft_tools, name)
        setattr(haft_tools, name, value)
        with pytest.raises(BadUsage, match=f"`{name}` was changed after the service had read it") as caught:
            haft_tools.call("shell", command="true")
        assert "call `close()`" in caught.value.hint
        setattr(haft_tools, name, before)
    haft_tools.settings["limits.max_seconds"] = 5
    haft_tools.close()
    assert haft_tools.call("shell", command="true").ok


def test_functions_are_loaded(haft_tools):
    @tool
    def add(one: int, other: int = 2) -> int:
        """Add."""
        return one + other

    (listing,) = haft_tools.load(add)
    assert (listing.spec.name, listing.state) == ("add", "ready")
    assert haft_tools.call("add", one=1).result == 3
    haft_tools.close()
    assert haft_tools.call("add", one=1).result == 3, "what was loaded stays when the service opens anew"
    with pytest.raises(BadUsage, match="`load` cannot load 3") as caught:
        haft_tools.load(3)
    assert "the path of a tool, or a function" in caught.value.hint


def test_the_tools_of_mcp_servers_are_returned(haft_tools, tmp_path):
    loaded = haft_tools.load(EXAMPLES / "mcp-server/.mcp.json")
    assert sorted(each.spec.name for each in loaded) == ["mcp__todo__add", "mcp__todo__finish", "mcp__todo__open"]
    assert haft_tools.load(EXAMPLES / "mcp-server/.mcp.json") == loaded
    write(tmp_path / ".mcp.json", '{"mcpServers": {"gone": {"command": "no-such-program"}}}')
    (broken,) = haft_tools.load(tmp_path / ".mcp.json")
    assert broken.spec.name == "mcp__gone"
    assert "no-such-program" in broken.reason


FAILING = """
def test_outcome(haft_tools):
    assert haft_tools.call("shell", command="echo beginning; seq 1000; exit 3").ok

def test_hint(haft_tools):
    haft_tools.settings["limits.max_second"] = 3
    haft_tools.call("shell", command="true")
"""


def test_failures_in_pytest_say_how_the_call_ended_and_keep_hints(tmp_path):
    write(tmp_path / "test_mine.py", FAILING)
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:langsmith_plugin", "--rootdir", tmp_path, tmp_path]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "<Outcome of shell: error, tool-failed: `bash` exited 3, output 'beginning\\n1\\n2" in done.stdout
    assert "hint: did you mean `limits.max_seconds`?" in done.stdout
    assert "2 failed" in done.stdout
