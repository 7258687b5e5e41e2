"""haft's hook in the real agents while something is broken: a command that haft did not decide about must not run."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import threading
from pathlib import Path

import pytest
from connected import Connected
from own_tools import AGENT_NAMES, options, shell

from haft.testing.scripted_model import say


class Broken:
    """An agent whose hook is broken in another way before each command."""

    def __init__(self, name, base, model):
        self.agent = Connected(name, base, model.url, "--hooks")
        self.state = base / "state"
        self.name = name
        self.undo = contextlib.ExitStack()
        cases = ("killed", "stopped", "garbage", "locked")
        steps = [shell(name, "touch ordinary"), *(self.breaking(case) for case in cases), self.mended]
        prompt = model.task(*steps, say("done"))
        with self.undo:
            self.done = self.agent.real.run(prompt, *self.agent.real.unattended, *options(name))
        results = model.results(prompt)
        assert len(results) == len(steps), (results, self.done)
        self.results = dict(zip(("ordinary", *cases, "mended"), results, strict=True))

    def breaking(self, case):
        def step(_):
            self.undo.close()
            getattr(self, case)()
            return shell(self.name, f"touch {case}")

        return step

    def mended(self, _):
        self.undo.close()
        return shell(self.name, "touch mended")

    def residents(self):
        mark = f"HAFT_HOME={self.state}".encode()
        for process in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{process}/cmdline").read_bytes() if process.isdigit() else b""
                if b"--resident" in words and mark in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                    yield int(process)

    def killed(self):
        for process in [*self.residents()]:
            os.kill(process, signal.SIGKILL)

    def stopped(self):
        stopped = [*self.residents()]
        assert stopped
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        self.undo.callback(lambda: [os.kill(process, signal.SIGKILL) for process in stopped])

    def garbage(self):
        self.killed()
        place = self.state / "hook" / "socket"
        place.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(place))
        listener.listen()

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    other, _ = listener.accept()
                    other.recv(65536)
                    other.sendall(b"neither JSON nor {\0\xff")
                    other.close()

        threading.Thread(target=answer, daemon=True).start()
        self.undo.callback(
            lambda: (place.unlink(missing_ok=True), listener.shutdown(socket.SHUT_RDWR), listener.close())
        )

    def locked(self):
        database = next(path for path in self.state.rglob("*.db") if path.is_file())
        connection = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
        connection.execute("BEGIN EXCLUSIVE")
        self.undo.callback(lambda: (connection.rollback(), connection.close()))

    def was_decided(self, case):
        """Whether the command ran, and if so, whether haft ran it."""
        runs = [run for run in self.agent.runs() if f"touch {case}" in json.dumps(run["arguments"])]
        return (self.agent.workspace / case).exists(), [run["status"] for run in runs if run["tool"] == "shell"]


@pytest.fixture(scope="module", params=AGENT_NAMES)
def broken(request, tmp_path_factory, model):
    made = Broken(request.param, tmp_path_factory.mktemp(request.param), model)
    yield made
    made.agent.end()


def test_while_nothing_is_broken_the_command_runs(broken):
    assert broken.was_decided("ordinary") == (True, ["done"])


def test_the_helper_was_killed_a_new_one_decides(broken):
    assert broken.was_decided("killed") == (True, ["done"]), broken.results["killed"]


def test_the_helper_hangs_the_command_is_denied(broken):
    assert broken.was_decided("stopped")[0] is False, broken.results["stopped"]


def test_the_socket_answers_garbage_the_command_is_denied(broken):
    assert broken.was_decided("garbage")[0] is False, broken.results["garbage"]


def test_the_database_is_locked_nothing_runs_undecided(broken):
    has_run, runs = broken.was_decided("locked")
    assert (has_run, runs[-1:]) in ((False, []), (False, ["error"]), (True, ["done"])), broken.results["locked"]


def test_after_it_is_mended_commands_run_again(broken):
    assert broken.was_decided("mended") == (True, ["done"]), broken.results["mended"]


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_the_hooks_program_is_gone_the_command_is_denied(name, tmp_path, model):
    agent = Connected(name, tmp_path, model.url, "--hooks")
    try:
        for path in (
            *agent.real.home.rglob("settings.json"),
            *agent.real.home.rglob("hooks.json"),
            *agent.real.home.rglob("haft.js"),
        ):
            path.write_text(path.read_text().replace("/start.py", "/nowhere.py"))
        prompt = model.task(shell(name, "touch gone"), say("done"))
        agent.real.run(prompt, *agent.real.unattended, *agent.real.trusting)
        # Python ends with status 2 and a message: that denies in all four.
        assert not (agent.workspace / "gone").exists(), model.results(prompt)
    finally:
        agent.end()
