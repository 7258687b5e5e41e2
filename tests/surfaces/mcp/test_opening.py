"""Approvals through a client of `haft serve mcp` as people run it: a process that may be killed at any time."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys

import pytest

CAPABILITIES = {"elicitation": {}}
WRITE = {"name": "write_file", "arguments": {"path": "a.txt", "content": "a\n"}}
APPROVED = {"approval": {"action": "accept", "content": {"decision": "approve"}}}


@pytest.fixture
def start(tmp_path):
    """`with start() as ask`: a server; `ask(method, params)` is one request of the protocol 2026-07-28."""
    (tmp_path / "workspace").mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith("HAFT_")}
    env |= {"HAFT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    numbers = itertools.count(1)

    @contextlib.contextmanager
    def started():
        process = subprocess.Popen(
            [sys.executable, "-m", "haft", "serve", "mcp", "-w", str(tmp_path / "workspace")],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

        def ask(method, params):
            meta = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
            }
            number = next(numbers)
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line)
                if answer.get("id") == number:
                    return answer
            raise AssertionError("the server has ended")

        ask.process = process
        try:
            yield ask
        finally:
            process.kill()
            process.communicate()

    return started


def test_an_approval_counts_after_the_server_was_killed(start, tmp_path):
    with start() as ask:
        found = ask("tools/call", WRITE)["result"]
        assert found["resultType"] == "input_required"
        assert "a.txt" in found["inputRequests"]["approval"]["params"]["message"]
        ask.process.send_signal(signal.SIGKILL)
        ask.process.wait()
    again = {**WRITE, "inputResponses": APPROVED, "requestState": found["requestState"]}
    with start() as ask:
        ended = ask("tools/call", again)["result"]
        assert ended["isError"] is False
        assert (tmp_path / "workspace" / "a.txt").read_text() == "a\n"
        assert ask("tools/call", again)["error"]["code"] == -32602
        other = {**WRITE, "arguments": {"path": "b.txt", "content": "b"}}
        assert ask("tools/call", other)["result"]["resultType"] == "input_required"
    assert not (tmp_path / "workspace" / "b.txt").exists()
