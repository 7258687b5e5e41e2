"""`haft run -- claude …` and `-- codex …` with the real programs: what they are refused, and a part of the diff."""

import contextlib
import socket
import subprocess
import sys
import threading

import pytest
from connected import Connected
from own_tools import edit, options, shell

from haft.testing.scripted_model import say

NAMES = ("claude-code", "codex")
PATIENCE = 240
VARIABLES = {
    "claude-code": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"),
    "codex": ("MODEL_KEY",),
}


def command(agent, model, *words):
    """The command line of `haft run` for an agent: it reaches the scripted model, and nothing else."""
    port = model.url.rpartition(":")[2]
    variables = [word for name in VARIABLES[agent.real.id] for word in ("--env", name)]
    program = [*agent.real.command, *words]
    return [sys.executable, "-m", "haft", "run", f"--network=127.0.0.1:{port}", *variables, "--", *program]


def unattended(agent):
    return agent.real.unattended if agent.real.id == "claude-code" else ("-c", 'approval_policy="never"')


@pytest.fixture(params=NAMES)
def agent(request, tmp_path, model):
    made = Connected(request.param, tmp_path, model.url)
    (made.workspace / "note.txt").write_text("old\n")
    (made.workspace / "test_it.sh").write_text("grep -q new note.txt && echo passed\n")
    secret = made.real.home / ".ssh" / "id"
    secret.parent.mkdir()
    secret.write_text("very secret\n")
    yield made
    made.end()


def ran(agent):
    """The run of the program."""
    (found,) = [run for run in agent.runs() if run["tool"] == "program"]
    return found


def test_its_hook_in_the_files_of_a_project_gives_no_decision(agent, model):
    name = agent.real.id
    agent.haft("connect", name, "--hooks", "--project", "--yes")
    prompt = model.task(shell(name, "echo in run > made.txt; cat made.txt"), say("done"))
    words = [*agent.real.headless(prompt), *unattended(agent), *options(name), *agent.real.trusting]
    done = subprocess.run(
        command(agent, model, *words),
        cwd=agent.workspace,
        env=agent.real.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    [result] = model.results(prompt)
    assert "in run" in result, done
    assert "made.txt" in agent.haft("diff", ran(agent)["id"])


def test_it_edits_and_tests_and_is_refused_secrets_other_hosts_and_pushing(agent, model, tmp_path):
    name = agent.real.id
    there = tmp_path / "remote.git"
    git = ["git", "-C", str(agent.workspace)]
    subprocess.run(["git", "init", "-q", "--bare", str(there)], check=True)
    subprocess.run([*git, "remote", "add", "origin", str(there)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as other:
        reached = []
        threading.Thread(target=accept, args=(other, reached), daemon=True).start()
        port = other.getsockname()[1]
        talk = f'python3 -c \'import socket; socket.create_connection(("127.0.0.1", {port}), 3); print("reached")\''
        prompt = model.task(
            *edit(name, agent.workspace / "note.txt", "old", "new"),
            shell(name, "sh test_it.sh; echo made > made.txt; echo more > more.txt"),
            shell(name, "cat ~/.ssh/id"),
            shell(name, talk),
            shell(name, "git add -A; git -c user.name=a -c user.email=b commit -qm x; git push origin HEAD"),
            say("done"),
        )
        words = [*agent.real.headless(prompt), *unattended(agent), *options(name)]
        done = subprocess.run(
            command(agent, model, *words),
            cwd=agent.workspace,
            env=agent.real.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert not reached
    results = model.results(prompt)
    tested, secret, talked, pushed = results[-4:]
    assert "passed" in tested, (results, done)
    assert "very secret" not in secret and "No such file" in secret
    assert "reached" not in talked
    assert not list(there.glob("refs/heads/*")), pushed
    # Nothing counts yet.
    assert (agent.workspace / "note.txt").read_text() == "old\n"
    assert not (agent.workspace / "made.txt").exists()
    run = ran(agent)["id"]
    assert "+new" in agent.haft("diff", run)
    agent.haft("changes", "apply", run, "note.txt", "made.txt")
    assert (agent.workspace / "note.txt").read_text() == "new\n"
    agent.haft("changes", "drop", run)
    assert (agent.workspace / "made.txt").exists() and not (agent.workspace / "more.txt").exists()


def accept(server, reached):
    with contextlib.suppress(OSError):
        reached.append(server.accept())
