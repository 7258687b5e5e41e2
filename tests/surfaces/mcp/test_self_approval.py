"""An agent that uses haft over MCP, and tries in its own shell to approve the call that waits."""

import json
import os
import subprocess
import sys

import pytest

from haft.service import StateHome, clients_alive
from haft.service.process_tree import process

pytestmark = pytest.mark.skipif(process("self") is None, reason="this machine does not show processes")

AGENT = r"""
import json, os, subprocess, sys, time

haft = f"{sys.executable} -m haft"
# A wrapper that stays: the client is the program at the other end of the pipe, not the wrapper.
server = subprocess.Popen(
    ["sh", "-c", f"{haft} serve mcp; true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)


def send(**message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
send(id=1, method="initialize", params=info)
server.stdout.readline()
send(method="notifications/initialized")
send(id=2, method="tools/call", params={"name": "shell", "arguments": {"command": "touch made"}})


def run(line):
    done = subprocess.run(line, shell=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return [done.returncode, done.stdout + done.stderr]


while not (waiting := json.loads(run(f"{haft} inbox --all --json 2>/dev/null")[1])):
    time.sleep(0.05)
approve = f"{haft} approve {waiting[0]['id']}"
loose = f"setsid sh -c '({approve}; echo $?) >answer.tmp 2>&1; mv answer.tmp answer' &"
found = {
    "plainly": run(approve),
    "in a new terminal": run(f"setsid -w script -qec '{approve}' /dev/null"),
    "cut loose": run(f"sh -c {json.dumps(loose)}; while test ! -e answer; do sleep 0.05; done; cat answer; exit 3"),
}
found["still waits"] = len(json.loads(run(f"{haft} inbox --all --json 2>/dev/null")[1]))
print(json.dumps(found), flush=True)
sys.stdin.readline()
"""


def test_an_agent_cannot_approve_its_own_call_in_its_own_shell(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith("HAFT_")}
    env |= {"HAFT_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=workspace,
        env=env,
        text=True,
        start_new_session=True,
    )
    try:
        found = json.loads(agent.stdout.readline())
        living = {client.pid for client in clients_alive(StateHome(str(tmp_path / "state")))}
    finally:
        agent.stdin.close()
        agent.wait()
        agent.stdout.close()
    assert living == {agent.pid}
    for way in ("plainly", "in a new terminal", "cut loose"):
        code, said = found[way]
        assert code == 3, (way, said)
        assert "`haft approve` was refused" in said, (way, said)
        assert f"(pid {agent.pid})" in said
    assert found["still waits"] == 1
    assert not (workspace / "made").exists()
