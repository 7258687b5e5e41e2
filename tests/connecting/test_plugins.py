"""The plugin for opencode, run by Node.js as opencode runs it: with a hook that answers, fails or hangs."""

import json
import subprocess
import sys

import pytest

import npm_programs
from haft.connecting import AGENTS
from haft.connecting.plugins import plugin_text

CALLER = """
const { Haft } = await import(process.argv[2])
const hooks = await Haft({ directory: process.cwd(), worktree: process.cwd() })
const output = { args: { command: "ls", timeout: 5 } }
const input = { tool: "bash", sessionID: "s", callID: "c" }
let thrown = null
try { await hooks["tool.execute.before"](input, output) } catch (error) { thrown = error.message }
let after = null
try { await hooks["tool.execute.after"](input, { title: "t", output: "o" }) } catch (error) { after = error.message }
console.log(JSON.stringify({ args: output.args, thrown, after }))
"""


@pytest.fixture
def called(tmp_path):
    def call(program, seconds=60, command=None):
        hook = tmp_path / "hook.py"
        hook.write_text(f"import json, os, sys, time\ngiven = json.load(sys.stdin)\n{program}\n")
        (tmp_path / "caller.mjs").write_text(CALLER)
        words = command or [sys.executable, str(hook)]
        plugin = tmp_path / "haft.mjs"
        plugin.write_text(plugin_text(AGENTS["opencode"], words, {"HAFT_HOME": "/h m"}, seconds))
        node = [str(npm_programs.node()), str(tmp_path / "caller.mjs"), str(plugin)]
        done = subprocess.run(node, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout)

    return call


def test_no_decision_leaves_the_call_as_it_is(called):
    assert called("pass") == {"args": {"command": "ls", "timeout": 5}, "thrown": None, "after": None}


def test_the_hook_gets_the_call_the_agent_and_the_state_home(called):
    program = "print(json.dumps({'deny': json.dumps([given, sys.argv[1:], os.environ['HAFT_HOME']])}))"
    given, words, home = json.loads(called(program)["thrown"])
    assert words == ["opencode"] and home == "/h m"
    assert given["hook_event_name"] == "tool.execute.before" and given["tool"] == "bash"
    assert given["args"] == {"command": "ls", "timeout": 5} and given["directory"] == given["worktree"]
    assert (given["sessionID"], given["callID"]) == ("s", "c")


def test_rewritten_arguments_are_put_into_the_old_ones(called):
    found = called("print(json.dumps({'args': {'command': 'haft-shell t ls'}}))")
    assert found["args"] == {"command": "haft-shell t ls", "timeout": 5} and found["thrown"] is None


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("print(json.dumps({'deny': 'a rule rejects it'}))", "a rule rejects it"),
        ("sys.stderr.write('not decided'); sys.exit(2)", "not decided"),
        ("sys.exit(1)", "it ended with code 1"),
        ("os.kill(os.getpid(), 9)", "it ended with code"),
        ("print('garbage')", "its answer is not JSON"),
    ],
)
def test_a_denial_and_every_failure_of_the_hook_deny_the_call(called, program, words):
    found = called(program)
    assert words in found["thrown"] and found["args"] == {"command": "ls", "timeout": 5}
    assert found["after"] is None


def test_a_hook_that_hangs_is_killed_and_the_call_is_denied(called):
    assert "did not end within 1 seconds" in called("time.sleep(30)", seconds=1)["thrown"]


def test_a_hook_that_is_not_there_denies_the_call(called):
    assert "ENOENT" in called("", command=["/nowhere/haft"])["thrown"]
